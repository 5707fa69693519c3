//===- SelectSchedule.cpp - Propose tile sizes ----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleModels.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Tile/IR/Tile.h"
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

  /// A schedule that the program gives is taken if it fits.
  WalkResult checkWritten(AttentionOp op) {
    if (target != "sm_80")
      return WalkResult::advance();
    ScheduleAttr written = *op.getSchedule();
    Schedule schedule = {written.getQueryTile(), written.getKeyTile(),
                         written.getWarps().value_or(0),
                         written.getStages().value_or(0)};
    if (failed(completeSm80Schedule(op, schedule)))
      return WalkResult::interrupt();
    op.setScheduleAttr(ScheduleAttr::get(op.getContext(), schedule.queryTile,
                                         schedule.keyTile, schedule.warps,
                                         schedule.stages));
    return WalkResult::advance();
  }

  void runOnOperation() override {
    if (target != "cpu" && target != "sm_80") {
      emitError(getOperation().getLoc(),
                "there is no schedule for the target '")
          << target << "'; there are cpu and sm_80";
      return signalPassFailure();
    }
    WalkResult result = getOperation().walk([&](AttentionOp op) {
      if (op.getSchedule())
        return checkWritten(op);
      bool isGpu = target == "sm_80";
      Schedule chosen = isGpu ? chooseSm80Schedule(op) : chooseCpuSchedule(op);
      for (auto [option, field] : {std::pair(&queryTile, &chosen.queryTile),
                                   std::pair(&keyTile, &chosen.keyTile),
                                   std::pair(&warps, &chosen.warps),
                                   std::pair(&stages, &chosen.stages)})
        if (*option)
          *field = *option;
      // The rules of the attribute come first.
      auto getAttribute = [&] {
        auto optional = [](int64_t value) {
          return value ? std::optional<int64_t>(value) : std::nullopt;
        };
        return ScheduleAttr::getChecked(
            [&] { return op.emitOpError("cannot be scheduled: "); },
            op.getContext(), chosen.queryTile, chosen.keyTile,
            optional(chosen.warps), optional(chosen.stages));
      };
      auto schedule = getAttribute();
      if (schedule && isGpu) {
        if (failed(completeSm80Schedule(op, chosen)))
          return WalkResult::interrupt();
        schedule = getAttribute();
      }
      if (!schedule)
        return WalkResult::interrupt();
      op.setScheduleAttr(schedule);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
