//===- LoopEntry.cpp - Loops that are known to be entered -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopEntry.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace flash;

/// Whether the loop has an iteration, whatever its first one is.
static bool hasIterations(scf::ForOp loop) {
  std::optional<APInt> count = loop.getStaticTripCount();
  return count && !count->isZero();
}

scf::IfOp tile::getEntryGuard(scf::ForOp loop) {
  auto choice = dyn_cast<scf::IfOp>(loop->getParentOp());
  if (!choice || loop->getBlock() != choice.thenBlock())
    return {};
  if (hasIterations(loop))
    return choice;
  auto compare = choice.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::slt)
    return {};
  bool isOfBounds =
      isEqualConstantIntOrValue(compare.getLhs(), loop.getLowerBound()) &&
      isEqualConstantIntOrValue(compare.getRhs(), loop.getUpperBound());
  return isOfBounds ? choice : scf::IfOp();
}

Value tile::emitIsEntered(OpBuilder &b, scf::ForOp loop) {
  return arith::CmpIOp::create(b, loop.getLoc(), arith::CmpIPredicate::slt,
                               loop.getLowerBound(), loop.getUpperBound());
}

bool tile::isAlwaysEntered(scf::ForOp loop) {
  return hasIterations(loop) || getEntryGuard(loop);
}

scf::ForOp tile::findLoopBehind(Operation *op,
                                function_ref<bool(scf::ForOp)> isWanted) {
  for (op = op->getNextNode(); op; op = op->getNextNode()) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (auto choice = dyn_cast<scf::IfOp>(op))
      if (auto loops = choice.thenBlock()->getOps<scf::ForOp>();
          !loops.empty() && getEntryGuard(*loops.begin()))
        loop = *loops.begin();
    if (loop && isWanted(loop))
      return loop;
  }
  return {};
}

void tile::moveIntoFirstIteration(scf::ForOp loop, ArrayRef<Operation *> ops,
                                  Operation *behind) {
  Location loc = ops.front()->getLoc();
  OpBuilder b(loop);
  scf::IfOp guard = getEntryGuard(loop);
  if (guard || !isAlwaysEntered(loop)) {
    if (guard)
      b.setInsertionPoint(guard);
    Value isEntered = guard ? guard.getCondition() : emitIsEntered(b, loop);
    auto choice = scf::IfOp::create(b, loc, isEntered, /*withElseRegion=*/true);
    OpBuilder otherwise = choice.getElseBodyBuilder();
    for (Operation *op : ops)
      otherwise.clone(*op);
  }

  b.setInsertionPointAfter(behind);
  Value isFirst =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                            loop.getInductionVar(), loop.getLowerBound());
  auto choice = scf::IfOp::create(b, loc, isFirst);
  for (Operation *op : ops)
    op->moveBefore(choice.thenBlock()->getTerminator());
}
