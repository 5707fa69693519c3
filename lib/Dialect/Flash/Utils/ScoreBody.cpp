//===- ScoreBody.cpp - Masking and modifying one score --------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

/// The constraints of `set` that are not known to hold everywhere.
static SmallVector<std::pair<AffineExpr, bool>>
openConstraints(IntegerSet set) {
  SmallVector<std::pair<AffineExpr, bool>> open;
  for (auto [constraint, isEquality] :
       llvm::zip_equal(set.getConstraints(), set.getEqFlags())) {
    auto constant = dyn_cast<AffineConstantExpr>(constraint);
    if (constant &&
        (isEquality ? constant.getValue() == 0 : constant.getValue() >= 0))
      continue;
    open.emplace_back(constraint, isEquality);
  }
  return open;
}

Value flash::emitMaskPredicate(OpBuilder &b, Location loc,
                               MaskAttrInterface mask,
                               const ScorePosition &position) {
  Value dims[] = {position.batch, position.head, position.query, position.key};
  Value symbols[] = {position.numQueries, position.numKeys};
  SmallVector<SmallVector<std::pair<AffineExpr, bool>>> sets;
  for (IntegerSet set : mask.getAffineSets()) {
    sets.push_back(openConstraints(set));
    if (sets.back().empty())
      return Value();
  }
  if (sets.empty())
    return arith::ConstantOp::create(b, loc, b.getBoolAttr(false));

  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value anySet;
  for (ArrayRef<std::pair<AffineExpr, bool>> constraints : sets) {
    Value all;
    for (auto [constraint, isEquality] : constraints) {
      Value lhs = affine::expandAffineExpr(b, loc, constraint, dims, symbols);
      Value holds = arith::CmpIOp::create(
          b, loc,
          isEquality ? arith::CmpIPredicate::eq : arith::CmpIPredicate::sge,
          lhs, zero);
      all = all ? arith::AndIOp::create(b, loc, all, holds) : holds;
    }
    anySet = anySet ? arith::OrIOp::create(b, loc, anySet, all) : all;
  }
  return anySet;
}

Value flash::emitLengthPredicate(OpBuilder &b, Location loc, Value predicate,
                                 Value length, Value key) {
  if (!length)
    return predicate;
  Value bound = arith::IndexCastOp::create(b, loc, b.getIndexType(), length);
  Value exists =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, key, bound);
  if (!predicate)
    return exists;
  return arith::AndIOp::create(b, loc, predicate, exists);
}

bool flash::hasGuards(Region &region) {
  return !region.empty() && !region.front().getOps<GuardOp>().empty();
}

Value flash::emitGuard(OpBuilder &b, GuardOp guard, Value value,
                       Value takesPart) {
  if (!takesPart)
    return value;
  Value otherwise = arith::ConstantOp::create(
      b, guard.getLoc(),
      b.getIntegerAttr(value.getType(), guard.getOtherwise()));
  return arith::SelectOp::create(b, guard.getLoc(), takesPart, value,
                                 otherwise);
}

Value flash::emitRowExists(OpBuilder &b, Location loc, Value predicate,
                           Value query, Value numQueries) {
  Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, query,
                                       numQueries);
  if (!predicate)
    return exists;
  return arith::AndIOp::create(b, loc, predicate, exists);
}

Value flash::emitScoreRegion(OpBuilder &b, Location loc, Region &region,
                             Value score, const ScorePosition &position,
                             Value takesPart) {
  if (region.empty())
    return score;
  Block &block = region.front();
  IRMapping mapping;
  mapping.map(block.getArguments(),
              ValueRange{score, position.batch, position.head, position.query,
                         position.key});
  for (Operation &op : block.without_terminator())
    if (auto guard = dyn_cast<GuardOp>(op))
      mapping.map(guard.getResult(),
                  emitGuard(b, guard, mapping.lookupOrDefault(guard.getValue()),
                            takesPart));
    else
      b.clone(op, mapping);
  return mapping.lookupOrDefault(
      cast<YieldOp>(block.getTerminator()).getResult());
}

void flash::eraseDeadOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}
