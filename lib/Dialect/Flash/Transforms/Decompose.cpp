//===- Decompose.cpp - The operations on one tile as linalg ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a step computes is written here, once for all targets. They differ in
// how scores are held: queries by keys, s[i, j], or transposed, keys by
// queries. A vector of neighbouring elements then belongs to different queries,
// so that the maximum and the sum over keys need no reduction within a vector,
// and both products read the key and value tiles as they lie in memory:
//
//   s[j, i]  = sum_d k[j, d] * qt[d, i]    (the query tile is transposed once)
//   o[i, d] += sum_j p[j, i] * v[j, d]
//
//===----------------------------------------------------------------------===//

#include "DecomposeCombine.h"
#include "DecomposeGrad.h"
#include "ScoreTileBuilder.h"
#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

namespace flash {
#define GEN_PASS_DEF_DECOMPOSE
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

static constexpr double minusInfinity =
    -std::numeric_limits<double>::infinity();

namespace {
/// Decomposes one tile of flash.online_attention.
class StepBuilder : ScoreTileBuilder {
public:
  StepBuilder(OnlineAttentionOp op, const DecomposeOptions &options,
              Transposed &transposed)
      : ScoreTileBuilder(op, options, transposed), op(op),
        unit(op.getUnit().convertToDouble()),
        exponential(unit, op.getValue().getType().getElementType(), isExact()) {
    partial = op.getPartial();
    // In units of log2, as the state's maximum is.
    if (op.getFactor() && !hasScore())
      toLog2 = arith::MulFOp::create(
          b, op.getFactor(), emitConstant(b, scale * llvm::numbers::log2e));
    else if (op.getFactor())
      toLog2 = emitConstant(b, llvm::numbers::log2e);
  }

  void run();

private:
  /// What products, or what the score region gives, are multiplied by.
  double factorOfScores() {
    return toLog2 ? 1.0 : (hasScore() ? 1.0 : scale) / unit;
  }
  bool isLazy();
  bool hasRoles();
  /// Whether an exponential is a subtraction and a multiplication, so that rows
  /// have their maximum alone in registers. Products of f32 leave time for it.
  bool subtractsFirst();
  /// Whether rows have factors of their own in the exponential otherwise. The
  /// warps of kernels without roles have no registers for them, and large
  /// products are wrong there.
  bool isExact();
  Value modifiedScore(ImplicitLocOpBuilder &at, Value product, Value query,
                      Value key);
  /// The scores of products; `asks` whether elements may be left out.
  Value modifiedScores(Value s, bool testsElements);
  Value scores();
  /// The maximum after the tile's, and what sums so far are multiplied by.
  Growth grow(Value tileMax);
  /// What a step goes on from: the new maximum, the factor of what was summed
  /// up before, and the accumulator times it, if that has been computed.
  struct Rescaled {
    Value max, factor, acc;
  };
  Value scaledAcc(Value factor);
  Rescaled rescale(Value tileMax);
  Rescaled rescaleLazily(Value tileMax);
  Value exponentials(Value x, Value max);

  OnlineAttentionOp op;
  double unit;
  /// What scores of elements of 8 bits are multiplied by in the exponential;
  /// null where elements have more.
  Value toLog2;
  OnlineExponential exponential;
};
} // namespace

/// The maximum of a row, which is -inf as long as it has no keys, as a number
/// that can be subtracted.
static Value emitFinite(ImplicitLocOpBuilder &at, Value max) {
  return arith::MaxNumFOp::create(
      at, max, emitConstant(at, std::numeric_limits<float>::lowest()));
}

bool StepBuilder::isLazy() {
  std::optional<ScheduleAttr> schedule = op.getSchedule();
  return schedule && schedule->getValue().has(ScheduleFeatures::LazyRescale);
}

bool StepBuilder::hasRoles() {
  std::optional<ScheduleAttr> schedule = op.getSchedule();
  return schedule && schedule->getValue().hasRoles();
}

bool StepBuilder::subtractsFirst() {
  return !options.transposeScores && !hasRoles() &&
         op.getQuery().getType().getElementType().isF32();
}

bool StepBuilder::isExact() {
  return hasScore() || options.transposeScores || hasRoles();
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

Value StepBuilder::modifiedScore(ImplicitLocOpBuilder &at, Value product,
                                 Value query, Value key) {
  Value score = product;
  IRMapping values;
  if (hasScore() && toLog2)
    score = arith::MulFOp::create(at, score, op.getFactor());
  if (hasScore())
    score = scoreRegion(at, score, query, key, values);
  if (factorOfScores() != 1.0)
    score =
        arith::MulFOp::create(at, score, emitConstant(at, factorOfScores()));
  if (Value condition = takesPart(at, query, key))
    score = arith::SelectOp::create(at, condition, score,
                                    emitConstant(at, minusInfinity));
  return score;
}

Value StepBuilder::modifiedScores(Value s, bool testsElements) {
  if (factorOfScores() == 1.0 && !hasScore() && !testsElements)
    return s;
  return generic(
      {}, s, scoreMap(),
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value query = linalg::IndexOp::create(at, queryLoop());
        Value key = linalg::IndexOp::create(at, keyLoop());
        return {modifiedScore(at, args[0], query, key)};
      })[0];
}

Value StepBuilder::scores() {
  Value s = products(op.getQuery(), op.getKey());
  if (!isMasked() && !op.getKeys())
    return modifiedScores(s, /*testsElements=*/false);
  // Also a score region is in both: in front of the choice, what it computes
  // from positions stayed in registers for the mask, and ptxas spilled.
  return choosePartial(
      [&] { return modifiedScores(s, /*testsElements=*/true); },
      [&] { return modifiedScores(s, /*testsElements=*/false); });
}

Growth StepBuilder::grow(Value tileMax) {
  ValueRange growth = rows(
      tileMax, {op.getMax(), empty({queries})},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        if (toLog2) {
          // Exponentials up to 2^8 use the range of f8E4M3FN, whose largest
          // number is 448 (FlashAttention-3, arXiv 2407.08608, has it, too).
          Value max = arith::MaxNumFOp::create(
              at, args[1],
              math::FmaOp::create(at, args[0], toLog2, emitConstant(at, -8)));
          Value difference =
              arith::SubFOp::create(at, args[1], emitFinite(at, max));
          return {max, math::Exp2Op::create(at, difference)};
        }
        if (subtractsFirst()) {
          Value max = arith::MaxNumFOp::create(at, args[1], args[0]);
          return {max, emitExponential(at, args[1], max, unit)};
        }
        Growth growth = exponential.emitGrowth(at, args[1], args[0]);
        return {growth.max, growth.rescale};
      });
  return {growth[0], growth[1]};
}

