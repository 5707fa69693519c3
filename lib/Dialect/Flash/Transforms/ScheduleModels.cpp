//===- ScheduleModels.cpp - What all models of GPUs count -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleModels.h"

#include "flash/Dialect/Tile/IR/Tile.h"

using namespace mlir;

int64_t flash::getSharedBytes(AttentionOp op, const Schedule &schedule) {
  Type element = op.getQuery().getType().getElementType();
  auto getTileBytes = [&](int64_t rows, int64_t columns) {
    return tile::SmemType::get(rows, columns, element).getAlignedBytes();
  };
  int64_t slots = getTileBytes(*schedule.keyTile, op.getHeadDim()) +
                  getTileBytes(*schedule.keyTile, op.getValueDim());
  return schedule.queryStages.value_or(1) *
             getTileBytes(*schedule.queryTile, op.getHeadDim()) +
         *schedule.stages * slots;
}

flash::Models flash::getModels(AttentionOp op, StringRef target,
                               bool hasRoles) {
  if (target == "cpu" || target == "emulate")
    return {chooseCpuSchedule, nullptr};
  if (target == "sm_90a" && hasSm90Schedule(op) && hasRoles)
    return {chooseSm90Schedule, completeSm90Schedule};
  return {chooseSm80Schedule, completeSm80Schedule};
}
