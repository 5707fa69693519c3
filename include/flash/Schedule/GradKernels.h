//===- GradKernels.h - Schedules of kernels of gradients --------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SCHEDULE_GRADKERNELS_H
#define FLASH_SCHEDULE_GRADKERNELS_H

#include "flash/Machine/Machine.h"
#include "flash/Schedule/Schedule.h"

namespace flash {

/// Whether kernels of gradients with this schedule copy tiles in bulk (TMA).
/// Bulk copies move multiples of 16 bytes, and write zeros for rows that do not
/// exist.
inline bool copiesInBulk(const Schedule &schedule) {
  return schedule.has(ScheduleFeatures::SpecializeWarps);
}

/// How many rows of the output, of `valueDim` columns, a block of the kernel
/// before the gradients has.
int64_t getRowsOfDeltas(const Schedule &ofGradients, int64_t valueDim);

/// In which order the kernels before and behind the gradients take their rows;
/// nothing for the order in memory. From the last to the first, they begin with
/// what the kernel before wrote last, or end with what the next one begins
/// with, which is in the cache.
std::optional<TileOrder> getOrderBesideGradients(const Schedule &ofGradients);

/// The number of warps that share a tile of `rows` rows in a kernel of
/// gradients. `rows` must be a multiple of 16 if warps have roles; each warp
/// then has 16 rows.
int64_t getWarpsOfRows(const Schedule &schedule, int64_t rows);

/// Tiles and schedules of the kernels that add up gradients of scores to the
/// gradient of a captured tensor, which the score region reads. A step of such
/// a kernel computes a square tile of scores. It needs two pairs of tiles: a
/// tile of queries with a tile of the gradients of the output, and a tile of
/// keys with a tile of values.
class CapturedGradModel {
public:
  /// `ofGradients` is the schedule of the gradients to which the kernels
  /// belong; it must have `queryTile` and `keyTile`. `headDim` and `valueDim`
  /// are the columns of keys and of values, and `elementBytes` the size of
  /// their elements.
  CapturedGradModel(const Schedule &ofGradients, const Machine &machine,
                    int64_t headDim, int64_t valueDim, int64_t elementBytes);

  /// Whether warps may have roles: they have roles in the kernels of
  /// `ofGradients`, and shared memory has room for two pairs of tiles of 128
  /// rows.
  bool canHaveRoles() const;
  /// The number of rows, and of columns, of a tile of scores: 128 if warps have
  /// roles, else at most 64 and what shared memory has room for.
  int64_t getTile(bool withRoles) const;
  /// The schedule of a kernel that copies `inStep` pairs of tiles in each step,
  /// and `once` pairs once for all steps. `inStep` must be positive if warps
  /// have roles. Has `warps`; if warps have roles also `features` and `stages`.
  Schedule getSchedule(bool withRoles, int64_t inStep, int64_t once) const;

private:
  Schedule ofGradients;
  /// Bytes of shared memory: what a pair of tiles of 128 rows takes, and what
  /// tiles may take in all.
  int64_t bytesOfPair, room;
};

} // namespace flash

#endif // FLASH_SCHEDULE_GRADKERNELS_H
