//===- KeepOfTile.h - What a region keeps of a whole tile -------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_FLASH_TRANSFORMS_KEEPOFTILE_H
#define FLASH_LIB_DIALECT_FLASH_TRANSFORMS_KEEPOFTILE_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace flash {

/// The values of an index in a tile: those from `least` to `most`, at least.
/// One value that is both is the same for all elements.
struct IndexRange {
  mlir::Value least, most;
  bool isUniform() const { return least && least == most; }
};

/// What is known of a condition on the elements of a tile: an i1 that says
/// whether it holds for all of them, and one whether it may hold for any. Null
/// where that needs a test of each element.
struct TileCondition {
  mlir::Value all, any;
};

/// What is known of elements for which both conditions hold.
TileCondition emitAnd(mlir::ImplicitLocOpBuilder &b, TileCondition lhs,
                      TileCondition rhs);

/// The range of what a read of a captured tensor returns for the elements of a
/// tile, as indices; two nulls where it is not known.
using RangeOfRead = llvm::function_ref<IndexRange(mlir::tensor::ExtractOp)>;

/// Emits what the region of a block map keeps of a tile, without evaluating its
/// elements: interval arithmetic on sums, differences, extremes and comparisons
/// of positions, of what is the same for the whole tile, such as a window that
/// is read for a head, and of what is read for each row, such as the number of
/// its document.
TileCondition emitKeepOfTile(mlir::ImplicitLocOpBuilder &b, mlir::Region &keep,
                             IndexRange batch, IndexRange head,
                             IndexRange query, IndexRange key,
                             RangeOfRead rangeOfRead);

} // namespace flash

#endif // FLASH_LIB_DIALECT_FLASH_TRANSFORMS_KEEPOFTILE_H
