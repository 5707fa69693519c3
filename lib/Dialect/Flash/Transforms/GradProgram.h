//===- GradProgram.h - Programs of the gradients --------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_FLASH_TRANSFORMS_GRADPROGRAM_H
#define FLASH_LIB_DIALECT_FLASH_TRANSFORMS_GRADPROGRAM_H

#include "TileBuilder.h"
#include "Visits.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace flash {

/// Writes parallel loops none of whose iterations adds to what another one has
/// written, so that results are the same in each run.
class GradProgram : protected TileBuilder {
protected:
  explicit GradProgram(AttentionGradOp op);

  using Body = llvm::function_ref<void(mlir::ValueRange position,
                                       mlir::ValueRange outputs)>;

  mlir::OpFoldResult index(int64_t value) { return b.getIndexAttr(value); }
  mlir::Value asValue(mlir::OpFoldResult value);
  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, value);
  }
  mlir::Value zeros(llvm::ArrayRef<int64_t> shape) {
    return filled(shape, 0.0);
  }
  mlir::Value extract(mlir::Value tensor,
                      llvm::ArrayRef<mlir::OpFoldResult> first,
                      mlir::OpFoldResult rows, const TiledDim &dim) {
    return loadRows(b, b.getLoc(), tensor, first, rows, dim.tile,
                    /*toEnd=*/!dim.mayEndBefore);
  }

  /// A kernel, over the rows of a view in memory if `rows` are given; the body
  /// stores its results with `storeRows`.
  llvm::SmallVector<mlir::Value>
  parallelLoop(llvm::ArrayRef<mlir::OpFoldResult> ends,
               llvm::ArrayRef<int64_t> steps,
               llvm::ArrayRef<mlir::Value> outputs, const Schedule &schedule,
               Body body, mlir::Value rows = {});
  /// A loop that carries `state`, over what is no tile: heads, batches, sums.
  llvm::SmallVector<mlir::Value> loop(
      mlir::Value from, mlir::Value to, int64_t step, mlir::ValueRange state,
      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value at,
                                                        mlir::ValueRange state)>
          body);

  /// What adds the tile of a visit to `state`.
  using Step = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      VisitOp visit, mlir::ValueRange state)>;
  /// The results of a block map, or nulls; or lists of blocks that the caller
  /// gives. `heads` is how many heads each tile is visited for, or null.
  struct Lists {
    mlir::Value tiles, counts, ranks = {}, heads = {};
  };
  /// Visits the tiles of `dim`, which are of this kind: all before `end`, or
  /// those that are left of them to the tile, or block, of so many rows at
  /// `position` = (batch, head, start), if there are lists.
  llvm::SmallVector<mlir::Value>
  visitTiles(VisitKind kind, const TiledDim &dim, mlir::Value end,
             const Lists &lists, llvm::ArrayRef<mlir::Value> position,
             int64_t rows, mlir::ValueRange state, Step step);
  /// Visits the tiles of `dim` from `from` on and before `to`, without a test
  /// of the mask.
  llvm::SmallVector<mlir::Value> visitAll(VisitKind kind, const TiledDim &dim,
                                          mlir::Value from, mlir::Value to,
                                          mlir::ValueRange state, Step step);

  /// Bulk copies take the statistics of a step, eight queries in a row: the
  /// statistics in this form, and in it the ones of the step from `first` =
  /// (batch, head, query) on, whose first `existing` queries exist.
  mlir::Value splitIntoRowsOf8(mlir::Value statistics);
  mlir::Value extractFromRowsOf8(mlir::Value rowsOf8,
                                 llvm::ArrayRef<mlir::OpFoldResult> first,
                                 mlir::OpFoldResult existing,
                                 const TiledDim &steps);

  /// Whether batches are sequences of different lengths.
  bool areSequences() { return op.getQueryLengths() || op.getKeyLengths(); }
  /// The dimension as long as the batch has it, if there are lengths.
  TiledDim ofBatch(TiledDim dim, mlir::Value lengths, mlir::Value batch);
  /// The first tile of a batch, computed where the batch becomes known: each
  /// step of the loops around the builder would read the offsets.
  static mlir::Value emitFirstTile(mlir::OpBuilder &b, mlir::Location loc,
                                   AddressOpInterface view, mlir::Value batch,
                                   int64_t tile);
  /// Where memory with something for each row of a view has what is of this
  /// row: each batch starts at a multiple of `tile`, behind the ones before, so
  /// that all take no more memory than rows do. Null is a view of a batch as
  /// it is.
  static llvm::SmallVector<mlir::OpFoldResult>
  emitPosition(mlir::OpBuilder &b, mlir::Location loc, AddressOpInterface view,
               int64_t tile, mlir::Value batch, mlir::Value head,
               mlir::Value row);
  /// The sizes of such memory, where these are the view's.
  llvm::SmallVector<mlir::OpFoldResult>
  getSizesOfPositions(AddressOpInterface view, int64_t tile,
                      llvm::ArrayRef<mlir::OpFoldResult> sizes);
  /// Where the statistics of a query are.
  llvm::SmallVector<mlir::OpFoldResult>
  emitStatistics(mlir::Value batch, mlir::Value head, mlir::Value row) {
    return emitPosition(b, b.getLoc(), queryAddress, rowsOfStatistics, batch,
                        head, row);
  }

  /// Rows whose statistics a batch in memory starts at a multiple of: a
  /// multiple of whatever programs read and write at a time.
  static constexpr int64_t rowsOfStatistics = 128;

  AttentionGradOp op;
  /// Where queries lie in memory, if not as their dimensions say.
  AddressOpInterface queryAddress;
  Schedule schedule;
  HeadGroups groups;
};

/// Fails after an error at `op` if the gradient of one of its captured tensors
/// has no program.
llvm::LogicalResult verifyCapturedReads(AttentionGradOp op);

/// The gradient of `captured`, one of the captured tensors of `op`; `lseLog2`
/// and `delta` are of each query, as in the steps. Where the schedule sums up
/// diagonals, `diagonals` has the sums of the gradients of scores, [batches,
/// heads, tiles of keys, steps of queries, diagonals], for each pair of tiles
/// that the mask visits, as `flash.insert_diagonals` gives them; else it is
/// null.
mlir::Value emitCapturedGrad(AttentionGradOp op, mlir::Value captured,
                             mlir::Value lseLog2, mlir::Value delta,
                             mlir::Value diagonals);

} // namespace flash

#endif // FLASH_LIB_DIALECT_FLASH_TRANSFORMS_GRADPROGRAM_H
