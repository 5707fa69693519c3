//===- SplitKV.cpp - How many splits the keys have ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Schedule/SplitKV.h"

#include "CostModel.h"
#include "ModelParts.h"
#include "flash/Schedule/Models.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

#define DEBUG_TYPE "flash-schedule"

using namespace flash;

// With fewer tiles of queries for each of these multiprocessors, splits that
// depend on how many rows there are fill the GPU.
static constexpr int64_t fewestRowsOfShare = 4;
// Splits of a tile of queries that could be smaller, at most.
static constexpr int64_t mostSplitsOfLargeTile = 8;
// Queries of the smallest tile that models propose for many queries, and the
// distance between their tiles.
static constexpr int64_t queryTileStep = 64;

// The mean of lengths that are log-uniform between 1/327 of their bound and all
// of it, as prompts of 100 to 32768 tokens are, is such a part of the bound.
static constexpr int64_t boundOfMeanKeys = 6;
// A split is at most such a part of what a multiprocessor gets in the mean: the
// last ones end at different times.
static constexpr int64_t splitsOfShare = 8;
// To start a block takes as long for splits without keys, so that these may not
// be many; and a block with fewer keys is mostly a beginning.
static constexpr int64_t mostSplitsOfBound = 16, leastSplitKeys = 1024;
// Bytes of keys and values that are read for each byte of partial results,
// which is written and read: these take 2 % of the time.
static constexpr int64_t bytesOfPartialByte = 50;

/// How many keys a split has, for so many tiles of queries; nothing where
/// batches are not split.
static std::optional<int64_t> chooseSplitKeys(const Problem &problem,
                                              const Machine &target,
                                              int64_t tiles, int64_t keyTile) {
  int64_t share = llvm::SaturatingMultiply<uint64_t>(tiles, *problem.keys) /
                  (boundOfMeanKeys * target.multiprocessors);
  int64_t rows = *problem.queries * problem.packedHeads;
  int64_t partialBytes = 2 * rows * problem.valueDim * int64_t(sizeof(float));
  int64_t bytesOfKey =
      (problem.headDim + problem.valueDim) * problem.getElementBytes();
  auto roundUp = [](int64_t keys) -> int64_t {
    return llvm::PowerOf2Ceil(keys);
  };
  int64_t keys = std::max<int64_t>(
      {leastSplitKeys,
       int64_t(llvm::bit_floor(uint64_t(share / splitsOfShare))),
       roundUp(*problem.keys / mostSplitsOfBound),
       roundUp(bytesOfPartialByte * partialBytes / bytesOfKey)});
  keys = llvm::alignTo(keys, keyTile);
  return 2 * keys <= *problem.keys ? std::optional(keys) : std::nullopt;
}

void flash::fitToLengths(const Problem &problem, const Machine &target,
                         const Schedule &given, Schedule &schedule) {
  const Schedule proposed = given.over(schedule);
  std::optional<int64_t> tiles = problem.countQueryTiles(*proposed.queryTile);
  // Every n-th tile is the same work for all blocks of a row, however long that
  // is; with so few rows all fit at once.
  if (!problem.keysVary || problem.hasPackedRows || !tiles || !problem.keys ||
      *problem.queries > mostPackedQueries ||
      *problem.keys < 2 * leastSplitKeys ||
      *tiles * fewestRowsOfShare <= target.multiprocessors || given.numSplits ||
      given.splitCtas)
    return;
  std::optional<int64_t> keys = given.splitKeys;
  if (!keys)
    keys = chooseSplitKeys(problem, target, *tiles, *proposed.keyTile);
  bool splits = keys && *keys < *problem.keys;
  LLVM_DEBUG(llvm::dbgs() << "lengths vary: " << (splits ? *keys : 0)
                          << " keys of a split\n");
  if (splits) {
    schedule.splitCtas.reset();
    schedule.splitKeys = keys;
    // Without roundings that depend on the rows that are rescaled together.
    if (schedule.features)
      *schedule.features &=
          ~(ScheduleFeatures::Persistent | ScheduleFeatures::ClaimTiles |
            ScheduleFeatures::LazyRescale);
  } else if (schedule.has(ScheduleFeatures::Persistent)) {
    // Few need nothing to count them.
    *schedule.features ^= hasFewTiles(problem, target, *proposed.queryTile)
                              ? ScheduleFeatures::Persistent
                              : ScheduleFeatures::ClaimTiles;
  }
}

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
  auto countTiles = [&] {
    std::optional<int64_t> tiles = problem.countQueryTiles(*schedule.queryTile);
    if (tiles)
      *tiles *= countValueBlocks(problem, schedule);
    return tiles;
  };
  auto hasFewBlocks = [&] {
    std::optional<int64_t> tiles = countTiles();
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
  std::optional<int64_t> tiles = countTiles();
  if (tiles ? *tiles <= blocks / 2 : !problem.hasPackedRows)
    schedule.splitCtas = blocks;
}
