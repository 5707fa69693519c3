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

/// Whether the values are the first columns of the keys, or all of them:
/// `value` is `key`, or a tensor.extract_slice of it that begins at the first
/// element and has unit strides; with any tensor.cast between them. Both must
/// have the same rows.
bool areColumnsOfKeys(mlir::Value key, mlir::Value value);

/// Whether the machine that the module around `op` is compiled for multiplies
/// elements of f8E4M3FN.
bool canMultiplyE4M3(mlir::Operation *op);

/// Whether an attention with this schedule multiplies the elements of 8 bits
/// themselves, which precision(fp8) permits and warps with roles do.
bool multipliesQuantized(std::optional<Precision> precision,
                         std::optional<ScheduleAttr> schedule);

/// The properties of an attention, or of its gradients, on which schedules
/// depend.
Problem getProblem(AttentionOpInterface op);

/// As above, but as if query and key had these sizes, which replace the sizes
/// of the operands. They have as many dimensions, and some may be dynamic.
Problem getProblem(AttentionOpInterface op, llvm::ArrayRef<int64_t> query,
                   llvm::ArrayRef<int64_t> key);

/// Sets the numbers of keys that a query sees, and for gradients of queries
/// that see a key. They follow from the mask of `op` and from the lengths of
/// `problem`, which may differ from the lengths of `op`. Does nothing if one of
/// these lengths is not known.
void setKeysPerQuery(Problem &problem, AttentionOpInterface op);

/// Parses the schedule that was given as an option of a pass. If it cannot be
/// parsed, emits an error at `op` and fails.
llvm::FailureOr<Schedule> parseSchedule(mlir::Operation *op,
                                        llvm::StringRef text);

/// The number of tiles of queries of all heads, if `query`, the type of the
/// queries, has these sizes. The schedule must have a query tile.
std::optional<int64_t> countQueryTiles(mlir::RankedTensorType query,
                                       const Schedule &schedule);

/// Returns a message if the schedule computes gradients by one program
/// (`products = 5`) but this is not possible with the operation or with the
/// tiles of the schedule. Otherwise returns an empty string. The schedule must
/// have a key tile and a query tile.
std::string findFusionFault(AttentionGradOp op, const Schedule &schedule);

/// What the rows of any tile are a multiple of.
constexpr int64_t tileMultiple = 8;

/// Returns a message if lists of blocks that the caller gives cannot be visited
/// with the tiles or the other keys of the schedule, which belongs to gradients
/// if `isGradient`. Otherwise, and if there are no lists, returns an empty
/// string. `blockSizes` has the numbers of queries and keys of a block. Tiles
/// must divide them, and be multiples of the ones that are given; tiles without
/// a value are not checked.
std::string findBlockFault(std::optional<llvm::ArrayRef<int64_t>> blockSizes,
                           const Schedule &schedule, bool isGradient,
                           int64_t queryMultiple = tileMultiple,
                           int64_t keyMultiple = tileMultiple);

/// As `findBlockFault`, for the lists of blocks of `op`. Also returns a message
/// if keys or values are in pages, and on this machine a key tile can neither
/// divide a page nor consist of whole pages.
std::string findTileFault(AttentionOpInterface op, const Machine &machine,
                          const Schedule &schedule);

/// If `findTileFault` finds a fault in `schedule`, a complete proposal of a
/// model, replaces its tiles by the nearest tiles without a fault that the
/// machine can have. On a GPU, the keys that depend on tiles are chosen again.
/// Keys of `given`, which are fixed already, keep their values. If there are no
/// such tiles, the schedule does not change.
void fitTiles(AttentionOpInterface op, const Problem &problem,
              const Machine &machine, const Schedule &given,
              Schedule &schedule);

/// Completes the schedule of gradients: keys that have a value keep it, and the
/// others get the values that the model proposes for the problem on the
/// machine. Returns a message if the resulting schedule is not possible,
/// otherwise an empty string.
std::string proposeSchedule(AttentionGradOp op, const Problem &problem,
                            const Machine &machine, Schedule &schedule);

} // namespace flash

#endif // FLASH_DIALECT_FLASH_TRANSFORMS_GETPROBLEM_H
