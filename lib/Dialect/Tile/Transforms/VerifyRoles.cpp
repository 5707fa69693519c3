//===- VerifyRoles.cpp - Rules of warps with roles ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyRoles.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace flash::tile;

Region *flash::tile::getRole(Operation *op) {
  while (op && !isa<WarpSpecializeOp>(op->getParentOp()))
    op = isa<gpu::GPUFuncOp>(op->getParentOp()) ? nullptr : op->getParentOp();
  return op ? op->getParentRegion() : nullptr;
}

LogicalResult flash::tile::verifyRoles(WarpSpecializeOp roles) {
  auto fillsFromRegisters = [](RingOpInterface op) {
    auto ring = op.getRing().getDefiningOp<RingOp>();
    return ring && ring.isFilledFromRegisters();
  };
  auto takesOrFills = [](RingOpInterface op) {
    return op && (op.hasRingEffect(RingEffect::Acquire) ||
                  op.hasRingEffect(RingEffect::Fill));
  };
  WalkResult walk = roles.getConsumer().walk([&](Operation *op) {
    auto ringOp = dyn_cast<RingOpInterface>(op);
    if (ringOp && ringOp.hasRingEffect(RingEffect::Inspect)) {
      op->emitOpError("is for the inspector: consumers ask it");
      return WalkResult::interrupt();
    }
    bool isCopy = takesOrFills(ringOp) && !fillsFromRegisters(ringOp);
    if (!isCopy && !isa<FetchOp>(op))
      return WalkResult::advance();
    op->emitOpError("is for the producer: consumers wait for slots and release "
                    "them");
    return WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  walk = roles.getProducer().walk([&](Operation *op) {
    auto ringOp = dyn_cast<RingOpInterface>(op);
    if (!isa<TileDialect>(op->getDialect()) ||
        (takesOrFills(ringOp) && !fillsFromRegisters(ringOp)))
      return WalkResult::advance();
    op->emitOpError("is for the consumers: the producer acquires slots and "
                    "copies into them");
    return WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  walk = roles.getInspector().walk([](Operation *op) {
    auto ringOp = dyn_cast<RingOpInterface>(op);
    if (!isa<TileDialect>(op->getDialect()) ||
        (ringOp && ringOp.hasRingEffect(RingEffect::Inspect)))
      return WalkResult::advance();
    op->emitOpError("is not for the inspector, which only looks at tiles");
    return WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  // All threads come to what is around the roles.
  walk = roles->getParentOfType<gpu::GPUFuncOp>().walk([](Operation *op) {
    if (!isa<RingOpInterface>(op) || getRole(op))
      return WalkResult::advance();
    op->emitOpError("has no role, in a kernel whose other warps have");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult flash::tile::verifyTurn(TurnWaitOp wait) {
  for (Operation *op = wait->getNextNode(); op; op = op->getNextNode()) {
    if (isa<TurnPassOp>(op))
      return success();
    if (isa<TurnWaitOp>(op))
      break;
  }
  return wait.emitOpError("takes a turn that is not passed on after it, in the "
                          "same block");
}

LogicalResult flash::tile::verifyTurn(TurnPassOp pass) {
  for (Operation *op = pass->getPrevNode(); op; op = op->getPrevNode()) {
    if (isa<TurnWaitOp>(op))
      return success();
    if (isa<TurnPassOp>(op))
      break;
  }
  return pass.emitOpError("passes a turn on that has not been taken before it, "
                          "in the same block");
}

/// Whether all warps of a warpgroup, or of the block, must come to the op.
static bool isOfSeveralWarps(Operation *op) {
  if (auto product = dyn_cast<MmaAsyncOp>(op))
    return product.getWarpgroup();
  // An answer is there for each warp alone.
  if (auto ringOp = dyn_cast<RingOpInterface>(op))
    return !ringOp.hasRingEffect(RingEffect::Ask);
  return isa<IsFiniteOp, ClearOp, StoreBulkOp, TurnWaitOp, TurnPassOp,
             WarpSpecializeOp>(op);
}

LogicalResult flash::tile::verifyAnswerOfWarp(AnyOp any) {
  llvm::SetVector<Value> answers;
  answers.insert(any.getResult());
  for (size_t i = 0; i < answers.size(); ++i)
    for (Operation *user : answers[i].getUsers()) {
      WalkResult walk = user->walk([&](Operation *op) {
        if (!isOfSeveralWarps(op))
          return WalkResult::advance();
        op->emitOpError("is done by several warps together, and depends on an "
                        "answer that each has of its own")
                .attachNote(any.getLoc())
            << "the answer";
        return WalkResult::interrupt();
      });
      if (walk.wasInterrupted())
        return failure();
      for (Value result : user->getResults())
        if (!isa<TensorType, SmemType, PendingType>(result.getType()))
          answers.insert(result);
    }
  return success();
}
