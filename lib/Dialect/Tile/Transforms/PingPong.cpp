//===- PingPong.cpp - Warpgroups alternate on the tensor cores ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Schedule/Schedule.h"
#include "llvm/Support/Debug.h"

namespace flash::tile {
#define GEN_PASS_DEF_PINGPONG
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

#define DEBUG_TYPE "tile-ping-pong"

using namespace mlir;
using namespace flash::tile;

/// The products that are started before anything is waited for, be it the other
/// warpgroups.
static SmallVector<MmaAsyncOp> getGroup(MmaAsyncOp first) {
  SmallVector<MmaAsyncOp> group;
  // Be it in one branch of a choice.
  auto waits = [](Operation *op) {
    return op
        ->walk([](Operation *inner) {
          return isa<MmaWaitOp, ReduceRowsOp, ClearOp>(inner)
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  };
  for (Operation *op = first; op && !waits(op); op = op->getNextNode())
    if (auto product = dyn_cast<MmaAsyncOp>(op))
      group.push_back(product);
  return group;
}

namespace {
struct PingPong : flash::tile::impl::PingPongBase<PingPong> {
  void runOnOperation() override {
    flash::Schedule schedule = flash::getSchedule(getOperation());
    // Warpgroups that divide columns are roles, which wait for what they share.
    if (!schedule.has(flash::ScheduleFeatures::PingPong) ||
        schedule.has(flash::ScheduleFeatures::DivideColumns))
      return;
    SmallVector<MmaAsyncOp> products;
    WalkResult walk = getOperation().walk([&](WarpSpecializeOp roles) {
      // Role 0 has the register tiles.
      if (roles.getNumWarpgroups(0) == 1) {
        roles.emitOpError("has one warpgroup of consumers, and ping-pong takes "
                          "two or three");
        return WalkResult::interrupt();
      }
      roles.walk([&](MmaAsyncOp product) {
        // Products that give scores; the others follow them.
        if (isa<SmemType>(product.getA().getType()))
          products.push_back(product);
      });
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    // A group may have the scores of several steps.
    llvm::SmallPtrSet<Operation *, 8> grouped;
    for (MmaAsyncOp product : products) {
      if (grouped.contains(product))
        continue;
      SmallVector<MmaAsyncOp> group = getGroup(product);
      grouped.insert(group.begin(), group.end());
      LLVM_DEBUG(llvm::dbgs() << product.getLoc() << ": a phase of "
                              << group.size() << " products\n");
      OpBuilder b(product);
      PingPongWaitOp::create(b, product.getLoc());
      b.setInsertionPointAfter(group.back());
      PingPongArriveOp::create(b, product.getLoc());
    }
  }
};
} // namespace
