//===- CostModel.h - How long a few tiles take ------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where tiles are many, the ones with the highest rate are best. Where they are
// few, other things count more: how many waves they make, whether the last one
// is full, how long the longest tile takes, and what it costs to combine the
// results of splits.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_SCHEDULE_COSTMODEL_H
#define FLASH_LIB_SCHEDULE_COSTMODEL_H

#include "flash/Machine/Machine.h"
#include "flash/Schedule/Problem.h"
#include "flash/Schedule/Schedule.h"

namespace flash {

/// Whether the problem makes so few tiles of `queryTile` queries that their
/// rate alone does not determine how long they take together. Not if their
/// number is not known.
bool hasFewTiles(const Problem &problem, const Machine &target,
                 int64_t queryTile);

/// The one of `choices`, which differ in their tiles, that the target ends
/// first with, and with how many splits of the keys. All sizes are known.
Schedule chooseForFewTiles(const Problem &problem, const Machine &target,
                           llvm::ArrayRef<Schedule> choices);

} // namespace flash

#endif // FLASH_LIB_SCHEDULE_COSTMODEL_H
