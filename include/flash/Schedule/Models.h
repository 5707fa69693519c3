//===- Models.h - Models that choose and check schedules --------*- C++ -*-===//
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

/// The largest number of queries of each head for which models pack heads.
/// Tiles of kernels whose warps have roles have at least 64 rows, so with more
/// queries the tile of a single head is more than half full.
constexpr int64_t mostPackedQueries = 32;

/// The number of query heads of a key head that share a tile (packed GQA). It
/// is `packedHeads` of `given` if that has a value. Otherwise it is the largest
/// divisor of `Problem::group` that is at most 128 and at most the number of
/// rows of the tile of queries, for GPUs and up to `mostPackedQueries` queries.
/// If the number of queries is not known, heads are packed only for packed rows
/// with keys in pages. In all other cases it is 1. `given` has the keys that
/// are fixed already; if they include no `queryTile`, the tile is the one that
/// `chooseSchedule` proposes.
int64_t choosePackedHeads(const Problem &problem, const Machine &target,
                          const Schedule &given);

/// Whether warps can have roles: whether the target has products of warpgroups
/// and bulk copies, and the problem elements that these take.
bool canHaveRoles(const Problem &problem, const Machine &target);

/// The schedule that the model of the target proposes for an attention, with
/// `Problem::packedHeads` as the number of packed heads. `given` has the keys
/// that are fixed already. The model takes some of them into account, such as
/// the tiles and whether the features give roles to warps, but its result may
/// have other values for them. The caller therefore merges both,
/// `given.over(result)`, and checks the merged schedule with
/// `completeSchedule`.
Schedule chooseSchedule(const Problem &problem, const Machine &target,
                        const Schedule &given);

/// Checks whether `target` can run an attention with this schedule, which must
/// have `queryTile` and `keyTile`: whether an attention has its keys, whether
/// each value is in its range, whether tensor cores can multiply such tiles of
/// such elements, and whether a block has enough registers and shared memory.
/// Returns a message that says with numbers what is not possible; empty if the
/// schedule is possible. Fills in keys that have no value: value_columns,
/// warps, stages, query_stages, features and num_splits. After an error, some
/// of them may be filled in. A CPU can have any tiles; neither elements nor
/// memory are checked for it, and no key is filled in.
std::string completeSchedule(const Problem &problem, const Machine &target,
                             Schedule &schedule);

/// Whether a block map saves more time than it takes to compute the map in the
/// call. Two kernels compute the map. If a score region masks elements, they
/// evaluate the mask for each pair of query and key, once for all heads. The
/// map saves part of the time that the attention takes with `schedule`, which
/// must have tiles. CostModel.cpp estimates both times. The result
/// is true if the number of heads, queries or keys is not known. Otherwise it
/// is false if there is only one tile of keys, and true for a CPU if there are
/// several.
bool paysToListTiles(const Problem &problem, const Machine &target,
                     const Schedule &schedule);

/// Whether a block map may be chosen for a mask that is known when a program is
/// compiled. True if warps have roles: their steps cannot overlap in a loop
/// that tests for each tile whether it is empty under the mask. False with
/// `split_keys`, which cannot be combined with lists of tiles, and for
/// gradients that are one program, which has no lists by default.
bool mayListKnownTiles(const Schedule &schedule);

/// The schedule that a model proposes for gradients. They are computed by
/// programs over tiles of queries and over tiles of keys, or by one program
/// over tiles of keys. `given` has the keys that are fixed already. The model
/// uses its tiles, steps, `products`, `keyPrograms` and `features`. The caller
/// merges both, as for `chooseSchedule`.
Schedule chooseGradSchedule(const Problem &problem, const Machine &target,
                            const Schedule &given);

/// Checks a schedule of gradients as `completeSchedule` checks a schedule of an
/// attention: returns a message, or an empty string if the schedule is
/// possible. Fills in `stages` if warps have roles, and no other key.
std::string completeGradSchedule(const Problem &problem, const Machine &target,
                                 Schedule &schedule);

/// Schedules that a search may measure. The target can run each of them, and
/// each is complete. For an attention, the first one is the model's proposal,
/// if the target can run that. It is followed by combinations of tiles and
/// features, whose other keys `completeSchedule` fills in; the search space
/// leaves out tiles that are much larger than the numbers of queries and keys.
/// For gradients, the list does not contain the model's proposal, which depends
/// on the operation (`proposeSchedule`), and some of the schedules may not suit
/// the mask or the score region of the operation.
std::vector<Schedule> listSchedules(const Problem &problem,
                                    const Machine &target);

/// Schedules that differ from `schedule`, which must be complete, in the value
/// of one key: stages, query_stages (for gradients: key_program_stages), warps,
/// packed_heads or num_splits. If `stages` changes, the other number of stages
/// may change with it, and `num_splits` replaces `split_ctas`. The target can
/// run each of them. Empty for CPUs.
std::vector<Schedule> listVariations(const Problem &problem,
                                     const Machine &target,
                                     const Schedule &schedule);

} // namespace flash

#endif // FLASH_SCHEDULE_MODELS_H
