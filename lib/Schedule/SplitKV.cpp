//===- SplitKV.cpp - How many splits the keys have ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Schedule/SplitKV.h"

#include "CostModel.h"
#include "FewRows.h"
#include "ModelParts.h"
#include "flash/Schedule/Models.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

#define DEBUG_TYPE "flash-schedule"

using namespace flash;

// Splits of a tile of queries that could be smaller, at most.
static constexpr int64_t mostSplitsOfLargeTile = 8;
// Queries of the smallest tile that models propose for many queries, and the
// distance between their tiles.
static constexpr int64_t queryTileStep = 64;

// The mean of lengths that are log-uniform between 1/327 of their bound and all
// of it, as prompts of 100 to 32768 tokens are, is such a part of the bound.
static constexpr int64_t boundOfMeanKeys = 6;
// A split is at most such a part of what a multiprocessor, or a block of one
// warp, gets in the mean: the last ones end at different times.
static constexpr int64_t splitsOfShare = 8, splitsOfShareOfOneWarp = 4;
// To start a block takes as long for splits without keys, so that these may not
// be many; and a block with fewer keys is mostly a beginning.
static constexpr int64_t mostSplitsOfBound = 16, leastSplitKeys = 1024;
// The same for blocks of one warp: many are on a multiprocessor
// (docs/lab/2026-11-30-blocks-of-one-warp.md).
static constexpr int64_t mostSplitsOfOneWarp = 24, splitKeysOfOneWarp = 1024;
// Up to so many times as many keys, if all blocks then run at once.
static constexpr double mostStretch = 1.5;
// A block that converts keys and values from 8 bits takes long by itself. So
// splits have such a part of the bound, between half as many keys and as many
// (docs/lab/2026-11-30-conversion-in-registers.md).
static constexpr int64_t quantizedSplitsOfBound = 16, mostQuantizedSplits = 64;
// Bytes of keys and values, as they are multiplied, that are read for each byte
// of partial results, which is written and read: these take 2 % of the time, or
// 4 where keys and values are converted.
static constexpr int64_t bytesOfPartialByte = 50,
                         quantizedBytesOfPartialByte = 25;

/// At least `keys`: a power of two, or 11/8 of one, with which three splits
/// have the keys of a power of two. Few values make few programs.
static int64_t roundUpSplitOfOneWarp(int64_t keys) {
  int64_t power = llvm::bit_floor(uint64_t(keys));
  if (keys == power)
    return power;
  return 8 * keys <= 11 * power ? 11 * power / 8 : 2 * power;
}

/// What each of so many blocks gets in the mean, in keys of one tile.
static int64_t getShare(const Problem &problem, int64_t tiles, int64_t blocks) {
  return llvm::SaturatingMultiply<uint64_t>(tiles, *problem.keys) /
         (boundOfMeanKeys * blocks);
}

/// How many keys a split of a tile of one warp has; nothing where batches are
/// not split.
static std::optional<int64_t> chooseSplitKeysOfOneWarp(const Problem &problem,
                                                       const Machine &target,
                                                       int64_t tiles,
                                                       const Schedule &schedule,
                                                       int64_t keysOfPartial) {
  bool isDequantized = problem.isDequantized();
  int64_t keys = splitKeysOfOneWarp,
          most = isDequantized ? mostQuantizedSplits : mostSplitsOfOneWarp,
          blocks = countBlocksAtOnce(problem, target, schedule),
          keysOfShare =
              getShare(problem, tiles, blocks) / splitsOfShareOfOneWarp;
  if (isDequantized)
    keys = std::clamp(*problem.keys / quantizedSplitsOfBound, keys / 2, keys);
  // With so many keys all blocks run at once, as far as tiles are so few.
  int64_t keysAtOnce = unlimited;
  if (int64_t splits = blocks / tiles)
    keysAtOnce = llvm::divideCeil(*problem.keys, splits);
  keysOfPartial = std::min(keysOfPartial, keysAtOnce);
  if (2 * std::max(keysOfShare, keysOfPartial) > *problem.keys)
    return std::nullopt;
  if (!isDequantized && keysAtOnce <= mostStretch * keys)
    keys = std::max(keysAtOnce, keys);
  return roundUpSplitOfOneWarp(
      std::max({keys, *problem.keys / most, keysOfShare, keysOfPartial}));
}

/// The same for tiles of more rows.
static std::optional<int64_t> chooseSplitKeysOfLongTile(const Problem &problem,
                                                        const Machine &target,
                                                        int64_t tiles,
                                                        int64_t keysOfPartial) {
  auto roundUp = [](int64_t keys) -> int64_t {
    return llvm::PowerOf2Ceil(keys);
  };
  int64_t share = getShare(problem, tiles, target.multiprocessors);
  int64_t keys = std::max<int64_t>(
      {leastSplitKeys,
       int64_t(llvm::bit_floor(uint64_t(share / splitsOfShare))),
       roundUp(*problem.keys / mostSplitsOfBound), roundUp(keysOfPartial)});
  return 2 * keys <= *problem.keys ? std::optional(keys) : std::nullopt;
}

/// How many keys a split has, for so many tiles of queries; nothing where
/// batches are not split.
static std::optional<int64_t> chooseSplitKeys(const Problem &problem,
                                              const Machine &target,
                                              int64_t tiles,
                                              const Schedule &schedule) {
  int64_t rows = *problem.queries * problem.packedHeads;
  int64_t partialBytes = 2 * rows * problem.valueDim * int64_t(sizeof(float));
  int64_t bytesOfKey =
      (problem.headDim + problem.valueDim) * problem.getElementBytes();
  int64_t keysOfPartial = (problem.isDequantized() ? quantizedBytesOfPartialByte
                                                   : bytesOfPartialByte) *
                          partialBytes / bytesOfKey;
  bool isOneWarp = !schedule.hasRoles() && schedule.queryTile == rowsOfWarp;
  std::optional<int64_t> keys =
      isOneWarp
          ? chooseSplitKeysOfOneWarp(problem, target, tiles, schedule,
                                     keysOfPartial)
          : chooseSplitKeysOfLongTile(problem, target, tiles, keysOfPartial);
  if (keys)
    keys = llvm::alignTo(*keys, *schedule.keyTile);
  return keys;
}

bool flash::splitsByLengths(const Problem &problem, const Machine &target,
                            int64_t queryTile) {
  std::optional<int64_t> tiles = problem.countQueryTiles(queryTile);
  // Every n-th tile is the same work for all blocks of a row, however long that
  // is.
  return problem.keysVary && !problem.hasPackedRows && tiles && problem.keys &&
         *problem.queries <= mostPackedQueries &&
         *problem.keys >= 2 * leastSplitKeys && !areFewTiles(target, *tiles);
}

void flash::fitToLengths(const Problem &problem, const Machine &target,
                         const Schedule &given, Schedule &schedule) {
  const Schedule proposed = given.over(schedule);
  if (given.numSplits || given.splitCtas ||
      !splitsByLengths(problem, target, *proposed.queryTile))
    return;
  int64_t tiles = *problem.countQueryTiles(*proposed.queryTile);
  std::optional<int64_t> keys = given.splitKeys;
  if (!keys)
    keys = chooseSplitKeys(problem, target, tiles, proposed);
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
