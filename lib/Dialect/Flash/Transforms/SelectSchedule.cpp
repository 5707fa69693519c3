//===- SelectSchedule.cpp - Propose tile sizes ----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/GetProblem.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/MaskTiles.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Schedule/Models.h"
#include "flash/Schedule/TuningTable.h"
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
  FailureOr<Schedule> lookUp(AttentionOpInterface op, const Problem &problem) {
    if (device.empty())
      return Schedule();
    TuningKey key = TuningKey::get(problem, machine, device);
    const TuningEntry *entry = file ? file->find(key) : nullptr;
    bool isOfFile = entry;
    if (!entry)
      entry = TuningTable::getShipped().find(key);
    if (!entry)
      return Schedule();
    // What was measured is all of it: nothing in it is left to the model. A
    // file may have been written by hand.
    Schedule schedule = entry->schedule;
    // Programs whose groups of heads are of other sizes share it.
    if (problem.group && *problem.group % schedule.getPackedHeads() != 0)
      schedule.packedHeads.reset();
    // It has no room for the heads that the program asks for, or the model.
    if (!schedule.packedHeads && *schedule.queryTile < problem.packedHeads)
      return Schedule();
    auto grad = dyn_cast<AttentionGradOp>(op.getOperation());
    std::string fault = grad ? proposeSchedule(grad, problem, machine, schedule)
                             : completeSchedule(problem, machine, schedule);
    if (failed(complain(op, fault)))
      return emitError(FileLineColLoc::get(&getContext(),
                                           isOfFile ? StringRef(tuningFile)
                                                    : "the shipped schedules",
                                           entry->line, 1))
             << "this schedule is not possible for the program";
    return schedule;
  }

  /// Says what is wrong with the schedule of the op, if anything is.
  LogicalResult complain(Operation *op, StringRef fault) {
    if (fault.empty())
      return success();
    return op->emitOpError("cannot be scheduled: ") << fault;
  }

  /// Whether the device is to list the tiles that the mask leaves; nothing
  /// where it has no choice, or does as it would anyway.
  std::optional<int64_t> chooseBlockMap(AttentionOpInterface op,
                                        const Problem &problem,
                                        const Schedule &schedule) {
    if (problem.masksInRegion)
      return paysToListTiles(problem, machine, schedule)
                 ? std::nullopt
                 : std::optional<int64_t>(0);
    if (!op.getMask() || !schedule.hasRoles() || schedule.splitKeys ||
        schedule.isFused())
      return std::nullopt;
    // A loop that asks of each tile whether it is visited cannot overlap steps.
    MaskTiles tiles = computeMaskTiles(
        *op.getMask(), schedule.getQueriesOfTile(), schedule.getKeyStep(),
        problem.queries, problem.keys, schedule.getPackedHeads());
    if (tiles.gaveUp || tiles.fullIsRange ||
        !paysToListTiles(problem, machine, schedule))
      return std::nullopt;
    return 1;
  }

  LogicalResult select(AttentionOp op) {
    Problem problem = getProblem(op);
    // The user's keys go before those that were measured, and these before the
    // model's.
    Schedule schedule = given;
    if (op.getSchedule())
      schedule = schedule.over(op.getSchedule()->getValue());
    if (schedule.splitKeys && !schedule.keyTile)
      return op.emitOpError("cannot be scheduled: split_keys needs key_tile, "
                            "on which the bits of a row depend, too");
    bool hasFeatures = schedule.features.has_value();
    problem.packedHeads = choosePackedHeads(problem, machine, schedule);
    FailureOr<Schedule> measured = lookUp(op, problem);
    if (failed(measured))
      return failure();
    // It was measured with its tiles and its kind of warps, not with others.
    if ((!schedule.queryTile || schedule.queryTile == measured->queryTile) &&
        (!schedule.keyTile || schedule.keyTile == measured->keyTile) &&
        (!schedule.features || schedule.hasRoles() == measured->hasRoles()))
      schedule = schedule.over(*measured);
    problem.packedHeads = choosePackedHeads(problem, machine, schedule);
    schedule = schedule.over(chooseSchedule(problem, machine, schedule));
    // The CPU has few threads, for which the query tiles are enough.
    if (target == "cpu")
      schedule.numSplits = schedule.splitCtas = schedule.splitKeys =
          std::nullopt;
    if (failed(complain(op, completeSchedule(problem, machine, schedule))))
      return failure();
    // The choice whether to rescale is one for several rows.
    if (schedule.splitKeys && schedule.features && !hasFeatures)
      *schedule.features &= ~ScheduleFeatures::LazyRescale;
    if (!schedule.blockMap && !op.getKeyTiles())
      schedule.blockMap = chooseBlockMap(op, problem, schedule);
    op.setScheduleAttr(ScheduleAttr::get(&getContext(), schedule));
    return success();
  }

  LogicalResult select(AttentionGradOp op) {
    Schedule schedule = given;
    if (op.getSchedule())
      schedule = schedule.over(op.getSchedule()->getValue());
    Problem problem = getProblem(op);
    // Programs of gradients were measured together, not with other keys.
    if (schedule.isEmpty()) {
      FailureOr<Schedule> measured = lookUp(op, problem);
      if (failed(measured))
        return failure();
      schedule = *measured;
    }
    if (failed(complain(op, proposeSchedule(op, problem, machine, schedule))))
      return failure();
    // Two maps, and more than twice the work.
    if (!schedule.blockMap && !op.getKeyTiles() && !op.getQueryTiles())
      schedule.blockMap = chooseBlockMap(op, problem, schedule);
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
    FailureOr<TargetInfo> known = getTarget(getOperation(), target);
    if (failed(known))
      return signalPassFailure();
    machine = *known;
    FailureOr<Schedule> parsed = parseSchedule(getOperation(), schedule);
    if (failed(parsed))
      return signalPassFailure();
    given = *parsed;
    if (failed(loadFile()))
      return signalPassFailure();
    WalkResult result = getOperation().walk([&](Operation *op) -> WalkResult {
      if (auto attention = dyn_cast<AttentionOp>(op))
        return select(attention);
      if (auto grad = dyn_cast<AttentionGradOp>(op))
        return select(grad);
      return success();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  TargetInfo machine = cpuTarget;
  Schedule given;
  std::shared_ptr<const TuningTable> file;
};
} // namespace
