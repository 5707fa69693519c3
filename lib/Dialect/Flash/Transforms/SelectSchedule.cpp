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
    if (target == "cpu" || target == "emulate")
      return {chooseCpuSchedule, nullptr};
    std::optional<ScheduleAttr> written = op.getSchedule();
    bool hasRoles = written ? written->getFeatures() != ScheduleFeatures::None
                            : features != "none";
    // Tiles that only warps without roles can have ask for such.
    if (!written && features.empty())
      hasRoles = canHaveSm90Tiles(queryTile, keyTile);
    if (target == "sm_90a" && hasSm90Schedule(op) && hasRoles)
      return {chooseSm90Schedule, completeSm90Schedule};
    return {chooseSm80Schedule, completeSm80Schedule};
  }

  /// The schedule that the program gives.
  static Schedule getWritten(ScheduleAttr written) {
    return {written.getQueryTile(),
            written.getKeyTile(),
            written.getWarps().value_or(0),
            written.getStages().value_or(0),
            written.getQueryStages().value_or(0),
            written.getFeatures(),
            written.getSplits().value_or(0),
            written.getUnits().value_or(0)};
  }

  /// What the model or an option proposes.
  FailureOr<Schedule> propose(AttentionOp op, const Models &models) {
    Schedule chosen = models.choose(op);
    for (auto [option, field] :
         {std::pair(&queryTile, &chosen.queryTile),
          std::pair(&keyTile, &chosen.keyTile),
          std::pair(&warps, &chosen.warps), std::pair(&stages, &chosen.stages),
          std::pair(&splits, &chosen.splits)})
      if (*option)
        *field = *option;
    if (splits)
      chosen.units = 0;
    if (features.empty())
      return chosen;
    std::optional<ScheduleFeatures> parsed =
        symbolizeScheduleFeatures(features);
    if (!parsed)
      return op.emitOpError("cannot be scheduled: '")
             << features
             << "' is no list of features such as specialize_warps|overlap";
    chosen.features = *parsed;
    return chosen;
  }

  static ScheduleAttr getAttribute(AttentionOp op, const Schedule &schedule) {
    auto optional = [](int64_t value) {
      return value ? std::optional<int64_t>(value) : std::nullopt;
    };
    return ScheduleAttr::getChecked(
        [&] { return op.emitOpError("cannot be scheduled: "); },
        op.getContext(), schedule.queryTile, schedule.keyTile,
        optional(schedule.warps), optional(schedule.stages),
        optional(schedule.queryStages), schedule.features,
        optional(schedule.splits), optional(schedule.units));
  }

  LogicalResult select(AttentionOp op) {
    Models models = getModels(op);
    FailureOr<Schedule> schedule =
        op.getSchedule() ? getWritten(*op.getSchedule()) : propose(op, models);
    if (failed(schedule))
      return failure();
    // The CPU has few threads, for which the query tiles are enough.
    if (target == "cpu")
      schedule->splits = schedule->units = 0;
    // The rules of the attribute come first.
    if (!getAttribute(op, *schedule) ||
        (models.complete && failed(models.complete(op, *schedule))))
      return failure();
    op.setScheduleAttr(getAttribute(op, *schedule));
    return success();
  }

  void runOnOperation() override {
    if (target != "cpu" && target != "emulate" && target != "sm_80" &&
        target != "sm_90a") {
      emitError(getOperation().getLoc(),
                "there is no schedule for the target '")
          << target << "'; there are cpu, emulate, sm_80 and sm_90a";
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
