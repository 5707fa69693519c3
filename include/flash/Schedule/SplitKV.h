//===- SplitKV.h - How many splits the keys have ----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Split-KV, or Flash-Decoding: if there are too few tiles of queries for all
// multiprocessors, the keys of each tile are cut into splits. Each split has a
// CTA of its own, and a second kernel combines the results of the splits.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SCHEDULE_SPLITKV_H
#define FLASH_SCHEDULE_SPLITKV_H

#include "flash/Machine/Machine.h"
#include "flash/Schedule/Problem.h"
#include "flash/Schedule/Schedule.h"
#include <cstdint>

namespace flash {

/// The least numbers of tiles of keys, in all and for each split, with which
/// `countSplits` splits keys. With fewer tiles the combination would cost more
/// than the splits save (docs/lab/2026-11-22-few-heads-and-the-cost-model.md).
constexpr int64_t minKeyTiles = 8, minKeyTilesPerSplit = 2;

/// The largest value of the key `num_splits` of a schedule.
constexpr int64_t maxSplits = 256;

/// How many splits the combine kernel adds at a time at most. Their elements
/// are in registers at the same time.
constexpr int64_t mostSplitsAtOnce = 8;

/// The largest number of splits with which `queryTiles` tiles of queries have
/// at most `splitCtas` CTAs, and each split has at least `minKeyTilesPerSplit`
/// of the `keyTiles` tiles of keys. The result is from 1 to `maxSplits`; it is
/// 1 if there are fewer than `minKeyTiles` tiles of keys.
int64_t countSplits(int64_t splitCtas, int64_t queryTiles, int64_t keyTiles);

/// Changes a proposed schedule if only the device knows how many keys each
/// batch has (`Problem::keysVary`), and there are few queries of each head but
/// many tiles of queries. If each CTA processed a fixed share of the tiles,
/// CTAs would end at different times. Instead, keys are cut into splits that
/// begin and end at the same positions whatever the lengths are (`split_keys`),
/// and each split is a CTA that is not persistent. If there are not enough keys
/// for that, a persistent kernel claims its tiles, or is no longer persistent
/// if there are few of them. Nothing changes if `given`, which has the keys
/// that are fixed already, has `num_splits` or `split_ctas`.
void fitToLengths(const Problem &problem, const Machine &target,
                  const Schedule &given, Schedule &schedule);

} // namespace flash

#endif // FLASH_SCHEDULE_SPLITKV_H
