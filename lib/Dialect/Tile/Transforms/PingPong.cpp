//===- PingPong.cpp - Warpgroups take turns on the tensor cores -----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Schedule/Schedule.h"

namespace flash::tile {
#define GEN_PASS_DEF_PINGPONG
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

/// The last product that is started before anything is waited for.
static MmaAsyncOp getLastOfGroup(MmaAsyncOp first) {
  MmaAsyncOp last = first;
  for (Operation *op = first->getNextNode(); op && !isa<MmaWaitOp>(op);
       op = op->getNextNode())
    if (auto product = dyn_cast<MmaAsyncOp>(op))
      last = product;
  return last;
}

namespace {
struct PingPong : flash::tile::impl::PingPongBase<PingPong> {
  void runOnOperation() override {
    if (!flash::getSchedule(getOperation())
             .has(flash::ScheduleFeatures::PingPong))
      return;
    SmallVector<MmaAsyncOp> products;
    WalkResult walk = getOperation().walk([&](WarpSpecializeOp roles) {
      // Those of the role that has register tiles.
      if (roles.getNumWarpgroups(0) == 1) {
        roles.emitOpError("has one warpgroup of consumers, and ping-pong takes "
                          "two or three");
        return WalkResult::interrupt();
      }
      roles.walk([&](MmaAsyncOp product) {
        // Those that give scores; the others follow them.
        if (isa<SmemType>(product.getA().getType()))
          products.push_back(product);
      });
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    for (MmaAsyncOp product : products) {
      OpBuilder b(product);
      PingPongWaitOp::create(b, product.getLoc());
      b.setInsertionPointAfter(getLastOfGroup(product));
      PingPongArriveOp::create(b, product.getLoc());
    }
  }
};
} // namespace
