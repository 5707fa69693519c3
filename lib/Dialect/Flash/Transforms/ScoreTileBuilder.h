//===- ScoreTileBuilder.h - The scores of one tile --------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the steps of an attention and of its gradients have in common: products
// of tiles, and which scores they are of. A loop goes over tiles of keys or of
// queries; the tile of the others stays where it is, and is called fixed, as
// the gradients that the loop carries belong to its rows.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_FLASH_TRANSFORMS_SCORETILEBUILDER_H
#define FLASH_LIB_DIALECT_FLASH_TRANSFORMS_SCORETILEBUILDER_H

#include "TileBuilder.h"
#include "flash/Analysis/ScoreRegion.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseMap.h"

namespace flash {

class ScoreTileBuilder : protected TileBuilder {
public:
  /// Fixed tiles that are transposed, shared by all steps of a loop.
  using Transposed = llvm::DenseMap<mlir::Value, mlir::Value>;

  ScoreTileBuilder(StepOpInterface step, const DecomposeOptions &options,
                   Transposed &transposed);

protected:
  bool hasScore() { return changesScore(step.getScore()); }
  /// Whether the mask or the score region leaves elements out.
  bool isMasked() { return step.getMask() || masksElements(step.getScore()); }
  /// What `ofPartial` emits where elements of the tile may be left out, else
  /// what `ofWhole` does; without a condition for that, what `ofPartial` emits.
  mlir::Value choosePartial(llvm::function_ref<mlir::Value()> ofPartial,
                            llvm::function_ref<mlir::Value()> ofWhole);

  //===--------------------------------------------------------------------===//
  // Loops over a tile of scores
  //===--------------------------------------------------------------------===//

  unsigned fixedLoop() { return options.transposeScores ? 1 : 0; }
  unsigned queryLoop() {
    return step.stepsOverQueries() ? 1 - fixedLoop() : fixedLoop();
  }
  unsigned keyLoop() { return 1 - queryLoop(); }
  llvm::SmallVector<int64_t> scoreShape();
  mlir::AffineMap scoreMap() { return b.getMultiDimIdentityMap(2); }
  /// The map of values of each query.
  mlir::AffineMap rowMap() { return map(2, {queryLoop()}); }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  /// An operand of a product. A vector unit multiplies f32 alone: there 16-bit
  /// tiles are widened, once for a step.
  mlir::Value operand(mlir::Value tile);
  /// `sum` plus the product of `a` and `other`, whose inner elements may be
  /// interleaved (flash.interleave).
  mlir::Value contract(mlir::Value a, mlir::Value other, mlir::Value sum,
                       llvm::ArrayRef<mlir::AffineMap> maps,
                       bool isInterleaved = false);
  /// The products of all rows of two tiles, in the shape of the scores.
  mlir::Value products(mlir::Value fixed, mlir::Value stepped);
  /// `acc`, which has the rows of the fixed tile, plus the product of
  /// `weights`, which have the shape of scores and are 0 where they are masked,
  /// and the rows of a stepped tile.
  mlir::Value addRows(mlir::Value weights, mlir::Value stepped,
                      mlir::Value acc);

  //===--------------------------------------------------------------------===//
  // Scores
  //===--------------------------------------------------------------------===//

  ScorePosition positionOf(mlir::ImplicitLocOpBuilder &at, mlir::Value query,
                           mlir::Value key);
  /// Whether the element with the given tile coordinates takes part, or null
  /// if all do.
  mlir::Value takesPart(mlir::ImplicitLocOpBuilder &at, mlir::Value query,
                        mlir::Value key);
  /// The score region on the product of an element; `values` is what its values
  /// become.
  mlir::Value scoreRegion(mlir::ImplicitLocOpBuilder &at, mlir::Value product,
                          mlir::Value query, mlir::Value key,
                          mlir::IRMapping &values);

  StepOpInterface step;
  /// Whether elements of the tile may be left out; null if nothing says so.
  mlir::Value partial;
  const DecomposeOptions &options;
  int64_t queries, keys;
  double scale;

private:
  /// Whether the mask keeps the element with the given tile coordinates and its
  /// row of the stepped tile exists, or null if that is so of all.
  mlir::Value isInMask(mlir::ImplicitLocOpBuilder &at, mlir::Value query,
                       mlir::Value key);
  /// The condition of the score region's guards, null if it has none: whether
  /// `isInMask` holds and the row of the fixed tile exists.
  mlir::Value guardOf(mlir::ImplicitLocOpBuilder &at, mlir::Value query,
                      mlir::Value key);
  /// The position at which the score region may read instead of the element's
  /// own position, which may be padding.
  ScorePosition readablePosition(mlir::ImplicitLocOpBuilder &at,
                                 mlir::Value query, mlir::Value key);
  mlir::Value transpose(mlir::Value fixed);
  mlir::Value addRowsCarefully(mlir::Value weights, mlir::Value rows,
                               mlir::Value acc);
  /// A quotient of the region by a constant as a product. It may differ in the
  /// last bit, which scores of 16-bit queries and keys do not have, and needs
  /// one instruction instead of ten with a branch. Null for any other op.
  mlir::Value asProduct(mlir::ImplicitLocOpBuilder &at, mlir::Operation &inner,
                        const mlir::IRMapping &mapping);

  /// Whether what is emitted is for a tile that nothing is left out of.
  bool isWhole = false;
  Transposed &transposed;
  llvm::DenseMap<mlir::Value, mlir::Value> widened;
};

} // namespace flash

#endif // FLASH_LIB_DIALECT_FLASH_TRANSFORMS_SCORETILEBUILDER_H
