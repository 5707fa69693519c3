//===- ListedTiles.cpp - The tiles of block maps --------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ListedTiles.h"

#include "flash/Analysis/MaskNodes.h"
#include "flash/Analysis/MaskTiles.h"
#include "flash/Analysis/ScoreRegion.h"

using namespace mlir;
using namespace flash;

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
  if (tiles.overQueries && schedule.addsInOrder() &&
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
