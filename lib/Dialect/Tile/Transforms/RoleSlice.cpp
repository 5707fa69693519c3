//===- RoleSlice.cpp - What some warps do of a kernel ---------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleSlice.h"
#include "VerifyRoles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace flash::tile;

bool flash::tile::isTile(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return isa_and_nonnull<LayoutAttrInterface>(tensor.getEncoding());
  return isa<SmemType, PendingType>(type);
}

bool RoleSlice::containsOwn(Operation &op) {
  return op
      .walk([&](Operation *inner) {
        return isOwn(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

SmallVector<unsigned> RoleSlice::getKept(TypeRange types) {
  auto isKept = [&](Type type) {
    if (!isTile(type))
      return true;
    LayoutAttrInterface layout = getLayout(type);
    return firstWarp && layout && layout.getFirstWarp() == *firstWarp;
  };
  SmallVector<unsigned> kept;
  for (auto [i, type] : llvm::enumerate(types))
    if (isKept(type))
      kept.push_back(i);
  return kept;
}

SmallVector<Value> RoleSlice::lookup(ValueRange values) {
  return llvm::map_to_vector(
      values, [&](Value value) { return mapping.lookupOrDefault(value); });
}

LogicalResult RoleSlice::checkOperands(Operation &op, ValueRange operands) {
  auto operand = llvm::find_if(
      operands, [&](Value value) { return missing.contains(value); });
  if (operand == operands.end())
    return success();
  fault = {&op, *operand};
  return failure();
}

LogicalResult RoleSlice::cloneBody(Block &from, Block &to,
                                   ArrayRef<unsigned> kept) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&to);
  for (Operation &op : from.without_terminator())
    if (failed(clone(op)))
      return failure();
  Operation *yield = from.getTerminator();
  auto loop = dyn_cast<scf::ForOp>(yield->getParentOp());
  SmallVector<Value> values;
  for (auto [n, i] : llvm::enumerate(kept)) {
    Value value = yield->getOperand(i);
    // A number that the warps neither have nor use, such as the step of a ring
    // of others at which the next block goes on, stays what it was before the
    // loop. That may be any number, so that a loop around this one need not
    // have it either.
    if (Value argument = loop ? loop.getRegionIterArg(i) : Value();
        argument && missing.contains(value) &&
        !llvm::is_contained(yield->getOperands(), argument) &&
        mapping.lookup(argument).use_empty()) {
      value = argument;
      missing.insert(loop.getResult(i));
      auto copy = cast<scf::ForOp>(to.getParentOp());
      OpBuilder before(copy);
      copy.getInitArgsMutable()[n].set(arith::ConstantOp::create(
          before, loop.getLoc(), before.getZeroAttr(argument.getType())));
    }
    values.push_back(value);
  }
  if (failed(checkOperands(*yield, values)))
    return failure();
  if (!to.mightHaveTerminator())
    scf::YieldOp::create(b, yield->getLoc(), lookup(values));
  return success();
}

LogicalResult RoleSlice::cloneLoop(scf::ForOp loop) {
  SmallVector<unsigned> kept = getKept(loop.getResultTypes());
  SmallVector<Value> operands = {loop.getLowerBound(), loop.getUpperBound(),
                                 loop.getStep()};
  for (unsigned i : kept)
    operands.push_back(loop.getInitArgs()[i]);
  if (failed(checkOperands(*loop, operands)))
    return failure();
  operands = lookup(operands);
  auto copy =
      scf::ForOp::create(b, loop.getLoc(), operands[0], operands[1],
                         operands[2], ArrayRef<Value>(operands).drop_front(3));
  mapping.map(loop.getInductionVar(), copy.getInductionVar());
  missing.insert_range(loop.getRegionIterArgs());
  missing.insert_range(loop.getResults());
  for (auto [n, i] : llvm::enumerate(kept)) {
    mapping.map(loop.getRegionIterArg(i), copy.getRegionIterArg(n));
    mapping.map(loop.getResult(i), copy.getResult(n));
    missing.erase(loop.getRegionIterArg(i));
    missing.erase(loop.getResult(i));
  }
  return cloneBody(*loop.getBody(), *copy.getBody(), kept);
}

LogicalResult RoleSlice::cloneChoice(scf::IfOp choice) {
  if (failed(checkOperands(*choice, choice.getCondition())))
    return failure();
  SmallVector<unsigned> kept = getKept(choice.getResultTypes());
  SmallVector<Type> types;
  for (unsigned i : kept)
    types.push_back(choice.getResult(i).getType());
  auto copy = scf::IfOp::create(
      b, choice.getLoc(), types, mapping.lookupOrDefault(choice.getCondition()),
      /*addThenBlock=*/true, /*addElseBlock=*/!!choice.elseBlock());
  missing.insert_range(choice.getResults());
  for (auto [n, i] : llvm::enumerate(kept)) {
    mapping.map(choice.getResult(i), copy.getResult(n));
    missing.erase(choice.getResult(i));
  }
  for (auto [from, to] :
       llvm::zip_equal(choice->getRegions(), copy->getRegions()))
    if (!from.empty() && failed(cloneBody(from.front(), to.front(), kept)))
      return failure();
  return success();
}

LogicalResult RoleSlice::clone(Operation &op) {
  bool isOfTiles = llvm::any_of(op.getResultTypes(), isTile) ||
                   llvm::any_of(op.getOperandTypes(), isTile) ||
                   isa<RingOpInterface>(op);
  // Each role has a claim, as it has scalars, but for scalars that come from
  // what it has not; whoever needs these has the fault.
  bool isScalar = isa<ClaimOp>(op) || computesScalars(&op);
  bool isLeftOut = isScalar && failed(checkOperands(op, op.getOperands()));
  bool isNeeded = op.getNumRegions() > 0 ? isScalar || containsOwn(op)
                                         : isOwn(&op) || !isOfTiles;
  if (!isNeeded || isLeftOut) {
    missing.insert_range(op.getResults());
    return success();
  }
  if (auto loop = dyn_cast<scf::ForOp>(op); loop && !isScalar)
    return cloneLoop(loop);
  if (auto choice = dyn_cast<scf::IfOp>(op); choice && !isScalar)
    return cloneChoice(choice);
  if (failed(checkOperands(op, op.getOperands())))
    return failure();
  if (op.getNumRegions() > 0 && !isScalar && !isOwn(&op)) {
    fault = {&op, Value()};
    return failure();
  }
  if (isOwn(&op) && emitOwn) {
    emitOwn(b, op, mapping);
    missing.insert_range(op.getResults());
  } else {
    b.clone(op, mapping);
  }
  return success();
}
