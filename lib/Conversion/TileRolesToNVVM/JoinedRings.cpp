//===- JoinedRings.cpp - Rings that are full together ---------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JoinedRings.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace flash::tile;

/// Whether one copy fills each stage, and no warps look at it but those that
/// wait for it.
static bool isPlain(RingOp ring) {
  return !ring.getRowStages() && ring.getNumCopies() == 1 &&
         llvm::all_of(ring->getUsers(),
                      llvm::IsaPred<RingAcquireOp, CopyAsyncOp, RingWaitOp,
                                    RingReleaseOp>);
}

/// The last copy before that of its block, which is of the same step.
static CopyAsyncOp getCopyBefore(CopyAsyncOp copy) {
  for (Operation *op = copy->getPrevNode(); op; op = op->getPrevNode())
    if (auto before = dyn_cast<CopyAsyncOp>(op))
      return before.getStep() == copy.getStep() ? before : CopyAsyncOp();
  return {};
}

/// Whether the block has waited for the same step of the other ring, and gives
/// the stage back itself after threads have loaded from it: a step that waits
/// for both rings finds the stages of earlier steps free.
static bool isBehindWait(RingWaitOp wait, RingOp other) {
  RingReleaseOp release = wait.getRelease();
  if (!release || release->getBlock() != wait->getBlock() ||
      !llvm::all_of(wait->getUsers(), llvm::IsaPred<LoadOp>))
    return false;
  return llvm::any_of(other->getUsers(), [&](Operation *user) {
    auto first = dyn_cast<RingWaitOp>(user);
    return first && first->getBlock() == wait->getBlock() &&
           first.getStep() == wait.getStep() && first->isBeforeInBlock(wait);
  });
}

/// The ring that is joined with this one; null if none is.
static RingOp findRingBefore(RingOp ring) {
  RingOp other;
  int64_t copies = 0;
  for (Operation *user : ring->getUsers())
    if (auto copy = dyn_cast<CopyAsyncOp>(user)) {
      CopyAsyncOp before = getCopyBefore(copy);
      auto filled =
          before ? before.getRing().getDefiningOp<RingOp>() : RingOp();
      if (!filled || (other && filled != other))
        return {};
      other = filled;
      ++copies;
    }
  // With one stage the copies have just been started, and products would wait
  // for both.
  if (!other || other.getNumStages() != ring.getNumStages() ||
      ring.getNumStages() < 2 || other.getRowStages() ||
      other.getNumCopies() != 1 ||
      llvm::count_if(other->getUsers(), llvm::IsaPred<CopyAsyncOp>) != copies)
    return {};
  bool isWaitedForBefore = llvm::all_of(ring->getUsers(), [&](Operation *user) {
    auto wait = dyn_cast<RingWaitOp>(user);
    return !wait || isBehindWait(wait, other);
  });
  return isWaitedForBefore ? other : RingOp();
}

JoinedRings flash::tile::findJoinedRings(WarpSpecializeOp roles) {
  JoinedRings joined;
  roles->getParentOfType<gpu::GPUFuncOp>().walk([&](RingOp ring) {
    RingOp other = isPlain(ring) ? findRingBefore(ring) : RingOp();
    // If three follow each other the second has barriers, or the first for two
    // of them.
    if (other && !joined.contains(other) &&
        llvm::none_of(llvm::make_second_range(joined),
                      [&](RingOp before) { return before == ring; }))
      joined[ring] = other;
  });
  return joined;
}
