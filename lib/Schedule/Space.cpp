//===- Space.cpp - The schedules worth measuring --------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelParts.h"

using namespace flash;

namespace {

// Tiles of the kernels with roles, of kernels without, and of the CPU. Tiles
// that win more often come first, in case that time runs out. Where warps have
// roles, each is with a number of CTAs per SM.
constexpr std::pair<int64_t, std::optional<int64_t>> roleQueryTiles[] = {
    {128, {}}, {192, {}}, {128, 2}, {64, 2}, {64, 3}, {64, {}}};
constexpr int64_t roleKeyTiles[] = {48,  64,  80,  96,  112, 128,
                                    144, 160, 176, 192, 224, 256};
constexpr int64_t warpQueryTiles[] = {128, 64, 32, 16};
constexpr int64_t warpKeyTiles[] = {16, 32, 64, 96, 128};
constexpr int64_t cpuQueryTiles[] = {16, 32, 64, 96, 128, 192, 256};
constexpr int64_t cpuKeyTiles[] = {32, 64, 128, 192, 256, 512};

constexpr ScheduleFeatures specialized = ScheduleFeatures::SpecializeWarps |
                                         ScheduleFeatures::LazyRescale |
                                         ScheduleFeatures::BulkStore;
constexpr ScheduleFeatures overlapped = specialized | ScheduleFeatures::Overlap;
constexpr ScheduleFeatures divided = ScheduleFeatures::SpecializeWarps |
                                     ScheduleFeatures::BulkStore |
                                     ScheduleFeatures::DivideColumns;
constexpr ScheduleFeatures roleFeatures[] = {
    overlapped | ScheduleFeatures::PingPong | ScheduleFeatures::Persistent,
    overlapped | ScheduleFeatures::Persistent,
    specialized | ScheduleFeatures::Persistent,
    overlapped,
    specialized,
    divided | ScheduleFeatures::Overlap | ScheduleFeatures::Persistent,
    divided | ScheduleFeatures::PingPong | ScheduleFeatures::Persistent,
    divided | ScheduleFeatures::PingPong,
    divided | ScheduleFeatures::Persistent,
    divided};

/// Tiles of the programs of gradients where warps have roles.
struct GradTiles {
  int64_t products, queryTile, keyStep, keyTile, queryStep;
};
constexpr int64_t separate = Schedule::separatePrograms,
                  fused = Schedule::oneProgram;
constexpr GradTiles gradRoleTiles[] = {
    {fused, 128, 128, 128, 128},   {fused, 128, 128, 128, 64},
    {separate, 128, 128, 128, 64}, {separate, 128, 64, 128, 64},
    {separate, 128, 48, 128, 64},  {separate, 64, 64, 64, 64},
    {separate, 192, 64, 192, 64}};
constexpr ScheduleFeatures gradSpecialized =
    ScheduleFeatures::SpecializeWarps | ScheduleFeatures::BulkStore;
constexpr ScheduleFeatures gradRoleFeatures[] = {
    gradSpecialized, gradSpecialized | ScheduleFeatures::Persistent,
    gradSpecialized | ScheduleFeatures::DeferProducts,
    gradSpecialized | ScheduleFeatures::DeferProducts |
        ScheduleFeatures::Persistent};
/// Tiles of gradients on the CPU, and where warps have no roles.
constexpr int64_t gradTiles[] = {64, 32, 16, 128};

/// Collects schedules that fit, each once.
class Space {
public:
  Space(const Problem &problem, const Machine &target)
      : problem(problem), target(target) {}

  void add(Schedule schedule) {
    // How long tiles of packed rows are depends on the data.
    if (problem.hasPackedRows && schedule.has(ScheduleFeatures::Persistent))
      *schedule.features |= ScheduleFeatures::ClaimTiles;
    auto complete =
        problem.isGradient ? completeGradSchedule : completeSchedule;
    if (!schedule.findFault().empty() ||
        !complete(problem, target, schedule).empty())
      return;
    if (!llvm::is_contained(schedules, schedule))
      schedules.push_back(schedule);
  }

  /// The tiles, with split-KV as the models have it.
  void addTiles(int64_t queryTile, int64_t keyTile,
                ScheduleFeatures features = ScheduleFeatures::None,
                std::optional<int64_t> ctasPerSm = {}) {
    // A tile need not be longer than the lengths there are.
    auto isTooLong = [](int64_t tile, std::optional<int64_t> length) {
      return length && tile >= 2 * *length && tile > 64;
    };
    if (isTooLong(queryTile, problem.countRows()) ||
        isTooLong(keyTile, problem.keys))
      return;
    Schedule schedule;
    schedule.queryTile = queryTile;
    schedule.keyTile = keyTile;
    if (problem.packedHeads > 1)
      schedule.packedHeads = problem.packedHeads;
    if (target.isGpu())
      schedule.features = features;
    schedule.ctasPerSm = ctasPerSm;
    if (target.isGpu()) {
      int64_t blocks = getBlocks(schedule);
      std::optional<int64_t> tiles = problem.countQueryTiles(queryTile);
      bool isPersistent = schedule.has(ScheduleFeatures::Persistent);
      bool isUnknown = !tiles && features == ScheduleFeatures::None;
      if (!isPersistent && (isUnknown || (tiles && *tiles <= blocks / 2)))
        schedule.splitCtas = blocks;
    }
    add(schedule);
  }

