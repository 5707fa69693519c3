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
#include "flash/Dialect/Tile/IR/Warpgroups.h"
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

  /// What was measured to be best on the device; nothing if nothing was. A file
  /// goes before what is compiled in.
  FailureOr<Schedule> lookUp(AttentionOp op) {
    if (device.empty())
      return Schedule();
    TuningKey key = TuningKey::get(op, target, device);
    const TuningEntry *entry = file ? file->find(key) : nullptr;
    bool isOfFile = entry;
    if (!entry)
      entry = TuningTable::getShipped().find(key);
    if (!entry)
      return Schedule();
    // What was measured is all of it: nothing in it is left to the model. A
    // file may have been written by hand.
    Schedule schedule = entry->schedule;
    Models models = getModels(op, target, schedule.hasRoles());
    if (models.complete && failed(models.complete(op, schedule)))
      return emitError(FileLineColLoc::get(&getContext(),
                                           isOfFile ? StringRef(tuningFile)
                                                    : "the shipped schedules",
                                           entry->line, 1))
             << "this schedule is not possible for the program";
    return schedule;
  }

  LogicalResult select(AttentionOp op) {
    // The user's keys go before those that were measured, and these before the
    // model's.
    Schedule schedule = given;
    if (op.getSchedule())
      schedule = schedule.over(op.getSchedule()->getValue());
    FailureOr<Schedule> measured = lookUp(op);
    if (failed(measured))
      return failure();
    schedule = schedule.over(*measured);
    // Tiles that only warps without roles can have ask for such.
    bool hasRoles = schedule.features
                        ? schedule.hasRoles()
                        : canHaveSm90Tiles(schedule.queryTile.value_or(0),
                                           schedule.keyTile.value_or(0));
    Models models = getModels(op, target, hasRoles);
    Schedule model = models.choose(op);
    // One warpgroup has nobody to take turns with.
    if (schedule.queryTile == tile::rowsOfWarpgroup && model.features)
      model.features = *model.features & ~ScheduleFeatures::PingPong;
    schedule = schedule.over(model);
    // The CPU has few threads, for which the query tiles are enough.
    if (target == "cpu")
      schedule.splits = schedule.units = std::nullopt;
    if (models.complete && failed(models.complete(op, schedule)))
      return failure();
    op.setScheduleAttr(ScheduleAttr::get(&getContext(), schedule));
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
    llvm::Expected<Schedule> parsed = Schedule::parse(schedule);
    if (!parsed) {
      emitError(getOperation().getLoc(), "the schedule that is given: ")
          << llvm::toString(parsed.takeError());
      return signalPassFailure();
    }
    given = *parsed;
    if (failed(loadFile()))
      return signalPassFailure();
    WalkResult result = getOperation().walk([&](AttentionOp op) {
      return failed(select(op)) ? WalkResult::interrupt()
                                : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  Schedule given;
  std::shared_ptr<const TuningTable> file;
};
} // namespace