Value StepBuilder::scaledAcc(Value factor) {
  // Where products are added to the accumulator outside of tensor cores,
  // addition and multiplication become one instruction.
  auto flags = toLog2 || op.getValue().getType().getElementType().isF32()
                   ? arith::FastMathFlags::contract
                   : arith::FastMathFlags::none;
  return generic(
      factor, op.getAcc(), {map(2, {0}), map(2, {0, 1})},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {arith::MulFOp::create(at, args[1], args[0], flags)};
      })[0];
}

StepBuilder::Rescaled StepBuilder::rescale(Value tileMax) {
  Growth growth = grow(tileMax);
  return {growth.max, growth.rescale, Value()};
}

StepBuilder::Rescaled StepBuilder::rescaleLazily(Value tileMax) {
  Value isFarAbove = rows(
      {tileMax, op.getMax()}, empty({queries}, b.getI1Type()),
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {exponential.emitIsFarAbove(at, args[1], args[0])};
      })[0];
  Value any = AnyOp::create(b, b.getI1Type(), isFarAbove);
  ValueRange growth = choose(
      any,
      [&]() -> SmallVector<Value> {
        Growth growth = grow(tileMax);
        return {growth.max, growth.rescale};
      },
      [&]() -> SmallVector<Value> {
        return {op.getMax(), filled({queries}, 1.0)};
      });
  // In front of the exponentials, where products of warpgroups run meanwhile:
  // so no branch divides these from the rounding of probabilities, and ptxas
  // can mix them.
  Value acc = choose(
      any, [&]() -> SmallVector<Value> { return {scaledAcc(growth[1])}; },
      [&]() -> SmallVector<Value> { return {op.getAcc()}; })[0];
  return {growth[0], growth[1], acc};
}

Value StepBuilder::exponentials(Value x, Value max) {
  if (toLog2) {
    Value shift = rows(
        max, empty({queries}),
        [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {emitFinite(at, args[0])};
        })[0];
    return generic(
        shift, x, {rowMap(), scoreMap()},
        [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {emitScaledExponential(at, args[1], toLog2, args[0])};
        })[0];
  }
  if (subtractsFirst())
    return generic(
        max, x, {rowMap(), scoreMap()},
        [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {emitExponential(at, args[1], args[0], unit)};
        })[0];
  ValueRange ofRows = rows(
      max, {empty({queries}), empty({queries})},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value factor = exponential.emitFactor(at, args[0]);
        return {factor, exponential.emitShift(at, args[0], factor)};
      });
  if (isExact())
    return generic(
        ofRows, x, {rowMap(), rowMap(), scoreMap()},
        [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {emitScaledExponential(at, args[2], args[0], args[1])};
        })[0];
  return generic(
      ofRows[1], x, {rowMap(), scoreMap()},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {emitScaledExponential(
            at, args[1], exponential.emitFactor(at, args[0]), args[0])};
      })[0];
}

