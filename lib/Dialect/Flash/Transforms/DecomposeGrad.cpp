//===- DecomposeGrad.cpp - Steps of the gradients as linalg ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step has the scores in the shape in which the products that follow want
// them: the rows of the fixed tile, queries or keys, are rows of tensor cores,
// and transposed, for vectors, its rows are columns. So what a step adds is
// multiplied from registers, in both programs.
//
//===----------------------------------------------------------------------===//

#include "DecomposeGrad.h"

#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "flash/Dialect/Flash/Utils/ScoreGradient.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

namespace {
class GradStepBuilder : ScoreTileBuilder {
public:
  GradStepBuilder(StepOpInterface step, Value shift, Value delta,
                  const DecomposeOptions &options, Transposed &transposed)
      : ScoreTileBuilder(step, options, transposed), shift(shift),
        delta(delta) {}

  LogicalResult run(QueryGradStepOp op);
  LogicalResult run(KeyGradStepOp op);

private:
  /// The probabilities of scores, in their memory if nobody else needs them.
  Value probabilities(Value s);
  /// The gradients of the scaled products: the scores `s` and the probabilities
  /// `p`, and the products `dp` of the values and the output's gradients.
  FailureOr<Value> scoreGrads(Value s, Value p, Value dp);
  Value zeroUnless(ImplicitLocOpBuilder &at, Value condition, Value value) {
    if (!condition)
      return value;
    return arith::SelectOp::create(at, condition, value, emitConstant(at, 0));
  }
  void replace(Operation *op, ValueRange results) {
    op->replaceAllUsesWith(results);
    op->erase();
  }

  Value shift, delta;
};
} // namespace

Value GradStepBuilder::probabilities(Value s) {
  auto exponential = [&](ImplicitLocOpBuilder &at, Value product,
                         Value shift) -> SmallVector<Value> {
    Value query = linalg::IndexOp::create(at, queryLoop());
    Value key = linalg::IndexOp::create(at, keyLoop());
    double factor = log2Scale;
    if (hasScore()) {
      IRMapping values;
      product = scoreRegion(at, product, query, key, values);
      factor = llvm::numbers::log2e;
    }
    Value p = emitScaledExponential(at, product, factor, shift);
    return {zeroUnless(at, takesPart(at, query, key), p)};
  };
  // The derivative of a score region is a function of the score.
  if (hasScore())
    return generic({s, shift}, empty(scoreShape()),
                   {scoreMap(), rowMap(), scoreMap()},
                   [&](ImplicitLocOpBuilder &at, ValueRange args) {
                     return exponential(at, args[0], args[1]);
                   })[0];
  return generic(shift, s, {rowMap(), scoreMap()},
                 [&](ImplicitLocOpBuilder &at, ValueRange args) {
                   return exponential(at, args[1], args[0]);
                 })[0];
}

/// Removes the first input of `op` if its body does not use it.
static void dropUnusedInput(linalg::GenericOp op) {
  if (!op.getBody()->getArgument(0).use_empty())
    return;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps.erase(maps.begin());
  op.getBody()->eraseArgument(0);
  op.getInputsMutable().erase(0);
  op.setIndexingMapsAttr(Builder(op).getAffineMapArrayAttr(maps));
}

FailureOr<Value> GradStepBuilder::scoreGrads(Value s, Value p, Value dp) {
  auto ofScore = [&](ImplicitLocOpBuilder &at, Value p, Value delta, Value dp) {
    Value difference = arith::SubFOp::create(at, dp, delta);
    return arith::MulFOp::create(at, p, difference);
  };
  auto condition = [&](ImplicitLocOpBuilder &at) {
    return takesPart(at, linalg::IndexOp::create(at, queryLoop()),
                     linalg::IndexOp::create(at, keyLoop()));
  };
  if (!hasScore())
    return generic(
        {p, delta}, dp, {scoreMap(), rowMap(), scoreMap()},
        [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {zeroUnless(at, condition(at),
                             ofScore(at, args[0], args[1], args[2]))};
        })[0];
  bool isDifferentiable = true;
  auto body = [&](ImplicitLocOpBuilder &at,
                  ValueRange args) -> SmallVector<Value> {
    Value query = linalg::IndexOp::create(at, queryLoop());
    Value key = linalg::IndexOp::create(at, keyLoop());
    IRMapping values;
    scoreRegion(at, args[0], query, key, values);
    FailureOr<ScoreGradient> gradient = emitScoreGradient(
        at, step.getScore(), values, ofScore(at, args[1], args[2], args[3]),
        takesPart(at, query, key));
    isDifferentiable = succeeded(gradient);
    if (isDifferentiable && gradient->score)
      return {gradient->score};
    return {emitConstant(at, 0)};
  };
  Value result =
      generic({s, p, delta}, dp, {scoreMap(), scoreMap(), rowMap(), scoreMap()},
              body)[0];
  dropUnusedInput(result.getDefiningOp<linalg::GenericOp>());
  if (!isDifferentiable)
    return failure();
  return result;
}

LogicalResult GradStepBuilder::run(QueryGradStepOp op) {
  Value s = products(op.getQuery(), op.getKey());
  Value p = probabilities(s);
  Value dp = products(op.getOutputGrad(), op.getValue());
  FailureOr<Value> dx = scoreGrads(s, p, dp);
  if (failed(dx))
    return failure();
  replace(op, addRows(*dx, op.getKey(), op.getQueryGrad()));
  return success();
}

LogicalResult GradStepBuilder::run(KeyGradStepOp op) {
  Value s = products(op.getKey(), op.getQuery());
  Value p = probabilities(s);
  Value dp = products(op.getValue(), op.getOutputGrad());
  Value valueGrad = addRows(p, op.getOutputGrad(), op.getValueGrad());
  FailureOr<Value> dx = scoreGrads(s, p, dp);
  if (failed(dx))
    return failure();
  replace(op, {addRows(*dx, op.getQuery(), op.getKeyGrad()), valueGrad});
  return success();
}

LogicalResult
flash::decomposeGradStep(QueryGradStepOp op, const DecomposeOptions &options,
                         ScoreTileBuilder::Transposed &transposed) {
  return GradStepBuilder(op, op.getShift(), op.getDelta(), options, transposed)
      .run(op);
}

LogicalResult
flash::decomposeGradStep(KeyGradStepOp op, const DecomposeOptions &options,
                         ScoreTileBuilder::Transposed &transposed) {
  return GradStepBuilder(op, op.getShift(), op.getDelta(), options, transposed)
      .run(op);
}
