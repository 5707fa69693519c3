//===- LoopEntry.h - Loops that are known to be entered ---------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_TILE_TRANSFORMS_LOOPENTRY_H
#define FLASH_LIB_DIALECT_TILE_TRANSFORMS_LOOPENTRY_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace flash::tile {

/// The choice that reaches the loop only where it has an iteration: its
/// condition is that the lower bound is less than the upper bound, or the
/// distance of the bounds is known. Null if the loop stands in no such choice.
mlir::scf::IfOp getEntryGuard(mlir::scf::ForOp loop);

/// Emits whether the loop has an iteration, the condition of a guard.
mlir::Value emitIsEntered(mlir::OpBuilder &b, mlir::scf::ForOp loop);

/// Whether the loop has an iteration whenever it is reached: bounds at a
/// constant distance or its guard say so.
bool isAlwaysEntered(mlir::scf::ForOp loop);

/// The first loop behind the op that is wanted, in the op's block or in a
/// choice there that guards it; null if there is none.
mlir::scf::ForOp
findLoopBehind(mlir::Operation *op,
               llvm::function_ref<bool(mlir::scf::ForOp)> isWanted);

/// Moves ops that stand before the loop into its first iteration, behind an op
/// of its body, or, where the loop is not entered, in front of it.
void moveIntoFirstIteration(mlir::scf::ForOp loop,
                            llvm::ArrayRef<mlir::Operation *> ops,
                            mlir::Operation *behind);

} // namespace flash::tile

#endif // FLASH_LIB_DIALECT_TILE_TRANSFORMS_LOOPENTRY_H
