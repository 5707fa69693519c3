//===- SelectSchedule.cpp - Propose tile sizes ----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleModels.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace flash {
#define GEN_PASS_DEF_SELECTSCHEDULE
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
struct SelectSchedule : flash::impl::SelectScheduleBase<SelectSchedule> {
  using Base::Base;

  bool isGpu() { return target == "sm_80"; }

  static ScheduleAttr getAttribute(AttentionOp op, const Schedule &schedule) {
    auto optional = [](int64_t value) {
      return value ? std::optional<int64_t>(value) : std::nullopt;
    };
    return ScheduleAttr::getChecked(
        [&] { return op.emitOpError("cannot be scheduled: "); },
        op.getContext(), schedule.queryTile, schedule.keyTile,
        optional(schedule.warps), optional(schedule.stages),
        optional(schedule.splits), optional(schedule.units));
  }

  /// A schedule that the program gives is taken if it fits.
  static Schedule getWritten(ScheduleAttr written) {
    return {written.getQueryTile(),          written.getKeyTile(),
            written.getWarps().value_or(0),  written.getStages().value_or(0),
            written.getSplits().value_or(0), written.getUnits().value_or(0)};
  }

  Schedule propose(AttentionOp op) {
    Schedule chosen = isGpu() ? chooseSm80Schedule(op) : chooseCpuSchedule(op);
    for (auto [option, field] :
         {std::pair(&queryTile, &chosen.queryTile),
          std::pair(&keyTile, &chosen.keyTile),
          std::pair(&warps, &chosen.warps), std::pair(&stages, &chosen.stages),
          std::pair(&splits, &chosen.splits)})
      if (*option)
        *field = *option;
    if (splits)
      chosen.units = 0;
    return chosen;
  }

  void runOnOperation() override {
    if (target != "cpu" && target != "emulate" && target != "sm_80") {
      emitError(getOperation().getLoc(),
                "there is no schedule for the target '")
          << target << "'; there are cpu, emulate and sm_80";
      return signalPassFailure();
    }
    WalkResult result = getOperation().walk([&](AttentionOp op) {
      Schedule schedule =
          op.getSchedule() ? getWritten(*op.getSchedule()) : propose(op);
      // Its threads are few: the queries alone are enough work for them.
      if (target == "cpu")
        schedule.splits = schedule.units = 0;
      // The rules of the attribute come first.
      if (!getAttribute(op, schedule) ||
          (isGpu() && failed(completeSm80Schedule(op, schedule))))
        return WalkResult::interrupt();
      op.setScheduleAttr(getAttribute(op, schedule));
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
