//===- Visits.h - Builds visits of tiles and what they load -----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_FLASH_TRANSFORMS_VISITS_H
#define FLASH_LIB_DIALECT_FLASH_TRANSFORMS_VISITS_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Utils/TileSlices.h"

namespace flash {

/// Which tiles a `flash.visit` goes over, as its operands say.
struct VisitedTiles {
  VisitKind kind;
  int64_t tile;
  mlir::Value from = {}, to = {}, by = {}, distance = {};
  llvm::SmallVector<mlir::OpFoldResult, 2> exist = {};
  mlir::Value list = {}, counts = {}, ranks = {}, heads = {};
  llvm::SmallVector<mlir::Value, 3> row = {};
  int64_t cut = 0; ///< Elements of an entry that a caller gives, else 0.
  bool fillOnce = false, readAhead = false, neutralZeros = false;
  mlir::DenseI64ArrayAttr multiples = {};
};

/// What the numbers of queries and of keys of each batch are multiples of, as
/// `op` says, an attention or its gradients; null if it says nothing.
template <typename OpTy>
mlir::DenseI64ArrayAttr getMultiplesOfBatches(OpTy op) {
  auto multiples = op.getMultiples();
  if (!multiples)
    return {};
  return mlir::Builder(op.getContext())
      .getDenseI64ArrayAttr({op.getQueryLengths() ? 1 : multiples->front(),
                             op.getKeyLengths() ? 1 : multiples->back()});
}

/// Emits a visit whose step gives the next state; returns the last one.
llvm::SmallVector<mlir::Value> emitVisit(
    mlir::OpBuilder &b, mlir::Location loc, const VisitedTiles &tiles,
    mlir::ValueRange state,
    llvm::function_ref<llvm::SmallVector<mlir::Value>(VisitOp visit,
                                                      mlir::ValueRange state)>
        step);

/// Columns of a tensor that a kernel's positions divide between them.
struct ColumnsOfPosition {
  int64_t count;
  mlir::Value first = {}; ///< Null if all of them are each position's.
};

/// Emits a `flash.load_rows` of a tile of `tile` rows at `first` = (batch,
/// head, row). The first `rows` exist, up to the last one of the tensor where
/// these are `toEnd`; `heads` heads are packed in it. The tile has all columns,
/// or those that a position has.
mlir::Value loadRows(mlir::OpBuilder &b, mlir::Location loc, mlir::Value source,
                     llvm::ArrayRef<mlir::OpFoldResult> first,
                     mlir::OpFoldResult rows, int64_t tile, bool toEnd,
                     int64_t heads = 1,
                     std::optional<ColumnsOfPosition> columns = std::nullopt);

/// `end` if there are rows, else 0: where a visit for a tile without rows ends.
mlir::OpFoldResult endUnlessEmpty(mlir::OpBuilder &b, mlir::Location loc,
                                  mlir::OpFoldResult rows,
                                  mlir::OpFoldResult end);

/// Whether a result is stored where the rows of batches of these lengths lie in
/// memory, and is nothing else: rows that do not exist are stored nowhere.
bool isStoredByLengths(mlir::Value result, mlir::Value lengths);

/// The rows that a kernel with these results goes over: the view, if it is in
/// memory and all results are stored as its rows are, else null, which is all
/// rows that a batch might have.
mlir::Value getRowsOfKernel(mlir::Value view, mlir::ValueRange results,
                            mlir::Value lengths);

/// Why keys cannot be split for these results: all of them must be stored as
/// rows of the view, or none. Empty if they can.
std::string findSplitFault(mlir::Value view, mlir::ValueRange results,
                           mlir::Value lengths);

/// Emits a `flash.store_rows` of the first `rows` rows of a tile, in each head
/// of those that are packed in it, into a kernel's `destination` at `position`,
/// from `column` on if it is given.
void storeRows(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tile,
               mlir::Value destination,
               llvm::ArrayRef<mlir::OpFoldResult> position,
               mlir::OpFoldResult rows, int64_t heads = 1,
               mlir::Value column = {});

} // namespace flash

#endif // FLASH_LIB_DIALECT_FLASH_TRANSFORMS_VISITS_H
