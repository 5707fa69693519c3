//===- RingSteps.cpp - How roles count steps of rings ---------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RingSteps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace flash::tile;

StepCount flash::tile::getStepCount(Value step, Block *block) {
  auto argument = dyn_cast<BlockArgument>(step);
  auto loop = argument
                  ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                  : scf::ForOp();
  if (!loop || argument == loop.getInductionVar())
    return {};
  Value end = loop.getTiedLoopResult(argument);
  for (Value next = end; next;) {
    end = next;
    next = Value();
    for (OpOperand &use : end.getUses()) {
      if (auto other = dyn_cast<scf::ForOp>(use.getOwner());
          other && other.getTiedLoopRegionIterArg(&use))
        next = other.getTiedLoopResult(&use);
      else if (isa<scf::YieldOp>(use.getOwner()) &&
               use.getOwner()->getBlock() != block)
        next = use.getOwner()->getParentOp()->getResult(use.getOperandNumber());
    }
  }
  if (end.getParentBlock() != block)
    return {};
  Value start = end;
  while (auto result = dyn_cast<OpResult>(start)) {
    if (auto choice = dyn_cast<scf::IfOp>(result.getOwner()))
      start = choice.thenYield().getOperand(result.getResultNumber());
    else if (auto other = dyn_cast<scf::ForOp>(result.getOwner()))
      start = other.getTiedLoopInit(result)->get();
    else
      break;
    if (auto outer = dyn_cast<BlockArgument>(start);
        outer && outer.getOwner() != block)
      if (auto around = dyn_cast<scf::ForOp>(outer.getOwner()->getParentOp());
          around && outer != around.getInductionVar())
        start = around.getTiedLoopInit(outer)->get();
  }
  return {start, end};
}

bool flash::tile::beginsAtZero(Value start) {
  if (auto argument = dyn_cast<BlockArgument>(start))
    if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
        loop && argument != loop.getInductionVar())
      start = loop.getTiedLoopInit(argument)->get();
  return getConstantIntValue(start) == 0;
}

Block *flash::tile::getBlockOfTile(Operation *op, bool isPersistent) {
  Region *role = op->getParentRegion();
  Operation *outermost = nullptr;
  for (; !isa<WarpSpecializeOp>(role->getParentOp());
       role = role->getParentRegion())
    outermost = role->getParentOp();
  auto loop = dyn_cast_if_present<scf::ForOp>(outermost);
  return isPersistent && loop ? loop.getBody() : &role->front();
}

FailureOr<Reader> flash::tile::findReader(RingOp ring, Operation *own,
                                          bool isPersistent) {
  Reader reader;
  auto roles = own->getParentOfType<WarpSpecializeOp>();
  RingOpInterface any;
  for (Operation *user : ring->getUsers())
    if (roles.getRoleOf(user) == roles.getRoleOf(own))
      ++reader.numOwn;
    else if (any && roles.getRoleOf(any) != roles.getRoleOf(user))
      return failure();
    else
      any = cast<RingOpInterface>(user);
  if (!any)
    return reader;
  reader.block = getBlockOfTile(any, isPersistent);
  StepCount steps = getStepCount(any.getStep(), reader.block);
  if (!steps.end || !beginsAtZero(steps.start))
    return failure();
  reader.first = steps.start;
  return reader;
}
