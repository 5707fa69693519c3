//===- FiniteChecks.cpp - Warps that look for infinities and NaN ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace flash;
using namespace flash::tile;

Value RoleLowering::getCheckResult(RingOp ring, Value step, Value warp) {
  constexpr int64_t bytesOfStage = 2 * barrierBytes, bytesOfResult = 4;
  int64_t stages = ring.getResult().getType().getStages();
  Value stage = arith::RemUIOp::create(b, loc, step, index(stages));
  Value offset = arith::MulIOp::create(b, loc, stage, index(bytesOfStage));
  // Behind three barriers for each stage.
  offset = arith::AddIOp::create(
      b, loc, offset, index(*ring.getBarriers() + 3 * stages * barrierBytes));
  Value ofWarp = arith::MulIOp::create(b, loc, warp, index(bytesOfResult));
  return sharedPointer(arith::AddIOp::create(b, loc, offset, ofWarp));
}

void RoleLowering::lowerCheckFinite(RingCheckFiniteOp op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  waitAt(getBarrier(ring, op.getStep(), Of::Full), parity(ring, op.getStep()));
  Value isFinite;
  if (!op.getUnchecked()) {
    Value tile =
        SmemViewOp::create(b, loc, ring.getResult().getType().getTile(),
                           stageOffset(ring, op.getStep()));
    isFinite = IsFiniteOp::create(b, loc, b.getI1Type(), tile,
                                  b.getI64IntegerAttr(getNumCheckWarps(ring)));
  }
  // The first lane has what all have found.
  auto choice = scf::IfOp::create(b, loc, isFirstOf(threadsOfWarp));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  if (isFinite) {
    Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
    Value warp = arith::DivUIOp::create(b, loc, thread, index(threadsOfWarp));
    int64_t first = roles.getFirstWarp(roles.getRoleOf(op));
    warp = arith::SubIOp::create(b, loc, warp, index(first));
    LLVM::StoreOp::create(
        b, loc, arith::ExtUIOp::create(b, loc, b.getI32Type(), isFinite),
        getCheckResult(ring, op.getStep(), warp));
  }
  arrive(getBarrier(ring, op.getStep(), Of::Checked));
  arrive(getBarrier(ring, op.getStep(), Of::Empty));
}

void RoleLowering::lowerMakeFinite(RingMakeFiniteOp op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  Value step = op.getStep();
  waitAt(getBarrier(ring, step, Of::Full), parity(ring, step));
  Value tile =
      SmemViewOp::create(b, loc, ring.getStageType(), stageOffset(ring, step));
  IntegerAttr warps = b.getI64IntegerAttr(getNumCheckWarps(ring));
  // Hardly ever is there anything to do, and reading is fast.
  Value isFinite = IsFiniteOp::create(b, loc, b.getI1Type(), tile, warps);
  auto choice = scf::IfOp::create(b, loc, isFinite, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.elseBlock());
    MakeFiniteOp::create(b, loc, tile, /*copy=*/Value(), warps);
    // Products read it.
    fenceForBulkCopies();
  }
  arriveAsWarp(getBarrier(ring, step, Of::Checked));
  arriveAsWarp(getBarrier(ring, step, Of::Empty));
}

void RoleLowering::lowerIsFinite(RingIsFiniteOp op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  waitAt(getBarrier(ring, op.getStep(), Of::Checked),
         parity(ring, op.getStep()));
  Value all;
  for (int64_t warp = 0; warp < getNumCheckWarps(ring); ++warp) {
    Value result =
        LLVM::LoadOp::create(b, loc, b.getI32Type(),
                             getCheckResult(ring, op.getStep(), index(warp)));
    all = all ? arith::AndIOp::create(b, loc, all, result).getResult() : result;
  }
  op.replaceAllUsesWith(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                              uniform(all), i32(0))
                            .getResult());
}

void RoleLowering::lowerCopyFinite(RingCopyFiniteOp op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  auto tile = op.getTile().getDefiningOp<SmemViewOp>();
  int64_t warps = roles.getNumWarps(roles.getRoleOf(op));
  Value offset = stageOffset(ring, op.getStep());
  auto choice = scf::IfOp::create(b, loc, op.getIsFinite(),
                                  /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.elseBlock());
    Value copy = SmemViewOp::create(b, loc, tile.getType(), offset);
    MakeFiniteOp::create(b, loc, tile, copy, b.getI64IntegerAttr(warps));
    fenceForBulkCopies();
    meetAll(warps);
  }
  offset = arith::SelectOp::create(b, loc, op.getIsFinite(), tile.getOffset(),
                                   offset);
  op.replaceAllUsesWith(
      SmemViewOp::create(b, loc, tile.getType(), offset).getResult());
  holdsNoCopy[{op.getRing(), op.getStep()}] = op.getIsFinite();
}
