//===- SharedTile.h - Addresses in shared-memory tiles ----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_TILETONVX_SHAREDTILE_H
#define FLASH_LIB_CONVERSION_TILETONVX_SHAREDTILE_H

#include "Patterns.h"

namespace flash {

/// What the swizzle combines with a chunk's offset in bytes: the bits 7 and up
/// of the row's offset, moved to the bits 4 and up.
mlir::Value getSwizzleOfRow(ThreadBuilder &t, tile::SmemType type,
                            mlir::Value row);

/// The byte offset, inside the first panel, of a chunk of 16 bytes of a row;
/// both are indices. See `!tile.smem`.
mlir::Value getSwizzledOffset(ThreadBuilder &t, tile::SmemType type,
                              mlir::Value row, mlir::Value chunk);

/// The byte offset of an element of the tile; row and column are indices.
mlir::Value getElementOffset(ThreadBuilder &t, tile::SmemType type,
                             mlir::Value row, mlir::Value column);

/// The address of the `i`-th row's value that a thread has of a register tile
/// `rows` with one value for each row. In shared memory the values lie one
/// behind the other, along the rows of the tile.
mlir::Value getRowAddress(ThreadBuilder &t, tile::SmemType type,
                          mlir::Value tile, mlir::RankedTensorType rows,
                          int64_t i);

/// Where a panel of the tile begins; the tile itself if `panel` is null.
mlir::Value advanceToPanel(ThreadBuilder &t, tile::SmemType type,
                           mlir::Value tile, mlir::Value panel);

/// Loads 1, 2 or 4 matrices of 8 rows of 16 bytes by ldmatrix: their registers.
llvm::SmallVector<mlir::Value>
loadMatrices(ThreadBuilder &t, mlir::Value address, int count, bool transpose);

/// Loads or stores 8 x 8 matrices of 16-bit elements, or 8 x 4 of 32-bit ones,
/// by ldmatrix and stmatrix. The addresses of the rows come from the lanes:
/// lane l gives row `laneRow` and chunk `laneChunk` of the group of matrices.
class MatrixAccess {
public:
  /// `laneRow` is below 16, or that much more than the first row of a warp,
  /// which is a multiple of 16; `laneChunk` is 0 or 1.
  MatrixAccess(ThreadBuilder t, tile::SmemType type, mlir::Value base,
               mlir::Value laneRow, mlir::Value laneChunk);

  /// `count` (1, 2 or 4) registers of the group at the given row, a multiple of
  /// 8, and chunk of the tile, an even number.
  llvm::SmallVector<mlir::Value> load(int64_t row, int64_t chunk, int count,
                                      bool transpose);
  /// Stores 2 or 4 registers, of 16-bit elements.
  void store(int64_t row, int64_t chunk, mlir::ValueRange registers);

private:
  mlir::Value getAddress(int64_t row, int64_t chunk);

  ThreadBuilder t;
  tile::SmemType type;
  mlir::Value rowBase;  ///< Pointer to the lane's row of the first group.
  mlir::Value swizzled; ///< The lane's chunk, in bytes, swizzled.
};

} // namespace flash

#endif // FLASH_LIB_CONVERSION_TILETONVX_SHAREDTILE_H
