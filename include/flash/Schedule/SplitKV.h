//===- SplitKV.h - How many splits the keys have ----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Split-KV, or Flash-Decoding: where the tiles of queries are too few for the
// GPU, the keys of each are cut into splits, one for each of several CTAs, and
// a second kernel combines their results.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SCHEDULE_SPLITKV_H
#define FLASH_SCHEDULE_SPLITKV_H

#include "flash/Machine/Machine.h"
#include "flash/Schedule/Problem.h"
#include "flash/Schedule/Schedule.h"
#include <cstdint>

namespace flash {

/// With fewer tiles of keys in all, or for each split, the combination would
/// cost more than it saves
/// (docs/lab/2026-11-22-few-heads-and-the-cost-model.md).
constexpr int64_t minKeyTiles = 8, minKeyTilesPerSplit = 2;

/// What the key `num_splits` of a schedule may be at most.
constexpr int64_t maxSplits = 256;

/// The splits that a combination adds at a time: their elements are in
/// registers.
constexpr int64_t mostSplitsAtOnce = 8;

/// The number of splits that give at most `splitCtas` CTAs for `queryTiles`
/// tiles of queries, if each then has enough of the `keyTiles` tiles of keys.
int64_t countSplits(int64_t splitCtas, int64_t queryTiles, int64_t keyTiles);

/// Where only the device knows how many keys each batch of few queries has, a
/// multiprocessor that is done early takes the next block: blocks end with
/// their splits, which begin and end at the same positions whatever the lengths
/// are, or claim the tiles of batches that are many. `given` has keys that are
/// fixed already.
void fitToLengths(const Problem &problem, const Machine &target,
                  const Schedule &given, Schedule &schedule);

} // namespace flash

#endif // FLASH_SCHEDULE_SPLITKV_H
