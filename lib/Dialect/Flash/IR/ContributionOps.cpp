//===- ContributionOps.cpp - Sums that iterations add to ------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpRules.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace flash;
using namespace flash::detail;

/// Dimensions of the sums before the dimensions of a tile: batches, heads and
/// tiles.
static constexpr int64_t numPositions = 3;

static LogicalResult verifySums(Operation *op, RankedTensorType sums) {
  if (sums.getRank() == numPositions + 2)
    return success();
  return op->emitOpError(
             "sums of tiles have rank 5 (batches, heads, tiles, and "
             "the rows and columns of a tile), got rank ")
         << sums.getRank();
}

LogicalResult ContributeOp::verify() {
  RankedTensorType sums = getContributions().getType();
  if (failed(verifySums(*this, sums)))
    return failure();
  if (getPosition().size() != numPositions)
    return emitOpError("the position of a tile is its batch, its head and its "
                       "number, got ")
           << getPosition().size() << " indices";
  if (static_cast<bool>(getFirst()) == static_cast<bool>(getBehind()) ||
      static_cast<bool>(getFirst()) != static_cast<bool>(getEnd()))
    return emitOpError("needs either among or behind, which say which "
                       "iterations add to the tile");
  return verifyShape(*this, "tile", getTile().getType(),
                     sums.getShape().drop_front(numPositions));
}

MutableOperandRange ParallelAddOp::getUpdatedDestinations() {
  return MutableOperandRange(*this, getSumsMutable().getOperandNumber(), 2);
}

Operation *ParallelAddOp::getIteratingParent() {
  auto terminator = dyn_cast<InParallelOpInterface>((*this)->getParentOp());
  return terminator ? terminator->getParentOp() : nullptr;
}

LogicalResult ParallelAddOp::verify() {
  RankedTensorType sums = getSums().getType(), counts = getCounts().getType();
  if (failed(verifySums(*this, sums)))
    return failure();
  SmallVector<int64_t> ofTiles(sums.getShape().take_front(numPositions));
  if (counts.getRank() == numPositions &&
      (counts.isDynamicDim(2) || counts.getDimSize(2) >= ofTiles[2]))
    ofTiles[2] = counts.getDimSize(2);
  if (failed(verifyShape(*this, "counts", counts, ofTiles)))
    return failure();
  if (!isa_and_nonnull<scf::ForallOp, KernelOp>(getIteratingParent()))
    return emitOpError("stands in flash.store, or in the terminator of an "
                       "scf.forall, alone");
  return success();
}

LogicalResult InsertDiagonalsOp::verify() {
  RankedTensorType tile = getTile().getType(), sums = getSums().getType();
  if (static_cast<int64_t>(getIndices().size()) + 1 != sums.getRank())
    return emitOpError("inserts a whole row, so it takes ")
           << sums.getRank() - 1 << " indices, got " << getIndices().size();
  int64_t diagonals = tile.getDimSize(0) + tile.getDimSize(1);
  if (sums.getShape().back() != diagonals)
    return emitOpError("inserts a row of ")
           << diagonals << " sums, as many as its tile has rows and columns "
           << "together, into " << sums;
  return success();
}
