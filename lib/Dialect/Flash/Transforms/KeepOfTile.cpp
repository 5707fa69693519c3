//===- KeepOfTile.cpp - What a region keeps of a whole tile ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KeepOfTile.h"

#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flash;

/// Null if any of the two is.
template <typename Op>
static Value ofBoth(ImplicitLocOpBuilder &b, Value lhs, Value rhs) {
  return lhs && rhs ? Op::create(b, lhs, rhs).getResult() : Value();
}
/// The other one if one is null.
template <typename Op>
static Value ofAny(ImplicitLocOpBuilder &b, Value lhs, Value rhs) {
  return lhs && rhs ? Op::create(b, lhs, rhs).getResult() : lhs ? lhs : rhs;
}

TileCondition flash::emitAnd(ImplicitLocOpBuilder &b, TileCondition lhs,
                             TileCondition rhs) {
  return {ofBoth<arith::AndIOp>(b, lhs.all, rhs.all),
          ofAny<arith::AndIOp>(b, lhs.any, rhs.any)};
}

namespace {
/// Evaluates a region on a tile. What it does not understand stays unknown.
class TileEvaluator {
public:
  TileEvaluator(ImplicitLocOpBuilder &b, RangeOfRead rangeOfRead)
      : b(b), rangeOfRead(rangeOfRead) {}

  void set(Value value, IndexRange range) {
    ranges[value] = range;
    if (range.isUniform())
      uniform.map(value, range.least);
  }
  void visit(Operation &op);
  TileCondition getCondition(Value value);

private:
  IndexRange getRange(Value value);
  IndexRange computeRange(Operation &op);
  TileCondition compare(arith::CmpIPredicate predicate, IndexRange lhs,
                        IndexRange rhs);
  Value negate(Value condition) {
    return ofBoth<arith::XOrIOp>(b, condition,
                                 arith::ConstantIntOp::create(b, 1, 1));
  }
  TileCondition negate(TileCondition condition) {
    return {negate(condition.any), negate(condition.all)};
  }

  ImplicitLocOpBuilder &b;
  RangeOfRead rangeOfRead;
  /// What is the same for all elements, as it was cloned.
  IRMapping uniform;
  llvm::DenseMap<Value, IndexRange> ranges;
  llvm::DenseMap<Value, TileCondition> conditions;
};
} // namespace

IndexRange TileEvaluator::getRange(Value value) {
  Value same = uniform.lookupOrNull(value);
  if (!same)
    return ranges.lookup(value);
  if (same.getType().isSignlessInteger() && !same.getType().isInteger(1))
    same = arith::IndexCastOp::create(b, b.getIndexType(), same);
  return {same, same};
}

TileCondition TileEvaluator::getCondition(Value value) {
  if (Value same = uniform.lookupOrNull(value))
    return {same, same};
  return conditions.lookup(value);
}

TileCondition TileEvaluator::compare(arith::CmpIPredicate predicate,
                                     IndexRange lhs, IndexRange rhs) {
  using Predicate = arith::CmpIPredicate;
  auto holds = [&](Predicate predicate, Value lhs, Value rhs) -> Value {
    return lhs && rhs ? arith::CmpIOp::create(b, predicate, lhs, rhs) : Value();
  };
  switch (predicate) {
  case Predicate::slt:
  case Predicate::sle:
    return {holds(predicate, lhs.most, rhs.least),
            holds(predicate, lhs.least, rhs.most)};
  case Predicate::sgt:
    return compare(Predicate::slt, rhs, lhs);
  case Predicate::sge:
    return compare(Predicate::sle, rhs, lhs);
  case Predicate::eq: {
    TileCondition isBelow = compare(Predicate::sle, lhs, rhs),
                  isAbove = compare(Predicate::sle, rhs, lhs);
    return emitAnd(b, isBelow, isAbove);
  }
  case Predicate::ne:
    return negate(compare(Predicate::eq, lhs, rhs));
  default:
    return {};
  }
}

