//===- ShareKeys.cpp - How many units of a GPU share keys -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KeySplits.h"
#include "ScheduleModels.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

// Of a tile of queries that could be smaller.
static constexpr int64_t mostSplits = 8;
// The queries of the smallest tile that models propose for many queries, by
// multiples of which they differ.
static constexpr int64_t granule = 64;

void flash::shareKeys(AttentionOp op, Schedule &schedule) {
  RankedTensorType query = op.getQuery().getType();
  int64_t keys = op.getKey().getType().getDimSize(query.getRank() - 2);
  auto hasFewBlocks = [&] {
    std::optional<int64_t> tiles = countQueryTiles(query, *schedule.queryTile);
    if (!tiles || ShapedType::isDynamic(keys))
      return false;
    int64_t splits = countSplits(getFillingBlocks(*schedule.queryTile), *tiles,
                                 llvm::divideCeil(keys, *schedule.keyTile));
    return *tiles * splits < multiprocessors || splits > mostSplits;
  };
  while (*schedule.queryTile >= 2 * granule &&
         *schedule.queryTile % granule == 0 && hasFewBlocks())
    *schedule.queryTile -= granule;
  int64_t blocks = getFillingBlocks(*schedule.queryTile);
  std::optional<int64_t> tiles = countQueryTiles(query, *schedule.queryTile);
  if (!tiles || *tiles <= blocks / 2)
    schedule.units = blocks;
}