void StepBuilder::run() {
  Value x = scores();
  // The maximum is finite where it is subtracted, as -inf - -inf would be NaN.
  double least =
      subtractsFirst() ? std::numeric_limits<float>::lowest() : minusInfinity;
  Value tileMax = generic(
      x, filled({queries}, least), {scoreMap(), rowMap()},
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {arith::MaxNumFOp::create(at, args[1], args[0])};
      })[0];
  Rescaled state = isLazy() ? rescaleLazily(tileMax) : rescale(tileMax);
  Value p = exponentials(x, state.max);
  auto multiply = [](ImplicitLocOpBuilder &at,
                     ValueRange args) -> SmallVector<Value> {
    return {arith::MulFOp::create(at, args[1], args[0])};
  };
  Value sum = generic(
      p, rows(state.factor, op.getSum(), multiply), {scoreMap(), rowMap()},
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {arith::AddFOp::create(at, args[1], args[0])};
      })[0];
  Value acc = addRows(p, op.getValue(),
                      state.acc ? state.acc : scaledAcc(state.factor));
  op->replaceAllUsesWith(ValueRange{acc, state.max, sum});
  op.erase();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Decomposes one tile of flash.finalize.
static void decomposeFinalize(FinalizeOp op) {
  TileBuilder t(op);
  auto outputType = cast<RankedTensorType>(op.getOutput().getType());
  // A row without keys has an accumulator of 0: any divisor but 0 will do.
  Value inverse = t.rows(
      op.getSum(), t.empty(outputType.getDimSize(0)),
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {emitInverseOfSum(at, args[0])};
      })[0];
  AffineMap tile = t.map(2, {0, 1}), row = t.map(2, {0});
  SmallVector<Value> results = {t.generic(
      {op.getAcc(), inverse}, op.getOutputInit(), {tile, row, tile},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value quotient = arith::MulFOp::create(at, args[0], args[1]);
        return {truncateF32(at, outputType.getElementType(), quotient)};
      })[0]};
  if (op.getLseInit())
    results.push_back(t.rows(
        {op.getMax(), op.getSum()}, op.getLseInit(),
        [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          // log(0) is -inf, as is the maximum of a row without keys.
          Value max = arith::MulFOp::create(
              at, args[0], emitConstant(at, op.getUnit().convertToDouble()));
          return {
              arith::AddFOp::create(at, max, math::LogOp::create(at, args[1]))};
        })[0]);
  op->replaceAllUsesWith(results);
  op.erase();
}

namespace {
struct Decompose : flash::impl::DecomposeBase<Decompose> {
  using Base::Base;
  void runOnOperation() override {
    SmallVector<StepOpInterface> steps;
    SmallVector<FinalizeOp> finalizes;
    SmallVector<CombineOp> combines;
    bool whole = false;
    auto refuse = [&](Operation *op) {
      op->emitOpError("can be decomposed only as a statically shaped tile of "
                      "rank 2; run flash-tile first");
      whole = true;
    };
    getOperation().walk([&](Operation *op) {
      if (auto step = dyn_cast<StepOpInterface>(op)) {
        auto isStaticTile = [](RankedTensorType type) {
          return type.getRank() == 2 && type.hasStaticShape();
        };
        if (!isStaticTile(step.getQuery().getType()) ||
            !isStaticTile(step.getKey().getType()))
          return refuse(op);
        auto online = dyn_cast<OnlineAttentionOp>(op);
        if (online && online.getFactor() && transposeScores) {
          op->emitOpError("multiplies elements of 8 bits, as warpgroups do; "
                          "use the target sm_90a");
          whole = true;
        }
        steps.push_back(step);
      } else if (auto finalize = dyn_cast<FinalizeOp>(op)) {
        if (finalize.getAcc().getType().getRank() != 2 ||
            !finalize.getAcc().getType().hasStaticShape())
          return refuse(op);
        finalizes.push_back(finalize);
      } else if (auto combine = dyn_cast<CombineOp>(op)) {
        combines.push_back(combine);
      }
    });
    if (whole)
      return signalPassFailure();
    ScoreTileBuilder::Transposed transposed;
    KeysOfSums keysOfSums;
    DecomposeOptions options{transposeScores, guardValues};
    for (StepOpInterface step : steps) {
      LogicalResult done = success();
      if (auto online = dyn_cast<OnlineAttentionOp>(step.getOperation()))
        StepBuilder(online, options, transposed).run();
      else if (auto grad = dyn_cast<QueryGradStepOp>(step.getOperation()))
        done = decomposeGradStep(grad, options, transposed);
      else if (auto grad = dyn_cast<KeyGradStepOp>(step.getOperation()))
        done = decomposeGradStep(grad, options, transposed, keysOfSums);
      else
        done = decomposeGradStep(cast<CapturedGradStepOp>(step.getOperation()),
                                 options, transposed);
      if (failed(done))
        return signalPassFailure();
    }
    for (FinalizeOp finalize : finalizes)
      decomposeFinalize(finalize);
    for (CombineOp combine : combines)
      if (failed(decomposeCombine(combine)))
        return signalPassFailure();
  }
};
} // namespace
