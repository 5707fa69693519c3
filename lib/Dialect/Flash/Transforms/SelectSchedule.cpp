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

  /// The models of a target for an op.
  struct Models {
    Schedule (*choose)(AttentionOp);
    /// Null if any schedule will do.
    LogicalResult (*complete)(AttentionOp, Schedule &);
  };
  Models getModels(AttentionOp op) {
    if (target == "cpu")
      return {chooseCpuSchedule, nullptr};
    std::optional<ScheduleAttr> written = op.getSchedule();
    bool hasRoles = written ? written->getFeatures() != ScheduleFeatures::None
                            : features != "none";
    if (target == "sm_90a" && hasSm90Schedule(op) && hasRoles)
      return {chooseSm90Schedule, completeSm90Schedule};
    return {chooseSm80Schedule, completeSm80Schedule};
  }

  LogicalResult select(AttentionOp op) {
    Models models = getModels(op);
    Schedule chosen;
    if (std::optional<ScheduleAttr> written = op.getSchedule()) {
      // It is taken if it fits.
      if (!models.complete)
        return success();
      chosen = {written->getQueryTile(),
                written->getKeyTile(),
                written->getWarps().value_or(0),
                written->getStages().value_or(0),
                written->getQueryStages().value_or(0),
                written->getFeatures()};
    } else {
      chosen = models.choose(op);
      for (auto [option, field] : {std::pair(&queryTile, &chosen.queryTile),
                                   std::pair(&keyTile, &chosen.keyTile),
                                   std::pair(&warps, &chosen.warps),
                                   std::pair(&stages, &chosen.stages)})
        if (*option)
          *field = *option;
      if (!features.empty()) {
        std::optional<ScheduleFeatures> parsed =
            symbolizeScheduleFeatures(features);
        if (!parsed)
          return op.emitOpError("cannot be scheduled: '")
                 << features
                 << "' is no list of features such as specialize_warps|overlap";
        chosen.features = *parsed;
      }
    }
    // The rules of the attribute come first.
    auto getAttribute = [&] {
      auto optional = [](int64_t value) {
        return value ? std::optional<int64_t>(value) : std::nullopt;
      };
      return ScheduleAttr::getChecked(
          [&] { return op.emitOpError("cannot be scheduled: "); },
          op.getContext(), chosen.queryTile, chosen.keyTile,
          optional(chosen.warps), optional(chosen.stages),
          optional(chosen.queryStages), chosen.features);
    };
    auto schedule = getAttribute();
    if (schedule && models.complete) {
      if (failed(models.complete(op, chosen)))
        return failure();
      schedule = getAttribute();
    }
    if (!schedule)
      return failure();
    op.setScheduleAttr(schedule);
    return success();
  }

  void runOnOperation() override {
    if (target != "cpu" && target != "sm_80" && target != "sm_90a") {
      emitError(getOperation().getLoc(),
                "there is no schedule for the target '")
          << target << "'; there are cpu, sm_80 and sm_90a";
      return signalPassFailure();
    }
    WalkResult result = getOperation().walk([&](AttentionOp op) {
      return failed(select(op)) ? WalkResult::interrupt()
                                : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
