//===- SplitKV.cpp - How many splits the keys have ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Schedule/SplitKV.h"

#include "ModelParts.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace flash;

// Splits of a tile of queries that could be smaller, at most.
static constexpr int64_t mostSplitsOfLargeTile = 8;
// Queries of the smallest tile that models propose for many queries, and the
// distance between their tiles.
static constexpr int64_t queryTileStep = 64;

int64_t flash::countSplits(int64_t splitCtas, int64_t queryTiles,
                           int64_t keyTiles) {
  if (keyTiles < minKeyTiles)
    return 1;
  int64_t wanted = splitCtas / std::max<int64_t>(queryTiles, 1);
  return std::clamp<int64_t>(std::min(wanted, keyTiles / minKeyTilesPerSplit),
                             1, maxSplits);
}

void flash::chooseSplitKV(const Problem &problem, const Machine &target,
                          Schedule &schedule) {
  auto hasFewBlocks = [&] {
    std::optional<int64_t> tiles = problem.countQueryTiles(*schedule.queryTile);
    if (!tiles || !problem.keys)
      return false;
    int64_t splits =
        countSplits(getFillingBlocks(target, *schedule.queryTile), *tiles,
                    llvm::divideCeil(*problem.keys, *schedule.keyTile));
    return *tiles * splits < target.multiprocessors ||
           splits > mostSplitsOfLargeTile;
  };
  while (*schedule.queryTile >= 2 * queryTileStep &&
         *schedule.queryTile - queryTileStep >= problem.packedHeads &&
         *schedule.queryTile % queryTileStep == 0 && hasFewBlocks())
    *schedule.queryTile -= queryTileStep;
  int64_t blocks = getFillingBlocks(target, *schedule.queryTile);
  std::optional<int64_t> tiles = problem.countQueryTiles(*schedule.queryTile);
  if (tiles ? *tiles <= blocks / 2 : !problem.hasPackedRows)
    schedule.splitCtas = blocks;
}
