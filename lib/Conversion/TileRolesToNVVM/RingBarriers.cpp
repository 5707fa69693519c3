//===- RingBarriers.cpp - Stages of rings and their mbarriers -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleLowering.h"

#include "flash/Dialect/Tile/Utils/Panels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace flash;
using namespace flash::tile;

/// How long a thread may sleep at a barrier before it looks again, in
/// nanoseconds.
static constexpr int64_t barrierTicks = 10000000;

Value RoleLowering::getFillNumber(RingOp ring, Value step, Value warpgroup) {
  if (!ring.getRowStages())
    return step;
  Value first = arith::MulIOp::create(b, loc, step, index(getNumOwners(ring)));
  return arith::AddIOp::create(b, loc, first, warpgroup);
}

int64_t RoleLowering::getNumOwners(RingOp ring) {
  return ring.getResult().getType().getTile().getRows() / rowsOfWarpgroup;
}

int64_t RoleLowering::getNumCheckWarps(RingOp ring) {
  int64_t warps = 0;
  for (Operation *user : ring->getUsers())
    if (isa<RingCheckFiniteOp, RingMakeFiniteOp>(user))
      warps = roles.getNumWarps(roles.getRoleOf(user));
  return warps;
}

int64_t RoleLowering::getNumReaders(RingOp ring) {
  // The rows of a row stage are of one warpgroup.
  if (ring.getRowStages())
    return warpsOfWarpgroup;
  llvm::SmallSet<unsigned, 2> readers;
  for (Operation *user : ring->getUsers())
    if (isa<RingReleaseOp>(user))
      readers.insert(roles.getRoleOf(user));
  int64_t arrivals = getNumCheckWarps(ring);
  // Where warps alternate, one of them has the stage.
  for (unsigned role : readers)
    arrivals += roles.alternates(role) ? 1 : roles.getNumWarps(role);
  return arrivals;
}

int64_t RoleLowering::getNumWriters(RingOp ring) {
  for (Operation *user : ring->getUsers())
    if (isa<RingPutOp>(user))
      return roles.getNumWarps(roles.getRoleOf(user));
  return (arrivesOnce(ring) ? 1 : ring.getNumCopies()) +
         llvm::count(llvm::make_second_range(joined), ring);
}

bool RoleLowering::arrivesOnce(RingOp ring) {
  return llvm::all_of(ring->getUsers(), [](Operation *user) {
    auto copy = dyn_cast<CopyAsyncOp>(user);
    return !copy || (copy.getPart() && getConstantIntValue(copy.getPart()));
  });
}

Value RoleLowering::getOwnFillNumber(RingOp ring, Value step) {
  if (!ring.getRowStages())
    return step;
  Value own = arith::IndexCastOp::create(b, loc, b.getIndexType(), warpgroup());
  return getFillNumber(ring, step, own);
}

Value RoleLowering::getBarrier(RingOp ring, Value fill, Of kind) {
  if (RingOp before = joined.lookup(ring); before && kind == Of::Full)
    ring = before;
  int64_t stages = ring.getNumStages(),
          numBarriers =
              kind == Of::Full ? numFullBarriers.lookup(ring) : stages;
  Value number = arith::RemUIOp::create(b, loc, fill, index(numBarriers));
  // The barriers of a second warp are behind the empty ones.
  if (numBarriers > stages)
    number = arith::AddIOp::create(
        b, loc, number,
        arith::MulIOp::create(
            b, loc, arith::DivUIOp::create(b, loc, number, index(stages)),
            index(stages)));
  Value offset = arith::MulIOp::create(b, loc, number, index(barrierBytes));
  int64_t first =
      *ring.getBarriers() + static_cast<int64_t>(kind) * stages * barrierBytes;
  return sharedPointer(arith::AddIOp::create(b, loc, offset, index(first)));
}

Value RoleLowering::getPanelBarrier(RingOp ring, int64_t panel) {
  int64_t offset = *ring.getBarriers();
  if (panel > 0)
    offset += ring.getNumBarrierBytes() + (panel - 1) * barrierBytes;
  return sharedPointer(index(offset));
}

Value RoleLowering::parity(int64_t numBarriers, Value fill) {
  Value phase = arith::DivUIOp::create(b, loc, fill, index(numBarriers));
  return toI32(arith::RemUIOp::create(b, loc, phase, index(2)));
}

