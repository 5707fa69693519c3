//===- OrderedAdds.cpp - Additions of blocks in an order ------------------===//
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

void RoleLowering::alternate(unsigned role) {
  int64_t warps = roles.getNumWarps(role);
  SmallVector<RingWaitOp> waits;
  roles.getRoles()[role].walk([&](RingWaitOp wait) { waits.push_back(wait); });
  for (RingWaitOp wait : waits) {
    loc = wait.getLoc();
    // All that is done with the stage, where the addition has its operands.
    SmallVector<Operation *> ops = {wait};
    llvm::append_range(ops, wait->getUsers());
    ops.push_back(wait.getRelease());
    b.setInsertionPoint(ops[1]);
    Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
    Value warp = arith::SubIOp::create(
        b, loc, arith::DivUIOp::create(b, loc, thread, index(threadsOfWarp)),
        index(roles.getFirstWarp(role)));
    Value owner = arith::RemUIOp::create(b, loc, wait.getStep(), index(warps));
    auto choice = scf::IfOp::create(
        b, loc,
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, owner, warp));
    for (Operation *op : ops)
      op->moveBefore(choice.thenBlock()->getTerminator());
  }
}

void RoleLowering::awaitRank(AddInOrderOp op) {
  Operation *before = op.getTile().getDefiningOp<RingWaitOp>();
  auto isThere = [&](Value operand) {
    Operation *definition = operand.getDefiningOp();
    return !definition || definition->getBlock() != op->getBlock() ||
           definition->isBeforeInBlock(before);
  };
  SmallVector<Value> operands(op.getCountIndices());
  operands.push_back(op.getRank());
  if (!before || before->getBlock() != op->getBlock() ||
      !llvm::all_of(operands, isThere))
    before = op;
  b.setInsertionPoint(before);
  AwaitRankOp::create(b, op.getLoc(), op.getRank(), op.getCounts(),
                      op.getCountIndices());
}

void RoleLowering::lowerAddInOrder(AddInOrderOp op) {
  SmemType tile = op.getTile().getType();
  auto view = op.getTile().getDefiningOp<SmemViewOp>();
  Value map = getTensorMap(op.getSums(), tile, {1, tile.getRows()});
  SmallVector<Value> coordinates = {Value()};
  for (Value position : llvm::reverse(op.getIndices()))
    coordinates.push_back(toI32(position));
  auto forPanels = [&](function_ref<void(Value from)> body) {
    for (int64_t panel = 0; panel < tile.getNumPanels(); ++panel) {
      coordinates.front() = i32(panel * tile.getPanelColumns());
      body(sharedPointer(arith::AddIOp::create(
          b, loc, view.getOffset(), index(panel * tile.getPanelBytes()))));
    }
  };
  // Behind the wait for all that have put the tile. Their warps would otherwise
  // wait for the fence behind the addition.
  fenceForBulkCopies();
  auto choice = scf::IfOp::create(b, loc, isEqual(op.getRank(), 0),
                                  /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.thenBlock());
    forPanels([&](Value from) {
      NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
          b, loc, map, from, coordinates, /*l2CacheHint=*/Value(),
          NVVM::TMAStoreMode::TILE, /*predicate=*/Value());
    });
    b.setInsertionPointToStart(choice.elseBlock());
    forPanels([&](Value from) {
      NVVM::CpAsyncBulkTensorReduceOp::create(
          b, loc, map, from, NVVM::TMAReduxKind::ADD, NVVM::TMAStoreMode::TILE,
          coordinates, /*l2CacheHint=*/Value());
    });
  }
  NVVM::CpAsyncBulkCommitGroupOp::create(b, loc);
  // The stage is given back when it has been read. The block of the next rank
  // adds when all is written.
  if (auto release = dyn_cast_if_present<RingReleaseOp>(op->getNextNode())) {
    NVVM::CpAsyncBulkWaitGroupOp::create(b, loc, b.getI32IntegerAttr(0),
                                         /*read=*/b.getUnitAttr());
    b.setInsertionPointAfter(release);
  }
  NVVM::CpAsyncBulkWaitGroupOp::create(b, loc, b.getI32IntegerAttr(0),
                                       /*read=*/UnitAttr());
  FinishRankOp::create(b, loc, op.getRank(), op.getCounts(),
                       op.getCountIndices());
}
