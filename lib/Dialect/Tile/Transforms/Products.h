//===- Products.h - Products that are in flight -----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_TILE_TRANSFORMS_PRODUCTS_H
#define FLASH_LIB_DIALECT_TILE_TRANSFORMS_PRODUCTS_H

#include "flash/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace flash::tile {

/// Whether the op, of the block, is computed from one of `values` by ops of the
/// block.
bool dependsOn(mlir::Operation *op, mlir::Block &block,
               const llvm::SmallPtrSetImpl<mlir::Value> &values);

/// The ring in which the tile lies; null if it lies in none.
RingOp getRing(mlir::Value tile);

/// Whether the product reads what threads have put into a ring.
bool readsPut(MmaAsyncOp product);

/// Lets each wait of the block name the products that may go on: those that
/// were started behind its own and not waited for.
void nameYounger(mlir::Block &block);

} // namespace flash::tile

#endif // FLASH_LIB_DIALECT_TILE_TRANSFORMS_PRODUCTS_H
