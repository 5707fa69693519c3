//===- SelectSchedule.cpp - Propose tile sizes ----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleModels.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Transforms/TuningTable.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

namespace flash {
#define GEN_PASS_DEF_SELECTSCHEDULE
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
struct SelectSchedule : flash::impl::SelectScheduleBase<SelectSchedule> {
  using Base::Base;

  bool isAnyGiven() const {
    return queryTile || keyTile || warps || stages || queryStages ||
           residentBlocks || splits || units || !features.empty();
  }

  /// What was measured to be best on the device, if anything was. A file goes
  /// before what is compiled in.
  FailureOr<std::optional<Schedule>> lookUp(AttentionOp op) {
    std::optional<Schedule> none;
    if (device.empty() || isAnyGiven())
      return none;
    TuningKey key = TuningKey::get(op, target, device);
    const TuningEntry *entry = file ? file->find(key) : nullptr;
    bool isOfFile = entry;
    if (!entry)
      entry = TuningTable::getShipped().find(key);
    if (!entry)
      return none;
    Schedule schedule = entry->schedule;
    if (!isOfFile)
      return std::optional(schedule);
    // A file may have been written by hand.
    Models models =
        getModels(op, target, schedule.features != ScheduleFeatures::None);
    if (!getAttribute(op, schedule) ||
        (models.complete && failed(models.complete(op, schedule))))
      return emitError(
                 FileLineColLoc::get(&getContext(), tuningFile, entry->line, 1))
             << "this schedule is not possible for the program";
    return std::optional(schedule);
  }

  /// What the model or an option proposes.
  FailureOr<Schedule> propose(AttentionOp op, const Models &models) {
    Schedule chosen = models.choose(op);
    // Several blocks share a multiprocessor because their tiles are small:
    // other tiles have neither their number nor their slots.
    if (chosen.residentBlocks && (queryTile || keyTile))
      chosen.residentBlocks = chosen.stages = 0;
    for (auto [option, field] :
         {std::pair(&queryTile, &chosen.queryTile),
          std::pair(&keyTile, &chosen.keyTile),
          std::pair(&warps, &chosen.warps), std::pair(&stages, &chosen.stages),
          std::pair(&queryStages, &chosen.queryStages),
          std::pair(&residentBlocks, &chosen.residentBlocks),
          std::pair(&splits, &chosen.splits), std::pair(&units, &chosen.units)})
      if (*option)
        *field = *option;
    if (splits && !units)
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
    return schedule.getAttribute(op.getContext(), [&] {
      return op.emitOpError("cannot be scheduled: ");
    });
  }

  LogicalResult select(AttentionOp op) {
    std::optional<Schedule> written;
    if (op.getSchedule()) {
      written = Schedule::get(*op.getSchedule());
    } else {
      auto tuned = lookUp(op);
      if (failed(tuned))
        return failure();
      written = *tuned;
    }
    bool hasRoles = written ? written->features != ScheduleFeatures::None
                            : features != "none";
    // Tiles that only warps without roles can have ask for such.
    if (!written && features.empty())
      hasRoles = canHaveSm90Tiles(queryTile, keyTile);
    Models models = getModels(op, target, hasRoles);
    FailureOr<Schedule> schedule =
        written ? FailureOr<Schedule>(*written) : propose(op, models);
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

  LogicalResult loadFile() {
    if (tuningFile.empty())
      return success();
    auto refuse = [&](const llvm::Twine &message) {
      return emitError(getOperation().getLoc(), message);
    };
    if (device.empty())
      return refuse("the tuning file '" + tuningFile +
                    "' is for devices, and none is named");
    auto table = TuningTable::load(tuningFile);
    if (!table)
      return refuse(llvm::toString(table.takeError()));
    std::vector<std::string> devices = table->getDevices();
    if (!llvm::is_contained(devices, device.getValue()))
      return refuse(
          "the tuning file '" + tuningFile + "' has no schedules for '" +
          device + "'; it has some for " +
          (devices.empty() ? "no device"
                           : "'" + llvm::join(devices, "', '") + "'"));
    file = std::make_shared<TuningTable>(std::move(*table));
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
    if (failed(loadFile()))
      return signalPassFailure();
    WalkResult result = getOperation().walk([&](AttentionOp op) {
      return failed(select(op)) ? WalkResult::interrupt()
                                : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  std::shared_ptr<const TuningTable> file;
};
} // namespace
