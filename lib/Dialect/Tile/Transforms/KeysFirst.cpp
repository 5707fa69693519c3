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
#include "llvm/Support/Debug.h"

namespace flash::tile {
#define GEN_PASS_DEF_KEYSFIRST
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

#define DEBUG_TYPE "tile-keys-first"

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

/// The last op that uses a tile of the copy's ring, by its number: its stage is
/// free behind that.
static int64_t getLastUse(CopyAsyncOp copy,
                          const llvm::DenseMap<Operation *, int64_t> &numbers) {
  int64_t last = -1;
  for (Operation *user : copy.getRing().getUsers())
    if (isa<RingWaitOp>(user))
      for (Operation *use : user->getUsers())
        last = std::max(last, numbers.lookup(use));
  return last;
}

namespace {
struct KeysFirst : flash::tile::impl::KeysFirstBase<KeysFirst> {
  void runOnOperation() override {
    SmallVector<std::pair<RingAcquireOp, CopyAsyncOp>> waiting;
    llvm::DenseMap<Operation *, int64_t> numbers;
    getOperation().walk([&](WarpSpecializeOp roles) {
      roles.walk([&, number = int64_t(0)](Operation *op) mutable {
        numbers[op] = number++;
      });
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
    // Each goes behind the first copy of the loop, so first the one whose stage
    // is free last.
    auto getEnd = [&](const std::pair<RingAcquireOp, CopyAsyncOp> &of) {
      return std::pair(getLastUse(of.second, numbers),
                       numbers.lookup(of.second));
    };
    llvm::sort(waiting,
               [&](auto &a, auto &b) { return getEnd(a) > getEnd(b); });
    for (auto [acquire, copy] : waiting) {
      scf::ForOp loop = getNextCopies(copy);
      LLVM_DEBUG(llvm::dbgs()
                 << copy.getLoc() << ": the copy "
                 << (loop ? "goes behind the first one of the loop\n"
                          : "stays before the loop\n"));
      if (loop)
        moveIntoFirstIteration(loop, {acquire, copy},
                               *loop.getOps<CopyAsyncOp>().begin());
    }
  }
};
} // namespace
