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

/// Whether copies of kernels of this schedule are in bulk: of whole multiples
/// of 16 bytes, with zeros for rows that do not exist.
inline bool copiesInBulk(const Schedule &schedule) {
  return schedule.has(ScheduleFeatures::SpecializeWarps);
}

/// The warps that share a tile of so many rows in a kernel of gradients.
int64_t getWarpsOfRows(const Schedule &schedule, int64_t rows);

/// Tiles and schedules of the kernels that add up the gradients of scores for a
/// captured tensor. A step has a pair of tiles of queries and of the output's
/// gradients, and a pair of tiles of keys and of values.
class CapturedGradModel {
public:
  /// Beside kernels of this schedule, with tiles.
  CapturedGradModel(const Schedule &ofGradients, const Machine &machine,
                    int64_t headDim, int64_t valueDim, int64_t elementBytes);

  /// Whether there is room for tiles for warps with roles.
  bool canHaveRoles() const;
  /// The rows and columns of the tiles of scores.
  int64_t getTile(bool withRoles) const;
  /// Of a kernel that copies `inStep` pairs in each step, and `once` once.
  Schedule getSchedule(bool withRoles, int64_t inStep, int64_t once) const;

private:
  Schedule ofGradients;
  int64_t bytesOfPair, room;
};

} // namespace flash

#endif // FLASH_SCHEDULE_GRADKERNELS_H
