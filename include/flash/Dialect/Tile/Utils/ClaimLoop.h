//===- ClaimLoop.h - Loops over tiles that blocks claim ---------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_TILE_UTILS_CLAIMLOOP_H
#define FLASH_DIALECT_TILE_UTILS_CLAIMLOOP_H

#include "flash/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"

namespace flash::tile {

/// A claim of the kernel whose blocks claim their tiles; null if they do not.
ClaimOp findClaim(mlir::gpu::GPUFuncOp kernel);

/// Emits what a claim shares of the tile `number`, and behind it, for a claim
/// that needs it, whether the tile has no work; zeros behind the last tile,
/// where there is nothing to read.
mlir::SmallVector<mlir::Value>
emitScalarsOfTile(mlir::OpBuilder &b, ClaimOp claim, mlir::Value number);

/// Makes the loop that the claim ends one that goes on while the number that
/// `emitResults` gives for a step, at the builder's insertion point, is less
/// than the loop's upper bound. Behind the number it gives what the claim
/// shares, or nothing, where no op of the loop uses that. The claim is gone
/// then.
void lowerClaimLoop(
    mlir::OpBuilder &b, ClaimOp claim,
    llvm::function_ref<mlir::SmallVector<mlir::Value>(mlir::Value step)>
        emitResults);

} // namespace flash::tile

#endif // FLASH_DIALECT_TILE_UTILS_CLAIMLOOP_H
