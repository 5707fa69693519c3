//===- Claims.cpp - Tiles that a block claims for all of its roles --------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleLowering.h"

#include "flash/Dialect/Tile/Utils/ClaimLoop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace flash;
using namespace flash::tile;

bool RoleLowering::claimsItself(ClaimOp op) {
  auto copies = [](Region &role) {
    return role.walk([](CopyAsyncOp) { return WalkResult::interrupt(); })
        .wasInterrupted();
  };
  auto *first = llvm::find_if(roles.getRoles(), copies);
  return first->getRegionNumber() == roles.getRoleOf(op);
}

Value RoleLowering::getInSlot(ClaimOp op, Value step, int64_t byte) {
  Value slot = arith::RemUIOp::create(b, loc, step, index(ClaimOp::numSlots));
  Value offset = arith::MulIOp::create(b, loc, slot, index(op.getSlotBytes()));
  return sharedPointer(
      arith::AddIOp::create(b, loc, offset, index(*op.getOffset() + byte)));
}

void RoleLowering::initializeClaims() {
  int64_t readers = 0;
  for (ClaimOp claim : claims)
    if (!claimsItself(claim))
      readers += roles.getNumWarps(roles.getRoleOf(claim));
  for (int64_t slot = 0; readers > 0 && slot < ClaimOp::numSlots; ++slot)
    for (auto [byte, count] :
         {std::pair(0l, 1l), {ClaimOp::offsetOfEmptyBarrier, readers}})
      NVVM::MBarrierInitOp::create(b, loc,
                                   getInSlot(claims.front(), index(slot), byte),
                                   i32(count), Value());
}

void RoleLowering::releaseSlot(ClaimOp op, Value step) {
  Value empty = getInSlot(op, step, ClaimOp::offsetOfEmptyBarrier);
  if (areOfOneThread[roles.getRoleOf(op)])
    arrive(empty);
  else
    arriveAsWarp(empty);
}

Value RoleLowering::readSlot(ClaimOp op, Value step, int64_t byte) {
  Value value =
      LLVM::LoadOp::create(b, loc, b.getI32Type(), getInSlot(op, step, byte));
  if (!areOfOneThread[roles.getRoleOf(op)])
    value = uniform(value);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
}

void RoleLowering::readSharedAtUses(ClaimOp op) {
  Block *body = op->getBlock();
  for (auto [i, result] : llvm::enumerate(op.getShared())) {
    // A value for each op of the loop, which may be a loop over keys.
    llvm::MapVector<Operation *, SmallVector<OpOperand *>> uses;
    for (OpOperand &use : result.getUses())
      uses[body->findAncestorOpInBlock(*use.getOwner())].push_back(&use);
    for (auto &[user, operands] : uses) {
      b.setInsertionPoint(user);
      Value value = readSlot(op, op.getStep(),
                             ClaimOp::offsetOfShared + sizeof(int32_t) * i);
      for (OpOperand *operand : operands)
        operand->set(value);
    }
  }
  b.setInsertionPoint(body->getTerminator());
  releaseSlot(op, op.getStep());
}

SmallVector<Value> RoleLowering::claimTile(ClaimOp op) {
  auto claim = [&]() {
    Value count = CountUpOp::create(b, loc, b.getI32Type(), op.getCounts(),
                                    op.getIndices());
    SmallVector<Value> results = {
        arith::IndexCastOp::create(b, loc, b.getIndexType(), count)};
    llvm::append_range(results, emitScalarsOfTile(b, op, results.front()));
    return results;
  };
  if (!op.leavesOutTiles())
    return claim();
  TypeRange types = op->getResultTypes();
  auto loop = scf::WhileOp::create(b, loc, types, ValueRange());
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&loop.getBefore());
  SmallVector<Value> results = claim();
  Value isNone = results.pop_back_val();
  scf::ConditionOp::create(b, loc, isNone, results);
  b.createBlock(&loop.getAfter(), {}, types,
                SmallVector<Location>(types.size(), loc));
  scf::YieldOp::create(b, loc);
  return SmallVector<Value>(loop.getResults());
}

void RoleLowering::lowerClaim(ClaimOp op) {
  loc = op.getLoc();
  bool claims = claimsItself(op), isShared = !op.getShared().empty();
  if (!claims && isShared)
    readSharedAtUses(op);
  lowerClaimLoop(b, op, [&](Value step) -> SmallVector<Value> {
    Value full = getInSlot(op, step, 0),
          phase = parity(ClaimOp::numSlots, step);
    if (!claims) {
      waitAt(full, phase);
      Value number = readSlot(op, step, ClaimOp::offsetOfNumber);
      if (!isShared)
        releaseSlot(op, step);
      return {number};
    }
    // The thread that copies comes here as soon as the last copies of a tile
    // have stages, and so before the others.
    waitAt(getInSlot(op, step, ClaimOp::offsetOfEmptyBarrier),
           arith::XOrIOp::create(b, loc, phase, i32(1)));
    SmallVector<Value> results = claimTile(op);
    for (auto [i, result] : llvm::enumerate(results))
      LLVM::StoreOp::create(
          b, loc, arith::IndexCastOp::create(b, loc, b.getI32Type(), result),
          getInSlot(op, step, ClaimOp::offsetOfNumber + sizeof(int32_t) * i));
    arrive(full);
    return results;
  });
}