Value RoleLowering::stageOffset(RingOp ring, Value fill) {
  Value stage =
      arith::RemUIOp::create(b, loc, fill, index(ring.getNumStages()));
  Value distance =
      arith::MulIOp::create(b, loc, stage, index(ring.getStageDistance()));
  return arith::AddIOp::create(b, loc, distance, index(*ring.getOffset()));
}

void RoleLowering::waitAt(Value barrier, Value parity) {
  NVVM::MBarrierTryWaitParityOp::create(b, loc, barrier, parity,
                                        i32(barrierTicks));
}

void RoleLowering::clearUncopiedRows() {
  bool clears = false;
  kernel.walk([&](RingOp ring) {
    SmemType stage = ring.getStageType();
    bool isWhole = llvm::all_of(ring->getUsers(), [&](Operation *user) {
      auto copy = dyn_cast<CopyAsyncOp>(user);
      BoxRows rows = getBoxRows(stage, copy ? copy.getPacked() : std::nullopt);
      return rows.outer * rows.inner == stage.getRows();
    });
    if (isWhole)
      return;
    for (int64_t number = 0; number < ring.getNumStages(); ++number) {
      Value view =
          SmemViewOp::create(b, loc, stage, stageOffset(ring, index(number)));
      ClearOp::create(b, loc, view, roles.getNumThreads() / threadsOfWarp);
    }
    clears = true;
  });
  if (clears)
    fenceForBulkCopies();
}

void RoleLowering::initializeBarriers() {
  clearUncopiedRows();
  Value isFirst =
      isEqual(gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x), 0);
  auto choice = scf::IfOp::create(b, loc, isFirst);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.thenBlock());
    kernel.walk([&](RingOp ring) {
      SmallVector<std::pair<Of, int64_t>> arrivals;
      if (!joined.contains(ring))
        arrivals.push_back({Of::Full, getNumWriters(ring)});
      arrivals.push_back({Of::Empty, getNumReaders(ring)});
      if (ring.getChecked() || ring.getFinite())
        arrivals.push_back({Of::Checked, getNumCheckWarps(ring)});
      if (ofPanels.contains(ring))
        for (int64_t panel = 1; panel < ring.getStageType().getNumPanels();
             ++panel)
          NVVM::MBarrierInitOp::create(b, loc, getPanelBarrier(ring, panel),
                                       i32(1), Value());
      for (int64_t stage = 0; stage < numFullBarriers.lookup(ring); ++stage)
        for (auto [kind, count] : arrivals)
          if (kind == Of::Full || stage < ring.getNumStages())
            NVVM::MBarrierInitOp::create(b, loc,
                                         getBarrier(ring, index(stage), kind),
                                         i32(count), Value());
    });
    initializeClaims();
    NVVM::FenceMbarrierInitOp::create(b, loc);
  }
  gpu::BarrierOp::create(b, loc);
}

void RoleLowering::acquire(RingOp ring, Value fill) {
  // The stages are free at first: as if a phase before had ended.
  Value before = arith::XOrIOp::create(b, loc, parity(ring, fill), i32(1));
  waitAt(getBarrier(ring, fill, Of::Empty), before);
}

void RoleLowering::lowerAcquire(RingAcquireOp op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  // The rows of one warpgroup need not wait for the stage of another's.
  if (!ring.getRowStages())
    acquire(ring, op.getStep());
}

void RoleLowering::lowerPut(RingPutOp op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  if (Value isFree = holdsNoCopy.lookup({op.getRing(), op.getStep()})) {
    auto choice = scf::IfOp::create(b, loc, isFree, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.elseBlock());
    meetAll(roles.getNumWarps(roles.getRoleOf(op)));
  }
  Value view = SmemViewOp::create(b, loc, ring.getStageType(),
                                  stageOffset(ring, op.getStep()));
  bool alternates = PutOp::canAlternate(
      cast<RankedTensorType>(op.getX().getType()), ring.getStageType());
  PutOp::create(b, loc, op.getX(), view, b.getI64IntegerAttr(0),
                /*by_pairs=*/UnitAttr(),
                alternates ? b.getUnitAttr() : UnitAttr());
  // Products read it, or bulk copies of a thread that has the fence.
  if (!withoutFence.contains(ring))
    fenceForBulkCopies();
  arriveAsWarp(getBarrier(ring, op.getStep(), Of::Full));
}

