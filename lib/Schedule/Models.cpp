//===- Models.cpp - Which model is for which target -----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelParts.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/IR/Warpgroups.h"

using namespace flash;

int64_t flash::getSharedBytes(const Problem &problem,
                              const Schedule &schedule) {
  auto getTileBytes = [&](int64_t rows, int64_t columns) {
    return tile::SmemType::get(rows, columns, problem.element)
        .getAlignedBytes();
  };
  int64_t stageBytes = getTileBytes(*schedule.keyTile, problem.headDim) +
                       getTileBytes(*schedule.keyTile, problem.valueDim);
  return schedule.queryStages.value_or(1) *
             getTileBytes(*schedule.queryTile, problem.headDim) +
         *schedule.stages * stageBytes;
}

bool flash::canHaveRoles(const Problem &problem, const TargetInfo &target) {
  return target.hasWarpgroups && problem.getElementBits() == 16;
}

Schedule flash::chooseSchedule(const Problem &problem, const TargetInfo &target,
                               const Schedule &given) {
  if (!target.isGpu)
    return chooseCpuSchedule(problem);
  // Tiles that only warps without roles can have ask for such.
  bool hasRoles = given.features
                      ? given.hasRoles()
                      : canBeWarpgroupTiles(given.queryTile.value_or(0),
                                            given.keyTile.value_or(0));
  if (!hasRoles || !canHaveRoles(problem, target))
    return chooseSm80Schedule(problem, target);
  Schedule schedule = chooseSm90Schedule(problem, target);
  // One warpgroup has nobody to take turns with.
  if (given.queryTile == tile::rowsOfWarpgroup)
    schedule.features = *schedule.features & ~ScheduleFeatures::PingPong;
  return schedule;
}

std::string flash::completeSchedule(const Problem &problem,
                                    const TargetInfo &target,
                                    Schedule &schedule) {
  if (!target.isGpu)
    return "";
  std::string fault = schedule.hasRoles() && canHaveRoles(problem, target)
                          ? completeSm90Schedule(problem, target, schedule)
                          : completeSm80Schedule(problem, target, schedule);
  if (!schedule.splitCtas && !schedule.numSplits)
    schedule.numSplits = 1;
  return fault;
}
