//===- Dequantize.h - Elements of 8 bits in registers -----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_TILETONVX_DEQUANTIZE_H
#define FLASH_LIB_CONVERSION_TILETONVX_DEQUANTIZE_H

#include "SharedTile.h"

namespace flash {

/// The second operand of a product of mma.sync, a tile of elements of 8 bits in
/// shared memory, which a thread converts in the registers of its fragments.
class QuantizedFactor {
public:
  /// `scaleOfRow` yields the scale of a row. The elements become ones of
  /// `type`, and the rows of a `transposed` tile are the columns of the
  /// product.
  QuantizedFactor(ThreadBuilder t, tile::SmemType tile, mlir::Value address,
                  mlir::Region &scaleOfRow, mlir::Type type, bool transposed);

  /// Loads what a step over 16 rows of the operand, not transposed, needs; the
  /// steps come one behind the other.
  void load(int64_t step);
  /// The two registers of each of the fragments of two blocks of eight columns,
  /// from what was loaded last. Of a tile that is not transposed, a pair of
  /// bytes has an even column and the odd one behind it, so one fragment is the
  /// even columns of the 16, the other one the odd columns.
  std::array<llvm::SmallVector<mlir::Value>, 2> convert(int64_t block);

private:
  /// An operand of 16 rows with its columns in `order`, as f32.
  llvm::SmallVector<mlir::Value> extend(llvm::ArrayRef<mlir::Value> operand,
                                        llvm::ArrayRef<mlir::Value> order);
  /// Scales elements that neighbour in the inner dimension, and rounds them.
  mlir::Value round(mlir::Value low, int64_t scaleOfLow, mlir::Value high,
                    int64_t scaleOfHigh);

  ThreadBuilder t;
  mlir::Type element, type; ///< Of the tile and of the operand.
  bool transposed;
  int64_t chunks, rows; ///< Of 16 columns of the tile, and its rows.
  MatrixAccess loader;
  /// Second operands of the products that extend elements, with a 1 in each
  /// column.
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> orders;
  /// For all rows of the tile from which the thread has elements.
  llvm::SmallVector<mlir::Value> scales;
  /// What a step reads of 16 columns, or, transposed, of each of 16.
  std::array<llvm::SmallVector<mlir::Value>, 2> words;
  int64_t step = 0;
};

} // namespace flash

#endif // FLASH_LIB_CONVERSION_TILETONVX_DEQUANTIZE_H
