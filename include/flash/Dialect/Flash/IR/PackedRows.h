//===- PackedRows.h - Rows of sequences in one packed tensor ----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_FLASH_IR_PACKEDROWS_H
#define FLASH_DIALECT_FLASH_IR_PACKEDROWS_H

#include "mlir/IR/Builders.h"

namespace flash {

/// Emits the addresses of rows of packed sequences. `memory` is a tensor
/// `[M, H, T, D]` or `[M, H, T]`, of M T rows one behind the other, in which
/// sequence b has the rows from `offsets[b]` to before `offsets[b + 1]`.
/// `offsets` has one more element than there are sequences. Offsets are clamped
/// to the range from 0 to M T, a sequence that would end before it starts has
/// no rows, and one ends with the T rows among which it starts, so no sequence
/// has rows outside of `memory`. The functions implement the methods of
/// `AddressOpInterface` for `flash.unpack` and `flash.pack`.
struct PackedRows {
  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Value memory, offsets;
  /// How many sequences have rows, if it is in memory.
  mlir::Value count = {};
  /// M and T, unless they are taken from `memory`.
  mlir::ValueRange sizes = {};

  /// The indices in `memory`, (m, head, row), of the first column of a row of
  /// the view, whose position is (batch, head, row). The position need not be a
  /// row that exists.
  llvm::SmallVector<mlir::OpFoldResult>
  emitAddress(llvm::ArrayRef<mlir::OpFoldResult> position);
  /// The number of rows of the sequence.
  mlir::Value emitLength(mlir::Value batch);
  /// The rows before the first sequence and the rows behind the last one, each
  /// from a row to before another one; of memory with M = 1.
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> emitGaps();
  /// The sizes of the view: the sizes of `memory`, with the number of sequences
  /// instead of M.
  llvm::SmallVector<mlir::OpFoldResult> emitSizes();
  /// An upper bound on the number of tiles of `rows` rows of all sequences; 0
  /// if there are no rows or no sequences.
  mlir::Value emitTileCount(int64_t rows);
  /// The number of the first tile of the sequence. It is the number of whole
  /// tiles in all rows before the sequence and, for each sequence before it,
  /// the rows of a tile but one, which its last tile may lack. So it needs no
  /// sum over the sequences, and some numbers may belong to no tile; none if
  /// each sequence has one row.
  mlir::Value emitFirstTile(mlir::Value batch, int64_t rows);
  /// The sequence to which the tile with this number belongs: the last one
  /// whose first tile is not behind it.
  mlir::Value emitBatchOfTile(mlir::Value number, int64_t rows);

private:
  mlir::Value constant(int64_t value);
  mlir::Value apply(mlir::AffineExpr expr,
                    llvm::ArrayRef<mlir::Value> operands);
  mlir::Value emitSize(int64_t dim);
  /// M T, and T or, where T is 0, 1.
  mlir::Value emitRows();
  mlir::Value emitRowsOfPart();
  /// Whether M may be other than 1.
  bool hasParts();
  /// The number m of the T rows among which a sequence starts.
  mlir::Value emitPart(mlir::Value start);
  mlir::Value emitBatches();
  /// The element `at` of the offsets, clamped to be at least `least` and at
  /// most the number of rows.
  mlir::Value emitOffset(mlir::Value at, mlir::Value least);
  mlir::Value emitStart(mlir::Value batch);
  /// The sequence of a tile if all were equally long: not negative, and perhaps
  /// behind the last one.
  mlir::Value emitGuess(mlir::Value number, int64_t rows);
};

} // namespace flash

#endif // FLASH_DIALECT_FLASH_IR_PACKEDROWS_H
