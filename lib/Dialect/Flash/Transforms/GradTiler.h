//===- GradTiler.h - The programs of one operation of gradients -*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_FLASH_TRANSFORMS_GRADTILER_H
#define FLASH_LIB_DIALECT_FLASH_TRANSFORMS_GRADTILER_H

#include "GradProgram.h"

namespace flash {

/// Writes the programs of one operation: of the rows, of tiles of queries, of
/// tiles of keys and of the sinks. No iteration of their loops adds to what
/// another one has written, except in a fixed order, so the result is the same
/// in each run.
class GradTiler : GradProgram {
public:
  explicit GradTiler(AttentionGradOp op);
  void run();

private:
  /// A tensor of the sizes and elements of `tensor`, without values.
  mlir::Value emptyLike(mlir::Value tensor);
  /// The schedule of a program over tiles of so many rows.
  Schedule ofTiles(int64_t rows, std::optional<int64_t> stages);
  /// How many rows exist of the tile of a visit; null if all do.
  mlir::Value countRows(VisitOp visit, const TiledDim &dim) {
    return dim.isRagged() ? mlir::Value(visit.getRowArgs()[0]) : mlir::Value();
  }
  /// The count, or all rows of a tile if there is none.
  mlir::OpFoldResult orAll(mlir::Value count, const TiledDim &dim) {
    return count ? mlir::OpFoldResult(count) : index(dim.tile);
  }
  /// Gives a step the score region.
  void addScore(StepOpInterface step);
  /// `sum` times `factor`, in the type of the operands; 0 from row `end` on, if
  /// there is one.
  mlir::Value finish(mlir::Value sum, double factor, mlir::Value end);

  void emitRows();
  /// Orders the tiles of a program before or behind the gradients.
  void setOrderBesideGradients(mlir::ValueRange results);
  /// In which order blocks take the tiles of the program with these results.
  void setOrder(mlir::ValueRange results, TileOrder order);
  /// How many counts an iteration of the program of rows has. There are as many
  /// iterations as tiles of queries, or more; where blocks claim their tiles
  /// there is a count besides.
  int64_t getCountsOfIteration() const {
    return schedule.has(ScheduleFeatures::Persistent) ? 2 : 1;
  }
  /// Writes 0 to the counts of an iteration.
  void insertZeros(mlir::Value counts, mlir::ValueRange position);
  mlir::Value emitQueryGrad();
  /// The gradients of keys and values by a program for both, or by one for
  /// each.
  llvm::SmallVector<mlir::Value> emitKeyGrads();
  /// The program over tiles of keys for some of their gradients.
  llvm::SmallVector<mlir::Value> emitKeyProgram(bool ofKeys, bool ofValues);
  /// What a step adds to beside the gradients of keys: the gradients of its
  /// queries, and where scores are added up by their distance, those sums. They
  /// are the last of the state that loops carry.
  struct AddToOthers {
    /// The tile of the gradients of queries that a step adds to.
    llvm::function_ref<mlir::Value(mlir::Value head, mlir::Value at,
                                   mlir::OpFoldResult existing,
                                   mlir::ValueRange sums)>
        begin;
    /// What becomes of the sums when it has, of keys before `end`.
    llvm::function_ref<llvm::SmallVector<mlir::Value>(
        KeyGradStepOp step, mlir::Value head, VisitOp visit,
        mlir::OpFoldResult existing, mlir::ValueRange sums, mlir::Value end)>
        end;
  };
  /// The finished gradients of the tile of keys at `start`, and behind them the
  /// sums that it has added to, if there are any.
  llvm::SmallVector<mlir::Value>
  emitKeyTile(mlir::Value batch, mlir::Value keyHead, mlir::Value start,
              bool ofKeys, bool ofValues, mlir::ValueRange sums,
              const AddToOthers &add);
  mlir::Value emitSinkGrad();

  //===--------------------------------------------------------------------===//
  // One program for the gradients of queries, keys and values
  //===--------------------------------------------------------------------===//

  /// In how many parts the columns of a sum of the gradients of queries are:
  /// it has rows for all warpgroups, and a step may have fewer queries.
  int64_t getPartsOfSum() const { return keys.tile / querySteps.tile; }
  /// The shape of a sum, with one part below the other.
  llvm::SmallVector<int64_t> getShapeOfSum() {
    return {keys.tile, op.getHeadDim() / getPartsOfSum()};
  }
  /// The number of the tile that starts at `start`.
  mlir::OpFoldResult numberOf(mlir::Value start, const TiledDim &dim);
  mlir::OpFoldResult countTiles(const TiledDim &dim);
  /// In which order blocks take the tiles of keys.
  TileOrder getOrderOfKeys();
  /// The sums for all tiles of queries, and nothing in them.
  mlir::Value emptySums();
  /// Rounds the sums of tiles of queries.
  mlir::Value emitQueryGradOfSums();
  /// Sums of the diagonals of all pairs of tiles, and nothing in them:
  /// [batches, heads, tiles of keys, steps of queries, diagonals]; and the sums
  /// of a tile of keys, [heads, steps, diagonals].
  mlir::Value emptyDiagonals();
  mlir::Value extractDiagonals(mlir::Value all,
                               llvm::ArrayRef<mlir::OpFoldResult> offsets,
                               llvm::ArrayRef<mlir::OpFoldResult> sizes);

  /// Where warps have no roles: a program over heads of keys, in which one tile
  /// of keys after the other adds to the sums of the head's queries.
  llvm::SmallVector<mlir::Value> emitHeadProgram();
  mlir::Value addTiles(mlir::Value tile, mlir::Value sum);
  /// `rows` rows of sums from `first` on, as a tile of `dim`.
  mlir::Value extractSums(mlir::Value sums,
                          llvm::ArrayRef<mlir::OpFoldResult> first,
                          mlir::OpFoldResult rows, const TiledDim &dim);
  /// `whole` with the first `rows` rows of the tile from `first` on.
  mlir::Value insertTile(mlir::Value tile, mlir::Value whole,
                         llvm::ArrayRef<mlir::OpFoldResult> first,
                         mlir::OpFoldResult rows);

  /// In memory with something for each tile of so many queries: where that of
  /// the tile of a query is, and the sizes for all tiles.
  llvm::SmallVector<mlir::Value> emitTile(mlir::Value batch, mlir::Value head,
                                          mlir::Value row, int64_t rows);
  llvm::SmallVector<mlir::OpFoldResult> getSizesOfTiles(int64_t rows);
  /// Whether rows of queries that do not exist are stored, as zeros.
  bool clearsQueryGrad() {
    return op.getQueryLengths() &&
           !isStoredByLengths(op.getQueryGrad(), op.getQueryLengths());
  }

  mlir::Type elementType;
  TiledDim queries, keys;
  /// What the programs over tiles of keys and of queries visit at a time.
  TiledDim querySteps, keySteps;
  double scale;
  /// Rows of the output whose delta an iteration computes.
  int64_t deltaRows;
  /// The log-sum-exp in base 2 and the delta of each query; and these as
  /// programs over keys take them.
  mlir::Value lseLog2, delta, lseLog2OfSteps, deltaOfSteps;
  /// If there is one program: the gradients of each tile of queries before
  /// their scale, and how many tiles of keys have been added to them.
  mlir::Value sums, counts;
  /// The sums of the diagonals of the gradients of scores, for each pair of
  /// tiles, if the schedule has `sum_diagonals`.
  mlir::Value diagonals;
};

} // namespace flash

#endif // FLASH_LIB_DIALECT_FLASH_TRANSFORMS_GRADTILER_H
