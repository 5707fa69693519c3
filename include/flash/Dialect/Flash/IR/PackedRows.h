//===- PackedRows.h - Sequences that lie behind each other ------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_FLASH_IR_PACKEDROWS_H
#define FLASH_DIALECT_FLASH_IR_PACKEDROWS_H

#include "mlir/IR/Builders.h"

namespace flash {

/// Emits where the rows of sequences lie in `memory`, `[1, H, T, ...]`, in
/// which sequence b has the rows from `offsets[b]` to `offsets[b + 1]`: what
/// `flash.unpack` and `flash.pack` answer as an `AddressOpInterface`.
struct PackedRows {
  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Value memory, offsets;

  llvm::SmallVector<mlir::OpFoldResult>
  emitAddress(llvm::ArrayRef<mlir::OpFoldResult> position);
  mlir::Value emitLength(mlir::Value batch);
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> emitGaps();
  llvm::SmallVector<mlir::OpFoldResult> emitSizes();
  mlir::Value emitTileCount(int64_t rows);
  /// Each sequence before it has at most the tiles that its rows fill behind
  /// each other, and one more. That needs no sum over the sequences.
  mlir::Value emitFirstTile(mlir::Value batch, int64_t rows);
  mlir::Value emitBatchOfTile(mlir::Value number, int64_t rows);

private:
  mlir::Value constant(int64_t value);
  mlir::Value apply(mlir::AffineExpr expr,
                    llvm::ArrayRef<mlir::Value> operands);
  mlir::Value emitRows();
  mlir::Value emitBatches();
  /// An entry of the offsets, at least `least` and at most the rows there are.
  mlir::Value emitOffset(mlir::Value at, mlir::Value least);
  mlir::Value emitStart(mlir::Value batch);
};

} // namespace flash

#endif // FLASH_DIALECT_FLASH_IR_PACKEDROWS_H