  /// How many blocks fill the GPU.
  int64_t getBlocks(const Schedule &schedule) const {
    return schedule.hasRoles()
               ? target.multiprocessors * schedule.ctasPerSm.value_or(1)
               : getFillingBlocks(target, *schedule.queryTile);
  }

  const Problem &problem;
  const Machine &target;
  std::vector<Schedule> schedules;
};

} // namespace

/// The schedules of gradients, but for what is proposed.
static std::vector<Schedule> listGradSchedules(const Problem &problem,
                                               const Machine &target) {
  Space space(problem, target);
  Schedule schedule;
  if (target.isGpu() && canHaveRoles(problem, target)) {
    for (const GradTiles &tiles : gradRoleTiles)
      for (ScheduleFeatures features : gradRoleFeatures) {
        schedule.queryTile = tiles.queryTile;
        schedule.keyStep = tiles.keyStep;
        schedule.keyTile = tiles.keyTile;
        schedule.queryStep = tiles.queryStep;
        schedule.products = tiles.products;
        schedule.features = features;
        schedule.keyPrograms.reset();
        space.add(schedule);
        if (schedule.isFused() && problem.sumsByDistance) {
          schedule.features = features | ScheduleFeatures::SumDiagonals;
          space.add(schedule);
        }
        // One program for all gradients includes the gradients of keys and
        // values.
        schedule.keyPrograms = 2;
        if (!schedule.isFused())
          space.add(schedule);
      }
    schedule = Schedule();
  }
  for (int64_t products : {separate, fused})
    for (int64_t queryTile : gradTiles)
      for (int64_t keyTile : gradTiles) {
        schedule.products = products;
        schedule.queryTile = queryTile;
        schedule.keyTile = keyTile;
        space.add(schedule);
      }
  return space.schedules;
}

std::vector<Schedule> flash::listSchedules(const Problem &problem,
                                           const Machine &target) {
  if (problem.isGradient)
    return listGradSchedules(problem, target);
  Space space(problem, target);
  space.add(chooseSchedule(problem, target, Schedule()));
  if (!target.isGpu()) {
    for (int64_t queryTile : cpuQueryTiles)
      for (int64_t keyTile : cpuKeyTiles)
        space.addTiles(queryTile, keyTile);
    return space.schedules;
  }
  if (canHaveRoles(problem, target))
    for (auto [queryTile, ctasPerSm] : roleQueryTiles)
      for (int64_t keyTile : roleKeyTiles)
        for (ScheduleFeatures features : roleFeatures)
          space.addTiles(queryTile, keyTile, features, ctasPerSm);
  for (int64_t queryTile : warpQueryTiles)
    for (int64_t keyTile : warpKeyTiles)
      space.addTiles(queryTile, keyTile);
  return space.schedules;
}

std::vector<Schedule> flash::listVariations(const Problem &problem,
                                            const Machine &target,
                                            const Schedule &schedule) {
  Space space(problem, target);
  if (!target.isGpu())
    return {};
  auto otherStages =
      problem.isGradient ? &Schedule::keyProgramStages : &Schedule::queryStages;
  auto vary = [&](std::optional<int64_t> Schedule::*field, int64_t value) {
    Schedule variation = schedule;
    variation.*field = value;
    // The number of the others follows from what is left.
    if (field == &Schedule::stages)
      (variation.*otherStages).reset();
    if (field == &Schedule::numSplits)
      variation.splitCtas.reset();
    space.add(variation);
  };
  for (int64_t stages : {1, 2, 3, 4})
    vary(&Schedule::stages, stages);
  if (schedule.getPackedHeads() > 1)
    vary(&Schedule::packedHeads, 1);
  if (schedule.hasRoles())
    for (int64_t stages : {1, 2})
      vary(otherStages, stages);
  else
    for (int64_t warps : {1, 2, 4, 8})
      vary(&Schedule::warps, warps);
  std::optional<int64_t> tiles = problem.countQueryTiles(*schedule.queryTile);
  int64_t blocks = space.getBlocks(schedule);
  bool isPersistent = schedule.has(ScheduleFeatures::Persistent);
  if (tiles && *tiles < blocks && !isPersistent && problem.keys)
    for (int64_t splits : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32})
      if (splits * 2 * *schedule.keyTile <= *problem.keys || splits == 1)
        vary(&Schedule::numSplits, splits);
  llvm::erase(space.schedules, schedule);
  return space.schedules;
}
