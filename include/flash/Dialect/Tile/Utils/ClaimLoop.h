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

/// Whether blocks of the kernel claim their tiles.
bool claimsTiles(mlir::gpu::GPUFuncOp kernel);

/// Makes the loop that the claim ends one that goes on while the number which
/// `emitNumber` gives for a step, at the builder's place, is less than the
/// loop's upper bound. The claim is gone then.
void lowerClaimLoop(
    mlir::OpBuilder &b, ClaimOp claim,
    llvm::function_ref<mlir::Value(mlir::Value step)> emitNumber);

} // namespace flash::tile

#endif // FLASH_DIALECT_TILE_UTILS_CLAIMLOOP_H
