//===- ModelParts.h - The models of the targets -----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_SCHEDULE_MODELPARTS_H
#define FLASH_LIB_SCHEDULE_MODELPARTS_H

#include "flash/Schedule/Models.h"

#include <limits>

namespace flash {

/// A bound of the tables of models that bounds nothing.
constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

/// Tiles of blocks of one warp that convert keys and values, and how many
/// blocks of a multiprocessor have registers for them.
struct QuantizedTiles {
  int64_t maxHeadDim, keyTile, stages, blocks;
};
const QuantizedTiles &getQuantizedTiles(const Problem &problem);

/// Whether a mask leaves keys of tiles out, as far as is known: tiles are then
/// checked for values that are not finite.
bool hasMaskedTiles(const Problem &problem);

/// Bytes of shared memory of a block: the tile of queries, and as many tiles of
/// keys and of values as there are stages.
int64_t getSharedBytes(const Problem &problem, const Schedule &schedule);

/// The columns of the values that a block sums up, and how many blocks share
/// the columns.
int64_t getValueColumns(const Problem &problem, const Schedule &schedule);
int64_t countValueBlocks(const Problem &problem, const Schedule &schedule);
/// Whether products of a block with so many columns of the values read them
/// where the keys are in shared memory.
bool haveKeysValues(const Problem &problem, int64_t valueColumns);

/// Whether there are so few tiles of queries, one for four multiprocessors,
/// that the blocks of all their splits run at once.
inline bool areFewTiles(const Machine &target, int64_t tiles) {
  return 4 * tiles <= target.multiprocessors;
}

/// Whether keys are split by what lengths may be, with tiles of so many queries
/// (`fitToLengths`), unless the schedule says how they are split.
bool splitsByLengths(const Problem &problem, const Machine &target,
                     int64_t queryTile);

/// Chooses split-KV where the tiles of queries may be few, for warps without
/// roles. Tiles become smaller where that makes a CTA for more of the
/// multiprocessors, or fewer partial results because there are fewer splits.
void chooseSplitKV(const Problem &problem, const Machine &target,
                   Schedule &schedule);

/// The number of blocks that fill the GPU, if a tile has so many queries, for
/// warps without roles.
int64_t getFillingBlocks(const Machine &target, int64_t queryTile);

/// Why the target's tensor cores do not multiply the problem's elements; empty
/// if they do, and for the CPU.
std::string findElementFault(const Problem &problem, const Machine &target);
/// Whether warpgroups can have tiles of such sizes, 0 for any.
bool canBeWarpgroupTiles(int64_t queryTile, int64_t keyTile);

/// Names a choice, ", such as key_tile = 64": the largest value of the key
/// below that of `schedule`, a multiple of `multiple`, with which the schedule
/// `fits`; empty if there is none.
std::string nameSmaller(Schedule schedule, llvm::StringRef name,
                        std::optional<int64_t> Schedule::*key, int64_t multiple,
                        llvm::function_ref<bool(Schedule &)> fits);

/// The best schedule for threads with vectors and caches.
Schedule chooseCpuSchedule(const Problem &problem);

/// The best schedule for tensor cores by mma.sync and copies by cp.async, and
/// `completeSchedule` for it.
Schedule chooseSm80Schedule(const Problem &problem, const Machine &target);
std::string completeSm80Schedule(const Problem &problem, const Machine &target,
                                 Schedule &schedule);

/// The same for products of warpgroups and bulk copies, if `hasSm90Tiles` says
/// that the problem has tiles for them. `given` may say whether warpgroups
/// divide the columns of wide values.
bool hasSm90Tiles(const Problem &problem, const Machine &target,
                  const Schedule &given);
Schedule chooseSm90Schedule(const Problem &problem, const Machine &target,
                            const Schedule &given);
std::string completeSm90Schedule(const Problem &problem, const Machine &target,
                                 Schedule &schedule);

} // namespace flash

#endif // FLASH_LIB_SCHEDULE_MODELPARTS_H