IndexRange TileEvaluator::computeRange(Operation &op) {
  SmallVector<IndexRange> of = llvm::map_to_vector(
      op.getOperands(), [&](Value operand) { return getRange(operand); });
  return llvm::TypeSwitch<Operation *, IndexRange>(&op)
      .Case([&](arith::AddIOp) -> IndexRange {
        return {ofBoth<arith::AddIOp>(b, of[0].least, of[1].least),
                ofBoth<arith::AddIOp>(b, of[0].most, of[1].most)};
      })
      .Case([&](arith::SubIOp) -> IndexRange {
        return {ofBoth<arith::SubIOp>(b, of[0].least, of[1].most),
                ofBoth<arith::SubIOp>(b, of[0].most, of[1].least)};
      })
      .Case([&](arith::MaxSIOp) -> IndexRange {
        return {ofAny<arith::MaxSIOp>(b, of[0].least, of[1].least),
                ofBoth<arith::MaxSIOp>(b, of[0].most, of[1].most)};
      })
      .Case([&](arith::MinSIOp) -> IndexRange {
        return {ofBoth<arith::MinSIOp>(b, of[0].least, of[1].least),
                ofAny<arith::MinSIOp>(b, of[0].most, of[1].most)};
      })
      .Case([&](arith::IndexCastOp) { return of[0]; })
      .Case([&](tensor::ExtractOp read) { return rangeOfRead(read); })
      .Default([](Operation *) { return IndexRange(); });
}

void TileEvaluator::visit(Operation &op) {
  auto isUniform = [&](Value operand) {
    return operand.getParentRegion() != op.getParentRegion() ||
           uniform.contains(operand);
  };
  // Guards depend on single elements.
  if (isa<GuardOp>(op))
    return;
  if (llvm::all_of(op.getOperands(), isUniform)) {
    b.clone(op, uniform);
    return;
  }
  if (op.getNumResults() != 1)
    return;
  Value result = op.getResult(0);
  if (!result.getType().isInteger(1)) {
    if (result.getType().isIndex() || isa<tensor::ExtractOp>(op))
      ranges[result] = computeRange(op);
    return;
  }
  auto condition = [&](unsigned i) { return getCondition(op.getOperand(i)); };
  conditions[result] =
      llvm::TypeSwitch<Operation *, TileCondition>(&op)
          .Case([&](arith::CmpIOp comparison) {
            return compare(comparison.getPredicate(),
                           getRange(comparison.getLhs()),
                           getRange(comparison.getRhs()));
          })
          .Case([&](arith::AndIOp) -> TileCondition {
            return emitAnd(b, condition(0), condition(1));
          })
          .Case([&](arith::OrIOp) -> TileCondition {
            return {
                ofAny<arith::OrIOp>(b, condition(0).all, condition(1).all),
                ofBoth<arith::OrIOp>(b, condition(0).any, condition(1).any)};
          })
          .Case([&](arith::XOrIOp) -> TileCondition {
            return matchPattern(op.getOperand(1), m_One())
                       ? negate(condition(0))
                       : TileCondition();
          })
          .Default([](Operation *) { return TileCondition(); });
}

TileCondition flash::emitKeepOfTile(ImplicitLocOpBuilder &b, Region &keep,
                                    IndexRange batch, IndexRange head,
                                    IndexRange query, IndexRange key,
                                    RangeOfRead rangeOfRead) {
  if (keep.empty()) {
    Value always = arith::ConstantIntOp::create(b, 1, 1);
    return {always, always};
  }
  Block &block = keep.front();
  TileEvaluator evaluator(b, rangeOfRead);
  const IndexRange position[] = {batch, head, query, key};
  for (auto [argument, range] : llvm::zip_equal(block.getArguments(), position))
    evaluator.set(argument, range);
  for (Operation &op : block.without_terminator())
    evaluator.visit(op);
  return evaluator.getCondition(
      cast<YieldOp>(block.getTerminator()).getResult());
}