/// Has the wait come behind the products that are started before the first
/// reader of the tile.
static void setInsertionBehindProducts(OpBuilder &b, RingWaitOp wait) {
  Operation *reader = nullptr;
  for (Operation *user : wait->getUsers()) {
    user = wait->getBlock()->findAncestorOpInBlock(*user);
    if (!reader || user->isBeforeInBlock(reader))
      reader = user;
  }
  for (Operation *at = reader; at && at != wait; at = at->getPrevNode())
    if (at != reader && isa<MmaAsyncOp>(at))
      return b.setInsertionPointAfter(at);
}

void RoleLowering::waitForPanels(RingWaitOp op, RingOp ring) {
  SmemType stage = ring.getStageType();
  Value start = stageOffset(ring, op.getStep()),
        phase = parity(ring, op.getStep());
  MmaAsyncOp product = getProductOfPanels(op);
  auto tileOfA =
      product ? product.getA().getDefiningOp<SmemViewOp>() : SmemViewOp();
  auto viewOf = [&](Value offset, SmemType tile, int64_t panel) {
    auto type =
        SmemType::get(b.getContext(), tile.getRows(), tile.getPanelColumns(),
                      tile.getElementType(), tile.getSwizzle());
    Value first = arith::AddIOp::create(b, loc, offset,
                                        index(panel * tile.getPanelBytes()));
    return SmemViewOp::create(b, loc, type, first);
  };
  if (tileOfA)
    b.setInsertionPoint(product);
  else
    setInsertionBehindProducts(b, op);
  Value sum = tileOfA ? product.getC() : Value();
  MmaAsyncOp last;
  for (int64_t panel = 0; panel < stage.getNumPanels(); ++panel) {
    waitAt(getPanelBarrier(ring, panel), phase);
    if (!tileOfA)
      continue;
    if (last)
      sum = MmaWaitOp::create(b, loc, product.getType().getValue(), last);
    auto ofPanel =
        viewOf(tileOfA.getOffset(), tileOfA.getResult().getType(), panel);
    last = MmaAsyncOp::create(b, loc, product.getType(), ofPanel,
                              viewOf(start, stage, panel), /*panel=*/Value(),
                              sum, /*transpose_a=*/false, /*transpose_b=*/true,
                              product.getTf32(), /*warpgroup=*/true);
  }
  if (last) {
    product.replaceAllUsesWith(last.getResult());
    product.erase();
  }
  b.setInsertionPoint(op);
}

void RoleLowering::lowerWait(RingOpInterface op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  if (ofPanels.contains(ring)) {
    waitForPanels(cast<RingWaitOp>(op), ring);
    op->getResult(0).replaceAllUsesWith(SmemViewOp::create(
        b, loc, ring.getStageType(), stageOffset(ring, op.getStep())));
    return;
  }
  Value fill = getOwnFillNumber(ring, op.getStep());
  // The ring that it is joined with has been waited for.
  if (!joined.contains(ring))
    waitAt(getBarrier(ring, fill, ring.getFinite() ? Of::Checked : Of::Full),
           parity(numFullBarriers.lookup(ring), fill));
  op->getResult(0).replaceAllUsesWith(
      SmemViewOp::create(b, loc, ring.getStageType(), stageOffset(ring, fill)));
}

void RoleLowering::lowerRelease(RingReleaseOp op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  if (afterStores.contains(op))
    waitForStores();
  Value fill = getOwnFillNumber(ring, op.getStep());
  Value empty = getBarrier(ring, fill, Of::Empty);
  if (areOfOneThread[roles.getRoleOf(op)])
    arrive(empty);
  else
    arriveAsWarp(empty);
}

void RoleLowering::arrive(Value barrier) {
  NVVM::MBarrierArriveOp::create(b, loc, b.getI64Type(), barrier, Value(),
                                 NVVM::MemScopeKind::CTA, /*relaxed=*/false);
}

/// Without a branch: where one ends together with a choice of the program,
/// ptxas takes all of that for divergent, and what is the same for a warp, such
/// as the descriptors of products, goes through vector registers. But kernels
/// that check several rings and add nothing in order have no register for the
/// predicate: with it, ptxas spills gradients of keys at D = 128.
void RoleLowering::arriveAsWarp(Value barrier) {
  NVVM::SyncWarpOp::create(b, loc, i32(-1));
  if (arrivesInBranch)
    ifFirstOf(threadsOfWarp, [&] { arrive(barrier); });
  else
    NVVM::InlinePtxOp::create(b, loc, TypeRange(), /*readOnlyArgs=*/barrier,
                              /*readWriteArgs=*/ValueRange(),
                              "mbarrier.arrive.shared::cta.b64 _, [$0];",
                              isFirstOf(threadsOfWarp));
}
