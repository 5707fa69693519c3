//===- VisitLowering.h - A visit of tiles as loops --------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_FLASHTOSCF_VISITLOWERING_H
#define FLASH_LIB_CONVERSION_FLASHTOSCF_VISITLOWERING_H

#include "BlockList.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/IR/IRMapping.h"

namespace flash {

/// Replaces one `flash.visit` by loops, each with a copy of the step.
///
/// The visit of `queries` is the visit of `keys` under the transposed mask, so
/// that what is written here of keys and queries holds for it with the words
/// exchanged. Along a diagonal tiles of both go on; what is written of the
/// query tile holds for their distance then, and the tiles that are counted are
/// the tiles of queries.
class VisitLowering {
public:
  explicit VisitLowering(VisitOp visit);
  void run();

private:
  /// What a copy of the step still has to take care of.
  struct StepKind {
    bool masked; ///< Some elements of the tile may be masked.
    bool ragged; ///< Some rows of the tile that is visited may not exist.
    /// The score region may leave out elements, besides the mask.
    bool keeps = true;
    /// Some rows of the tile that stays may not exist, where it has a count.
    bool fixedRagged = true;
    /// Whether the tile may lack any of its elements, as a condition that the
    /// step tests; null if it need not.
    mlir::Value partial = {};
  };
  /// What becomes of the state at the tile that a loop has come to.
  using Step = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value at, mlir::ValueRange state)>;
  using Branch = llvm::function_ref<llvm::SmallVector<mlir::Value>()>;

  mlir::Value constant(int64_t value);
  /// The least (`isMin`) or greatest result of `map` at `operands`.
  mlir::Value extremum(bool isMin, mlir::AffineMap map,
                       llvm::ArrayRef<mlir::OpFoldResult> operands);
  mlir::Value min(mlir::Value lhs, mlir::Value rhs) {
    return ofTwo(/*isMin=*/true, lhs, rhs);
  }
  mlir::Value max(mlir::Value lhs, mlir::Value rhs) {
    return ofTwo(/*isMin=*/false, lhs, rhs);
  }
  mlir::Value ofTwo(bool isMin, mlir::Value lhs, mlir::Value rhs);
  mlir::Value apply(mlir::AffineExpr expr,
                    llvm::ArrayRef<mlir::OpFoldResult> operands);
  /// The bound that an array of `#flash.bound` describes, see MaskTiles: the
  /// least or greatest of the bounds whose guard holds, where each is the
  /// greatest or least of its map's results; `fallback` if there is none.
  mlir::Value combine(bool outerIsMin, mlir::ArrayAttr bounds,
                      mlir::Value fallback);
  /// Whether the point lies in one of the sets.
  mlir::Value isInAny(mlir::ArrayAttr sets, llvm::ArrayRef<mlir::Value> dims);

  /// Copies the step for the tile that starts at `at`.
  llvm::SmallVector<mlir::Value> copyStep(mlir::Value at, mlir::Value rank,
                                          mlir::ValueRange carried,
                                          StepKind kind, mlir::Value head = {});
  auto stepOf(StepKind kind) {
    return [this, kind](mlir::Value at, mlir::ValueRange carried) {
      return copyStep(at, /*rank=*/{}, carried, kind);
    };
  }
  /// Copies what steps of the tile that starts at `at` read, for all copies of
  /// the step that follow.
  void shareTiles(mlir::Value at);
  /// Maps the arguments that say where the tile is and how many rows it has, of
  /// a tile that starts at `at`; rows as far as they have a use.
  void mapTile(mlir::IRMapping &mapping, mlir::Value at, bool ragged);
  /// The rows of the tile of queries (0) or keys (1) that all batches or heads
  /// have.
  int64_t getRowsOfPair(unsigned dim);
  /// Sets the range of iterations that a contribution to the tile that starts
  /// at `at` is among: the iterations of the other dimension that visit it.
  void narrow(ContributeOp contribution, mlir::Value at);
  /// The arguments that count rows on which the step depends. Null for a count
  /// that is none of the arguments and so not known.
  llvm::SmallVector<mlir::BlockArgument> getCounts();
  /// How many tiles have all rows that `count` counts: the tiles before that
  /// number have, and none behind it.
  mlir::Value countWholeTiles(mlir::BlockArgument count);
  /// Whether the rows of the tile that stays all exist, where a step that is
  /// not masked would leave out the others; null where it leaves none out.
  mlir::Value isFixedWhole();
  /// Whether all rows of both tiles exist; null if that may differ between
  /// iterations.
  mlir::Value isWholePair();
  /// The first of `first`, `first + by`, ... that is not before `from`. None of
  /// them is negative.
  mlir::Value nextOf(mlir::Value from, mlir::Value first, mlir::Value by);
  /// The first tile from `from` on that the loop visits, which may be one
  /// behind its end.
  mlir::Value nextVisited(mlir::Value from);

