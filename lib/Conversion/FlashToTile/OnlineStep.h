//===- OnlineStep.h - The online softmax on register tiles ------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_FLASHTOTILE_ONLINESTEP_H
#define FLASH_LIB_CONVERSION_FLASHTOTILE_ONLINESTEP_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace flash {

/// The types of the register tiles of a block that works on `queries` rows.
struct BlockTypes {
  int64_t queries = 0, warps = 0;
  mlir::MLIRContext *context = nullptr;

  mlir::RankedTensorType fragment(int64_t columns, mlir::Type element) const;
  mlir::RankedTensorType fragment(int64_t columns) const {
    return fragment(columns, mlir::Float32Type::get(context));
  }
  mlir::RankedTensorType rows() const;
  mlir::RankedTensorType lanes() const;
};

/// The state (acc, max, sum) of the queries of a block: a fragment, a value for
/// each row, and partial sums for each lane.
struct OnlineState {
  mlir::Value acc, max, sum;
};

/// What a step reads, as values of the kernel.
struct StepInputs {
  /// The query tile, in registers or shared memory.
  mlir::Value query;
  /// Fetch the tiles; called where their contents are first needed.
  llvm::function_ref<mlir::Value()> fetchKey, fetchValue;
  /// The kernel's value for a value of the program, also for the captured
  /// values of the score region.
  llvm::function_ref<mlir::Value(mlir::Value)> lookup;
  /// Copies the score region's op, which may read captured tensors.
  llvm::function_ref<void(mlir::OpBuilder &, mlir::Operation &,
                          mlir::IRMapping &)>
      copyScoreOp;
};

/// Emits the step `op` from `state` and returns the state after it.
OnlineState emitOnlineStep(mlir::OpBuilder &b, OnlineAttentionOp op,
                           const BlockTypes &types, const OnlineState &state,
                           const StepInputs &inputs);

/// Emits the results of a finalize: the output in the type of its elements, and
/// the log-sum-exp of each row if `withLse`.
std::pair<mlir::Value, mlir::Value>
emitFinalize(mlir::OpBuilder &b, mlir::Location loc, const BlockTypes &types,
             const OnlineState &state, mlir::Type outputElement, bool withLse);

} // namespace flash

#endif // FLASH_LIB_CONVERSION_FLASHTOTILE_ONLINESTEP_H
