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
