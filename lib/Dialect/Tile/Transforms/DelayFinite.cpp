//===- DelayFinite.cpp - Tiles that are made finite come late -------------===//
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
#define GEN_PASS_DEF_DELAYFINITE
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

#define DEBUG_TYPE "tile-delay-finite"

using namespace mlir;
using namespace flash::tile;

/// The first op of the block that uses the value, itself or inside.
static Operation *getFirstUser(Block &block, Value value) {
  Operation *first = nullptr;
  for (Operation *user : value.getUsers()) {
    Operation *ancestor = block.findAncestorOpInBlock(*user);
    if (ancestor && (!first || ancestor->isBeforeInBlock(first)))
      first = ancestor;
  }
  return first;
}

/// The loop that uses the tile first, or none where something in front does.
static scf::ForOp getFirstLoop(RingWaitOp wait) {
  return dyn_cast_or_null<scf::ForOp>(
      getFirstUser(*wait->getBlock(), wait.getTile()));
}

/// Whether the first use in a loop is deferred: it takes with the tile what an
/// iteration before put, so that there is time until then. Other uses would
/// wait for a copy that is behind the copies of the first iteration.
static bool isUsedLate(RingWaitOp wait) {
  scf::ForOp loop = getFirstLoop(wait);
  if (!loop)
    return false;
  Operation *user = getFirstUser(*loop.getBody(), wait.getTile());
  return llvm::any_of(user->getOperands(), [&](Value operand) {
    auto other = operand.getDefiningOp<RingWaitOp>();
    if (!other)
      return false;
    bool isPut = false;
    for (RingPutOp put : loop.getOps<RingPutOp>()) {
      if (put.getRing() != other.getRing())
        continue;
      if (put.getStep() == other.getStep())
        return false;
      isPut = true;
    }
    return isPut;
  });
}

/// Looks at the tile in the loop that uses it first, and waits behind it.
static void delay(RingWaitOp wait) {
  Value tile = wait.getTile();
  scf::ForOp loop = getFirstLoop(wait);
  OpBuilder b(getFirstUser(*loop.getBody(), tile));
  Value seen = RingPeekOp::create(b, wait.getLoc(), tile.getType(),
                                  wait.getRing(), wait.getStep());
  tile.replaceUsesWithIf(seen, [&](OpOperand &use) {
    return loop->isProperAncestor(use.getOwner());
  });
  wait->moveAfter(loop);
}

/// Moves what another role does to the stage into the first iteration of the
/// loop behind it in which it does such (`OpTy`) to others, behind the last
/// one.
template <typename OpTy> static void delay(ArrayRef<Operation *> ops) {
  scf::ForOp loop = findLoopBehind(
      ops.back(), [](scf::ForOp loop) { return !loop.getOps<OpTy>().empty(); });
  if (!loop)
    return;
  Operation *last = nullptr;
  for (OpTy op : loop.getOps<OpTy>())
    last = op;
  moveIntoFirstIteration(loop, ops, last);
}

namespace {
struct DelayFinite : flash::tile::impl::DelayFiniteBase<DelayFinite> {
  void runOnOperation() override {
    SmallVector<Operation *> users;
    getOperation().walk([&](RingOp ring) {
      if (!ring.getFinite())
        return;
      bool areLate = llvm::all_of(ring->getUsers(), [](Operation *user) {
        auto wait = dyn_cast<RingWaitOp>(user);
        return !wait || isUsedLate(wait);
      });
      LLVM_DEBUG(llvm::dbgs() << ring.getLoc() << ": tiles become finite "
                              << (areLate ? "in the loop\n"
                                          : "before products read them\n"));
      if (areLate)
        llvm::append_range(users, ring->getUsers());
    });
    for (Operation *user : users) {
      if (auto wait = dyn_cast<RingWaitOp>(user))
        delay(wait);
      else if (auto change = dyn_cast<RingMakeFiniteOp>(user))
        delay<RingCheckFiniteOp>(change.getOperation());
      else if (auto copy = dyn_cast<CopyAsyncOp>(user))
        if (auto acquire =
                dyn_cast_if_present<RingAcquireOp>(copy->getPrevNode());
            acquire && acquire.getRing() == copy.getRing())
          delay<CopyAsyncOp>({acquire, copy});
    }
  }
};
} // namespace
