//===- GetProblem.h - What the schedule of an op is for ---------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_FLASH_TRANSFORMS_GETPROBLEM_H
#define FLASH_DIALECT_FLASH_TRANSFORMS_GETPROBLEM_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Machine/Machine.h"
#include "flash/Schedule/Problem.h"
#include "flash/Schedule/Schedule.h"

namespace flash {

/// Whether the values are the first columns of the keys, or all of them: a
/// slice of that tensor or the same one.
bool areColumnsOfKeys(mlir::Value key, mlir::Value value);

/// The properties of an attention that schedules depend on.
Problem getProblem(AttentionOpInterface op);

/// The same where query and key have these sizes; some may be dynamic.
Problem getProblem(AttentionOpInterface op, llvm::ArrayRef<int64_t> query,
                   llvm::ArrayRef<int64_t> key);

/// Sets the keys that a query sees, where the op has other lengths.
void setKeysPerQuery(Problem &problem, AttentionOpInterface op);

/// The schedule that a pass has as an option; fails after an error at `op`.
llvm::FailureOr<Schedule> parseSchedule(mlir::Operation *op,
                                        llvm::StringRef text);

/// The tiles of queries of all heads, if that is known.
std::optional<int64_t> countQueryTiles(mlir::RankedTensorType query,
                                       const Schedule &schedule);

/// Why its gradients cannot be one program with the tiles of the schedule;
/// empty if they can, or are not to be.
std::string findFusionFault(AttentionGradOp op, const Schedule &schedule);

/// Why lists of blocks that a caller gives, of such sizes, cannot be visited in
/// the tiles of the schedule, which has some, of an attention or of gradients;
/// empty if they can, or there are none.
std::string findBlockFault(std::optional<llvm::ArrayRef<int64_t>> blockSizes,
                           const Schedule &schedule, bool isGradient);

/// The same, and why tiles of keys or values cannot be parts of pages, or
/// several pages, on the machine.
std::string findTileFault(AttentionOpInterface op, const Machine &machine,
                          const Schedule &schedule);

/// Replaces the tiles of a complete proposal that have such a fault, where
/// `given` leaves them open, by the nearest that have none and that the machine
/// can have; none if it can have none.
void fitTiles(AttentionOpInterface op, const Problem &problem,
              const Machine &machine, const Schedule &given,
              Schedule &schedule);

/// Fills in what the schedule of gradients leaves open, which are of the
/// problem on the machine; what is wrong with it, if anything is.
std::string proposeSchedule(AttentionGradOp op, const Problem &problem,
                            const Machine &machine, Schedule &schedule);

} // namespace flash

#endif // FLASH_DIALECT_FLASH_TRANSFORMS_GETPROBLEM_H
