//===- KeysFirst.cpp - The first keys are copied before the queries -------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopEntry.h"

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace flash::tile {
#define GEN_PASS_DEF_KEYSFIRST
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

static int64_t getNumBytes(CopyAsyncOp copy) {
  return copy.getRing().getType().getTile().getNumBytes();
}

/// The first loop behind the copy that copies, less at a time, in the copy's
/// block or in a choice there that guards it; null if none does. Where it
/// copies about as much, to wait less is not worth the registers.
static scf::ForOp getNextCopies(CopyAsyncOp copy) {
  for (Operation *op = copy->getNextNode(); op; op = op->getNextNode()) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (auto choice = dyn_cast<scf::IfOp>(op))
      if (auto loops = choice.thenBlock()->getOps<scf::ForOp>();
          !loops.empty() && getEntryGuard(*loops.begin()))
        loop = *loops.begin();
    if (!loop || loop.getOps<CopyAsyncOp>().empty())
      continue;
    CopyAsyncOp first = *loop.getOps<CopyAsyncOp>().begin();
    // Where a block claims tiles, the stage is free at the end of the tile
    // before only; what the loop copies can be there by then.
    int64_t least = copy->getBlock()->getOps<ClaimOp>().empty() ? 2 : 1;
    return getNumBytes(copy) >= least * getNumBytes(first) ? loop
                                                           : scf::ForOp();
  }
  return {};
}

/// Moves the copy and what takes its stage into the first iteration of the
/// loop, behind the first copy there, or in front of a loop that is not
/// entered.
static void moveInto(scf::ForOp loop, RingAcquireOp acquire, CopyAsyncOp copy) {
  Location loc = copy.getLoc();
  OpBuilder b(copy);
  scf::IfOp guard = getEntryGuard(loop);
  if (guard || !isAlwaysEntered(loop)) {
    b.setInsertionPoint(guard ? guard.getOperation() : loop.getOperation());
    Value isEntered = guard ? guard.getCondition() : emitIsEntered(b, loop);
    auto choice = scf::IfOp::create(b, loc, isEntered, /*withElseRegion=*/true);
    OpBuilder otherwise = choice.getElseBodyBuilder();
    otherwise.clone(*acquire);
    otherwise.clone(*copy);
  }

  CopyAsyncOp first = *loop.getOps<CopyAsyncOp>().begin();
  b.setInsertionPointAfter(first);
  Value isFirst =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                            loop.getInductionVar(), loop.getLowerBound());
  auto choice = scf::IfOp::create(b, loc, isFirst);
  Operation *end = choice.thenBlock()->getTerminator();
  acquire->moveBefore(end);
  copy->moveBefore(end);
}

namespace {
struct KeysFirst : flash::tile::impl::KeysFirstBase<KeysFirst> {
  void runOnOperation() override {
    SmallVector<std::pair<RingAcquireOp, CopyAsyncOp>> waiting;
    getOperation().walk([&](WarpSpecializeOp roles) {
      // A copy in the body of a loop whose loops copy, too: the next round
      // waits for the stage.
      roles.walk([&](RingAcquireOp acquire) {
        auto copy = dyn_cast_if_present<CopyAsyncOp>(acquire->getNextNode());
        if (copy && isa<scf::ForOp>(copy->getParentOp()) &&
            copy.getRing() == acquire.getRing() && !copy.getPart() &&
            copy.getRing().getType().getStages() == 1)
          waiting.emplace_back(acquire, copy);
      });
    });
    for (auto [acquire, copy] : waiting)
      if (scf::ForOp loop = getNextCopies(copy))
        moveInto(loop, acquire, copy);
  }
};
} // namespace
