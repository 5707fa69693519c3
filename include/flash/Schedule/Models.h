//===- Models.h - Which schedules fit, and which is best --------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SCHEDULE_MODELS_H
#define FLASH_SCHEDULE_MODELS_H

#include "flash/Machine/Machine.h"
#include "flash/Schedule/Problem.h"
#include "flash/Schedule/Schedule.h"

#include <vector>

namespace flash {

/// With as many queries, a tile of one head is half full where warps have
/// roles. Models do not pack the heads of more queries.
constexpr int64_t mostPackedQueries = 32;

/// How many query heads of a key head a model packs into a tile: as many as
/// possible where the queries of one head leave most of a tile empty, else 1.
/// `given` has keys that are fixed already; it uses the tile of queries.
int64_t choosePackedHeads(const Problem &problem, const Machine &target,
                          const Schedule &given);

/// What a model proposes, with `packedHeads` of the problem. `given` has keys
/// that are fixed already; it uses whether warps have roles. What it proposes
/// is merged below them (Schedule::over).
Schedule chooseSchedule(const Problem &problem, const Machine &target,
                        const Schedule &given);

/// Checks that a block of `schedule`, which has tiles, has the shape that
/// tensor cores need, and enough registers and shared memory; returns what it
/// lacks, with the figures, and nothing if it is possible. Fills in what
/// follows from the other keys: warps, stages, query_stages, features and
/// num_splits. CPUs can have any tiles.
std::string completeSchedule(const Problem &problem, const Machine &target,
                             Schedule &schedule);

/// Whether a mask is worth a block map in the call: two kernels, which
/// evaluate it for each query and key once for all heads where only the running
/// program knows it, against the tiles that attention leaves out then
/// (microseconds, CostModel.cpp). Not on a single tile of keys; where sizes are
/// open, it is.
bool paysToListTiles(const Problem &problem, const Machine &target,
                     const Schedule &schedule);

/// What is proposed for gradients, whose programs go over tiles of queries and
/// over tiles of keys. `given` has keys that are fixed already; it
/// uses whether warps have roles.
Schedule chooseGradSchedule(const Problem &problem, const Machine &target,
                            const Schedule &given);

/// As `completeSchedule`, for gradients: what is wrong with a schedule that has
/// tiles, empty if nothing is. Fills in the stages where warps have roles.
std::string completeGradSchedule(const Problem &problem, const Machine &target,
                                 Schedule &schedule);

/// Schedules that the target admits, each complete, for a search: the model's
/// own, then all tiles and features with the rest as the model would have it.
/// For gradients what is proposed is not among them, since it follows from the
/// operation (proposeSchedule), and not all go with their masks and scores.
std::vector<Schedule> listSchedules(const Problem &problem,
                                    const Machine &target);

/// Schedules that differ from `schedule` in what the above leaves to the model:
/// stages, warps, and splits of the keys, as far as their programs have them.
std::vector<Schedule> listVariations(const Problem &problem,
                                     const Machine &target,
                                     const Schedule &schedule);

} // namespace flash

#endif // FLASH_SCHEDULE_MODELS_H
