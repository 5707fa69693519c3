//===- KeysFirst.cpp - The first keys are copied before the queries -------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopEntry.h"

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
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

/// The first loop behind the copy that copies, less at a time; null if none
/// does. Where it copies about as much, to wait less is not worth the
/// registers.
static scf::ForOp getNextCopies(CopyAsyncOp copy) {
  scf::ForOp loop = findLoopBehind(copy, [](scf::ForOp loop) {
    return !loop.getOps<CopyAsyncOp>().empty();
  });
  if (!loop)
    return {};
  CopyAsyncOp first = *loop.getOps<CopyAsyncOp>().begin();
  // Where a block claims tiles, the stage is free at the end of the tile
  // before only; what the loop copies can be there by then.
  int64_t least = copy->getBlock()->getOps<ClaimOp>().empty() ? 2 : 1;
  return getNumBytes(copy) >= least * getNumBytes(first) ? loop : scf::ForOp();
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
            copy.getRing().getType().getStages() == 1 &&
            !copy.getRing().getDefiningOp<RingOp>().getFinite())
          waiting.emplace_back(acquire, copy);
      });
    });
    // Each goes behind the first copy of the loop: the last one first.
    for (auto [acquire, copy] : llvm::reverse(waiting))
      if (scf::ForOp loop = getNextCopies(copy))
        moveIntoFirstIteration(loop, {acquire, copy},
                               *loop.getOps<CopyAsyncOp>().begin());
  }
};
} // namespace
