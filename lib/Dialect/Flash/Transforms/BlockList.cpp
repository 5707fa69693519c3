//===- BlockList.cpp - The tiles that a block map lists -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockList.h"

#include "flash/Dialect/Flash/Utils/MaskNodes.h"
#include "flash/Dialect/Flash/Utils/MaskTiles.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flash;

BlockList::BlockList(OpBuilder &b, Location loc, Value tiles, Value counts,
                     Value batch, Value head, Value number)
    : tiles(tiles) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tiles.getType()).getShape();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  // One map may be for all batches, or for all heads.
  row = {shape[0] == 1 ? constant(0) : batch,
         shape[1] == 1 ? constant(0) : head, number};
  endOfParts = read(b, loc, counts, constant(0));
  end = read(b, loc, counts, constant(1));
}

Value BlockList::read(OpBuilder &b, Location loc, Value tensor,
                      Value place) const {
  SmallVector<Value> indices(row);
  indices.push_back(place);
  Value number = tensor::ExtractOp::create(b, loc, tensor, indices);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
}

Value BlockList::getStart(OpBuilder &b, Location loc, Value place,
                          int64_t tile) const {
  return getValueOrCreateConstantIndexOp(
      b, loc,
      affine::makeComposedFoldedAffineApply(
          b, loc, b.getAffineDimExpr(0) * tile, {read(b, loc, tiles, place)}));
}

bool flash::needsBlockMap(AttentionOpInterface op, const Schedule &schedule,
                          const ListedTiles &tiles) {
  int64_t queries = op.getQuery().getType().getDimSize(2),
          keys = op.getKey().getType().getDimSize(2);
  int64_t listed = tiles.overQueries ? queries : keys,
          tile = tiles.overQueries ? tiles.ofQueries : tiles.ofKeys;
  if (schedule.splitKeys || schedule.blockMap == 0 ||
      (!ShapedType::isDynamic(listed) && listed <= tile))
    return false;
  if (masksElements(op.getScore()))
    return true;
  if (!op.getMask())
    return false;
  auto known = [](int64_t size) {
    return ShapedType::isDynamic(size) ? std::nullopt
                                       : std::optional<int64_t>(size);
  };
  if (tiles.overQueries && schedule.hasTurns() &&
      !leavesRanges(*op.getMask(), tiles.ofQueries, tiles.ofKeys,
                    known(queries), known(keys)))
    return true;
  MaskTiles found =
      tiles.overQueries
          ? computeMaskTiles(transposeMask(*op.getMask()), tiles.ofKeys,
                             tiles.ofQueries, known(keys), known(queries))
          : computeMaskTiles(*op.getMask(), tiles.ofQueries, tiles.ofKeys,
                             known(queries), known(keys),
                             schedule.getPackedHeads());
  return found.gaveUp || (schedule.blockMap == 1 && !found.fullIsRange);
}

ListedTiles flash::getTilesOverKeys(const Schedule &schedule) {
  return {schedule.getQueryStep(), *schedule.keyTile, /*overQueries=*/true};
}
