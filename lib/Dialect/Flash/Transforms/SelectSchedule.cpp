//===- SelectSchedule.cpp - Propose tile sizes ----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TunedSchedules.h"
#include "Visits.h"

#include "flash/Analysis/MaskTiles.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/GetProblem.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Schedule/Models.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Debug.h"

namespace flash {
#define GEN_PASS_DEF_SELECTSCHEDULE
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

#define DEBUG_TYPE "flash-select-schedule"

using namespace mlir;
using namespace flash;

namespace {
struct SelectSchedule : flash::impl::SelectScheduleBase<SelectSchedule> {
  using Base::Base;

  /// What was measured to be best on the device; nothing if nothing was.
  FailureOr<Schedule> lookUp(AttentionOpInterface op, const Problem &problem) {
    const TuningEntry *entry = tuned.find(problem, machine);
    LLVM_DEBUG(llvm::dbgs()
               << op->getLoc() << ": measured: "
               << (entry ? entry->schedule.str() : "nothing") << "\n");
    if (!entry)
      return Schedule();
    // What was measured is all of it: nothing in it is left to the model. A
    // file may have been written by hand.
    Schedule schedule = entry->schedule;
    // Programs whose groups of heads are of other sizes share it.
    if (problem.group && *problem.group % schedule.getPackedHeads() != 0)
      schedule.packedHeads.reset();
    // It has no room for the heads that the program or the model packs.
    if (!schedule.packedHeads && *schedule.queryTile < problem.packedHeads)
      return Schedule();
    auto grad = dyn_cast<AttentionGradOp>(op.getOperation());
    std::string fault = grad ? proposeSchedule(grad, problem, machine, schedule)
                             : completeSchedule(problem, machine, schedule);
    if (failed(complain(op, fault)))
      return emitError(tuned.getLocation(&getContext(), *entry))
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
    if (!op.getMask() || !mayListKnownTiles(schedule))
      return std::nullopt;
    MaskTiles tiles = computeMaskTiles(
        *op.getMask(), schedule.getQueriesOfTile(), schedule.getKeyStep(),
        problem.queries, problem.keys, schedule.getPackedHeads());
    if (tiles.gaveUp || tiles.fullIsRange)
      return std::nullopt;
    // A loop visits whole tiles. A query may see some of their keys alone.
    Problem inTiles = problem;
    if (problem.queries && problem.keys)
      inTiles.meanKeysPerQuery =
          estimateKeysOfQuery(*op.getMask(), *problem.queries, *problem.keys,
                              schedule.getKeyStep())
              .mean;
    return paysToListTiles(inTiles, machine, schedule)
               ? std::optional<int64_t>(1)
               : std::nullopt;
  }

  /// What batches that are sequences of their own leave to choose: a block map
  /// has no lengths of queries.
  LogicalResult selectForSequences(AttentionOpInterface op,
                                   const Schedule &written,
                                   Schedule &schedule) {
    if (!op.getQueryLengths() && !op.getKeyLengths())
      return success();
    if (written.blockMap.value_or(0))
      return op->emitOpError("cannot be scheduled: query_lengths and "
                             "key_lengths exclude block_map, which "
                             "is of batches that are all as long; leave it "
                             "out, or give lists of blocks");
    schedule.blockMap = 0;
    if (!isa<AttentionOp>(*op))
      return success();
    std::string fault =
        findSplitFault(op.getQuery(), op->getResults(), op.getQueryLengths());
    if (fault.empty())
      return success();
    if (written.numSplits.value_or(1) > 1 || written.splitCtas ||
        written.splitKeys)
      return complain(op, fault);
    schedule.numSplits = schedule.splitCtas = schedule.splitKeys = std::nullopt;
    return success();
  }

  template <typename OpTy> void setSchedule(OpTy op, const Schedule &schedule) {
    LLVM_DEBUG(llvm::dbgs()
               << op->getLoc() << ": chosen: " << schedule.str() << "\n");
    op.setScheduleAttr(ScheduleAttr::get(&getContext(), schedule));
  }

  LogicalResult select(AttentionOp op) {
    Problem problem = getProblem(op);
    // The user's keys go before those that were measured, and these before the
    // model's.
    Schedule schedule = given;
    if (op.getSchedule())
      schedule = schedule.over(op.getSchedule()->getValue());
    const Schedule written = schedule;
    if (schedule.splitKeys && !schedule.keyTile)
      return op.emitOpError("cannot be scheduled: split_keys needs key_tile, "
                            "on which the bits of a row depend, too");
    bool hasFeatures = schedule.features.has_value();
    if (op.getBlockSizes() && !schedule.packedHeads)
      schedule.packedHeads = 1;
    problem.packedHeads = choosePackedHeads(problem, machine, schedule);
    FailureOr<Schedule> measured = lookUp(op, problem);
    if (failed(measured))
      return failure();
    // It was measured with its tiles and its kind of warps, not with others.
    if (schedule.agreesWith(*measured) &&
        findTileFault(op, machine, *measured).empty())
      schedule = schedule.over(*measured);
    problem.packedHeads = choosePackedHeads(problem, machine, schedule);
    const Schedule known = schedule;
    schedule = schedule.over(chooseSchedule(problem, machine, schedule));
    fitTiles(op, problem, machine, known, schedule);
    // The CPU has few threads, for which the query tiles are enough.
    if (machine == getCpu())
      schedule.numSplits = schedule.splitCtas = schedule.splitKeys =
          std::nullopt;
    if (failed(complain(op, completeSchedule(problem, machine, schedule))) ||
        failed(complain(op, findTileFault(op, machine, schedule))))
      return failure();
    if (failed(selectForSequences(op, written, schedule)))
      return failure();
    // The choice whether to rescale is one for several rows.
    if (schedule.splitKeys && schedule.features && !hasFeatures)
      *schedule.features &= ~ScheduleFeatures::LazyRescale;
    if (!schedule.blockMap && !op.getKeyTiles())
      schedule.blockMap = chooseBlockMap(op, problem, schedule);
    setSchedule(op, schedule);
    return success();
  }

  LogicalResult select(AttentionGradOp op) {
    Schedule schedule = given;
    if (op.getSchedule())
      schedule = schedule.over(op.getSchedule()->getValue());
    const Schedule written = schedule;
    Problem problem = getProblem(op);
    // Programs of gradients were measured together, not with other keys.
    if (schedule.isEmpty()) {
      FailureOr<Schedule> measured = lookUp(op, problem);
      if (failed(measured))
        return failure();
      if (findTileFault(op, machine, *measured).empty())
        schedule = *measured;
    }
    // Whether there is one program depends on there being no map.
    if (failed(selectForSequences(op, written, schedule)) ||
        failed(complain(op, proposeSchedule(op, problem, machine, schedule))))
      return failure();
    // Two maps, and more than twice the work.
    if (!schedule.blockMap && !op.getKeyTiles() && !op.getQueryTiles())
      schedule.blockMap = chooseBlockMap(op, problem, schedule);
    setSchedule(op, schedule);
    return success();
  }

  void runOnOperation() override {
    machine = getMachine(getOperation());
    FailureOr<Schedule> parsed = parseSchedule(getOperation(), schedule);
    if (failed(parsed))
      return signalPassFailure();
    given = *parsed;
    auto loaded = TunedSchedules::load(getOperation(), device, tuningFile);
    if (failed(loaded))
      return signalPassFailure();
    tuned = std::move(*loaded);
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

  Machine machine;
  Schedule given;
  TunedSchedules tuned;
};
} // namespace
