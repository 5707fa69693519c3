//===- Schedule.h - A schedule in the making --------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_FLASH_TRANSFORMS_SCHEDULE_H
#define FLASH_DIALECT_FLASH_TRANSFORMS_SCHEDULE_H

#include "flash/Dialect/Flash/IR/Flash.h"

namespace flash {

/// The values of a `#flash.schedule`; 0 stands for what is not said.
struct Schedule {
  int64_t queryTile = 0, keyTile = 0, warps = 0, stages = 0, queryStages = 0,
          residentBlocks = 0;
  ScheduleFeatures features = ScheduleFeatures::None;
  int64_t splits = 0, units = 0;

  static Schedule get(ScheduleAttr attribute);

  /// Null, after `emitError`, if a value is not possible.
  ScheduleAttr
  getAttribute(mlir::MLIRContext *context,
               llvm::function_ref<mlir::InFlightDiagnostic()> emitError) const;

  /// Calls `visit` with the name and the value of every number, in the order
  /// of the attribute.
  template <typename Self, typename Visit>
  static void forEachNumber(Self &schedule, Visit visit) {
    visit("query_tile", schedule.queryTile);
    visit("key_tile", schedule.keyTile);
    visit("warps", schedule.warps);
    visit("stages", schedule.stages);
    visit("query_stages", schedule.queryStages);
    visit("resident_blocks", schedule.residentBlocks);
    visit("splits", schedule.splits);
    visit("units", schedule.units);
  }

  /// As the value of flash-run's `--schedule`: "query_tile=64,key_tile=128".
  std::string str() const;

  bool operator==(const Schedule &other) const;
};

} // namespace flash

#endif // FLASH_DIALECT_FLASH_TRANSFORMS_SCHEDULE_H
