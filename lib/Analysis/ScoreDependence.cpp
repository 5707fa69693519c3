//===- ScoreDependence.cpp - What values of score regions depend on -------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/ScoreDependence.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace flash;

ScoreDependence ScoreDependence::ofFunction() const {
  ScoreDependence result = *this;
  if (queries != 0 && queries == -keys) {
    result.onDistance = true;
  } else {
    result.onQuery |= queries != 0;
    result.onKey |= keys != 0;
  }
  result.queries = result.keys = 0;
  result.rest.reset();
  return result;
}

void ScoreDependence::add(const ScoreDependence &other) {
  onScore |= other.onScore;
  onBatch |= other.onBatch;
  onHead |= other.onHead;
  onQuery |= other.onQuery;
  onKey |= other.onKey;
  onDistance |= other.onDistance;
}

bool ScoreDependence::isDistance() const {
  return queries == 1 && keys == -1 && !onScore && !onQuery && !onKey &&
         !onDistance;
}

std::optional<int64_t> ScoreDependence::getDistance() const {
  return isDistance() && !onBatch && !onHead ? rest : std::nullopt;
}

ScoreDependences::ScoreDependences(Region &score) {
  Block &block = score.front();
  known[block.getArgument(0)].onScore = true;
  known[block.getArgument(1)].onBatch = true;
  known[block.getArgument(2)].onHead = true;
  for (auto [argument, isQuery] : {std::pair(3, true), {4, false}}) {
    ScoreDependence &position = known[block.getArgument(argument)];
    (isQuery ? position.queries : position.keys) = 1;
    position.rest = 0;
  }
  for (Operation &op : block.without_terminator())
    known[op.getResult(0)] = compute(op);
}

ScoreDependence ScoreDependences::get(Value value) const {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  ScoreDependence constant;
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    constant.rest = number.getSExtValue();
  return constant;
}

ScoreDependence ScoreDependences::ofFunction(ValueRange values) const {
  ScoreDependence all;
  for (Value value : values)
    all.add(get(value).ofFunction());
  return all;
}

ScoreDependence ScoreDependences::compute(Operation &op) {
  // Guards change what no score reads; positions fit in 32 bits, and in no
  // less.
  auto narrow = dyn_cast<arith::TruncIOp>(op);
  if (narrow && narrow.getType().getIntOrFloatBitWidth() < 32)
    return ofFunction(op.getOperands());
  if (isa<GuardOp, arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::TruncIOp>(op))
    return get(op.getOperand(0));
  auto combine = [&](int64_t ofLhs, int64_t ofRhs) {
    ScoreDependence lhs = get(op.getOperand(0)), rhs = get(op.getOperand(1));
    ScoreDependence sum = lhs;
    sum.add(rhs);
    sum.queries = ofLhs * lhs.queries + ofRhs * rhs.queries;
    sum.keys = ofLhs * lhs.keys + ofRhs * rhs.keys;
    sum.rest.reset();
    if (lhs.rest && rhs.rest)
      sum.rest = ofLhs * *lhs.rest + ofRhs * *rhs.rest;
    return sum;
  };
  if (isa<arith::AddIOp>(op))
    return combine(1, 1);
  if (isa<arith::SubIOp>(op))
    return combine(1, -1);
  // A constant is like one outside the region.
  if (isa<arith::ConstantOp>(op))
    return get(op.getResult(0));
  return ofFunction(op.getOperands());
}

bool flash::readsPairs(Region &score) {
  if (score.empty())
    return false;
  ScoreDependences dependences(score);
  return llvm::any_of(
      score.front().getOps<tensor::ExtractOp>(), [&](tensor::ExtractOp read) {
        return dependences.ofFunction(read.getIndices()).isOnPairs();
      });
}

/// Whether `x` is added to the score, to which nothing else was done before but
/// other additions: then the derivative for both is the same.
static bool isAddedToScore(Value x, Value score,
                           const ScoreDependences &dependences) {
  while (score.hasOneUse()) {
    OpOperand &use = *score.use_begin();
    Operation *sum = use.getOwner();
    bool isSum = isa<arith::AddFOp>(sum) ||
                 (isa<arith::SubFOp>(sum) && use.getOperandNumber() == 0);
    if (!isSum)
      return false;
    Value other = sum->getOperand(1 - use.getOperandNumber());
    if (dependences.get(other).onScore)
      return false;
    if (other == x)
      return isa<arith::AddFOp>(sum);
    score = sum->getResult(0);
  }
  return false;
}

bool flash::isSumByDistance(tensor::ExtractOp read,
                            const ScoreDependences &dependences) {
  ScoreDependence on = dependences.ofFunction(read.getIndices());
  if (!on.onDistance || on.onScore || on.onQuery || on.onKey)
    return false;
  bool isAlone =
      llvm::all_of(read->getBlock()->getOps<tensor::ExtractOp>(),
                   [&](tensor::ExtractOp other) {
                     return other == read ||
                            other.getTensor() != read.getTensor() ||
                            !llvm::equal(other.getIndices(), read.getIndices());
                   });
  Value x = read.getResult();
  while (x.hasOneUse() && isa<arith::ExtFOp>(*x.user_begin()))
    x = x.user_begin()->getResult(0);
  return isAlone && x.hasOneUse() &&
         isAddedToScore(x, read->getBlock()->getArgument(0), dependences);
}

bool flash::hasSumByDistance(Region &score, ValueRange captured) {
  if (score.empty())
    return false;
  ScoreDependences dependences(score);
  return llvm::any_of(score.front().getOps<tensor::ExtractOp>(),
                      [&](tensor::ExtractOp read) {
                        return llvm::is_contained(captured, read.getTensor()) &&
                               isSumByDistance(read, dependences);
                      });
}

bool flash::isLinearInScore(Region &score) {
  if (score.empty())
    return true;
  ScoreDependences dependences(score);
  auto isOnScore = [&](Value value) { return dependences.get(value).onScore; };
  auto isLinear = [&](Operation &op) {
    if (isa<arith::ExtFOp, arith::TruncFOp, arith::NegFOp, arith::AddFOp,
            arith::SubFOp>(op))
      return true;
    if (isa<arith::MulFOp>(op))
      return !isOnScore(op.getOperand(0)) || !isOnScore(op.getOperand(1));
    if (auto div = dyn_cast<arith::DivFOp>(op))
      return !isOnScore(div.getRhs());
    if (auto select = dyn_cast<arith::SelectOp>(op))
      return !isOnScore(select.getCondition());
    return false;
  };
  return llvm::all_of(score.front().without_terminator(), [&](Operation &op) {
    return llvm::none_of(op.getOperands(), isOnScore) || isLinear(op);
  });
}