  /// Emits a loop that carries on the state.
  void emitLoop(mlir::Value from, mlir::Value to, mlir::Value by, Step body);
  /// Emits one over the tiles [from, to), unless it is known to be empty.
  void loopOver(mlir::Value from, mlir::Value to, Step body);
  /// Emits the results of `then` where `condition` holds, else of `otherwise`.
  llvm::SmallVector<mlir::Value> choose(mlir::Value condition, Branch then,
                                        Branch otherwise);
  mlir::Value emitLess(mlir::Value lhs, mlir::Value rhs);
  /// Emits `loops` in a branch that is taken where `from` is less than `to`, or
  /// without one where that is known.
  void enterIfLess(mlir::Value from, mlir::Value to,
                   llvm::function_ref<void()> loops);

  void visitRange();
  /// Whether each bound on full tiles is known to be at least the last tile
  /// before each bound on visited tiles, whatever the guards of bounds say.
  /// Then this also holds for the least of the former and the greatest of the
  /// latter. If no guard of a bound on full tiles holds, all visited tiles are
  /// full.
  bool reachesLastOfEach();
  void splitIntoRanges(mlir::Value lo, mlir::Value hi);
  /// Whether tiles that need care and others may be in one loop, whose step
  /// tests which they are: not with a score region, which would be in both
  /// branches.
  bool sharesStep();
  void putLastFirst(mlir::Value lo, mlir::Value fullLo, mlir::Value whole,
                    mlir::Value hi, bool isLastOnly);
  void loopOverAll(mlir::Value lo, mlir::Value fullLo, mlir::Value from,
                   mlir::Value hi);
  /// Tests whether to visit the tile at `point` and how. All of its rows exist
  /// where `isWhole`.
  llvm::SmallVector<mlir::Value> testTile(llvm::ArrayRef<mlir::Value> point,
                                          mlir::Value isWhole, mlir::Value at,
                                          mlir::ValueRange carried);
  void testEachTile(mlir::Value lo, mlir::Value hi);
  void visitPair();
  /// The steps of tiles that a list has as full, or as partial ones.
  StepKind getKindInList(bool areFull) const {
    return {/*masked=*/!areFull, /*ragged=*/ragged && !areFull,
            /*keeps=*/!areFull};
  }
  void visitList();
  void visitRuns(const BlockList &list);
  /// The tiles of the blocks that a caller lists.
  void visitBlocks(const BlockList &list);

  VisitOp visit;
  StepOpInterface step; ///< Of the visit; may be null.
  TilesAttr tiles;
  mlir::OpBuilder b;
  mlir::Location loc;
  int64_t tile;  ///< Elements of a tile that is visited.
  int64_t block; ///< Elements of an entry that a caller lists, else 0.
  bool ragged;   ///< Whether some tiles may lack rows.
  llvm::SmallVector<mlir::Value> position; ///< (b, h, i) of the query tile.
  llvm::SmallVector<mlir::Value> extents;  ///< (nq, nk).
  mlir::Value wholeTiles; ///< Tiles before this one have all their keys.
  /// The first tile of the loop, and the distance between its tiles; null if it
  /// visits all.
  mlir::Value firstTile, tileStep;
  llvm::DenseMap<mlir::Value, mlir::Value> visited; ///< Of nextVisited.
  mlir::IRMapping shared; ///< What copies of the step have in common.
  llvm::SmallVector<mlir::Value> state;
};

} // namespace flash

#endif // FLASH_LIB_CONVERSION_FLASHTOSCF_VISITLOWERING_H
