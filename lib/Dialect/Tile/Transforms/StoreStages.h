//===- StoreStages.h - What bulk stores go through --------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_TILE_TRANSFORMS_STORESTAGES_H
#define FLASH_LIB_DIALECT_TILE_TRANSFORMS_STORESTAGES_H

#include "flash/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace flash::tile {

/// Shared memory that bulk stores use, one behind the other.
struct StoreStage {
  llvm::SmallVector<StoreBulkOp, 2> stores;
  int64_t bytes;
};

/// The memory of the kernel's bulk stores, as little as there can be.
llvm::SmallVector<StoreStage> getStoreStages(mlir::gpu::GPUFuncOp kernel);

} // namespace flash::tile

#endif // FLASH_LIB_DIALECT_TILE_TRANSFORMS_STORESTAGES_H
