//===- RowSoftmax.h - The softmax of whole rows in two passes ---*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_LINALGTOTILE_ROWSOFTMAX_H
#define FLASH_LIB_CONVERSION_LINALGTOTILE_ROWSOFTMAX_H

#include "flash/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/Builders.h"

namespace flash {

/// A place in global memory; the indices of a matrix end with row and column.
struct MemoryPlace {
  mlir::Value memory;
  llvm::SmallVector<mlir::Value> indices;
};

/// A softmax as values of the kernel.
struct RowSoftmax {
  MemoryPlace input, output;
  MemoryPlace lse;     ///< Of the row, or nothing.
  mlir::Value rows;    ///< How many rows exist.
  mlir::Value columns; ///< The elements of a row.
  mlir::Value sink;    ///< Null or f32.
  /// Whether a row of only -inf becomes 0 rather than NaN.
  bool zeroEmptyRows;
};

/// Emits the softmax of up to `rows` rows by a block of `warps` warps.
void emitRowSoftmax(mlir::OpBuilder &b, mlir::Location loc, int64_t rows,
                    int64_t warps, const RowSoftmax &softmax);

} // namespace flash

#endif // FLASH_LIB_CONVERSION_LINALGTOTILE_ROWSOFTMAX_H
