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
#include "TileBuilder.h"
#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
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

static bool isPaddedWithAnything(tensor::PadOp pad) {
  Value padding = pad.getConstantPaddingValue();
  return padding && padding.getDefiningOp<ub::PoisonOp>();
}

static void fillWithZeros(tensor::PadOp pad) {
  OpBuilder b(pad);
  Value zero = arith::ConstantOp::create(
      b, pad.getLoc(), b.getZeroAttr(pad.getType().getElementType()));
  pad.getBody()->getTerminator()->setOperand(0, zero);
}

namespace {
/// Decomposes one tile of flash.online_attention.
class StepBuilder : TileBuilder {
public:
  /// Transposed query tiles, shared by all steps of a tile.
  using QueryCache = DenseMap<Value, Value>;

  StepBuilder(OnlineAttentionOp op, const DecomposeOptions &options,
              QueryCache &queryCache)
      : TileBuilder(op), op(op), options(options), queryCache(queryCache),
        queries(op.getQuery().getType().getDimSize(0)),
        keys(op.getKey().getType().getDimSize(0)),
        scale(op.getScale().convertToDouble()),
        log2Scale(scale * llvm::numbers::log2e) {}

  void run();

private:
  bool hasScore() { return changesScore(op.getScore()); }
  /// Whether the mask or the score region leaves elements out.
  bool isMasked() { return op.getMask() || masksElements(op.getScore()); }
  /// Whether the maximum of the products, scaled, is that of the scores; the
  /// scale then joins the subtraction of the exponential in one instruction.
  bool scalesLate() { return !hasScore() && scale > 0; }
  bool isLazy();

  /// Which loop over a tile of scores goes over the queries, and which over the
  /// keys.
  unsigned queryLoop() { return options.transposeScores ? 1 : 0; }
  unsigned keyLoop() { return 1 - queryLoop(); }
  SmallVector<int64_t> scoreShape() {
    return options.transposeScores ? SmallVector<int64_t>{keys, queries}
                                   : SmallVector<int64_t>{queries, keys};
  }
  AffineMap scoreMap() { return b.getMultiDimIdentityMap(2); }
  AffineMap rowMap() { return map(2, {queryLoop()}); }

  /// An operand of a product. A vector unit multiplies f32 alone: there 16-bit
  /// tiles are widened once.
  Value operand(Value tile);
  Value transposedQuery();
  /// `sum` plus the product of `a` and `other`.
  Value contract(Value a, Value other, Value sum, ArrayRef<AffineMap> maps);
  Value products();

  ScorePosition positionOf(ImplicitLocOpBuilder &at, Value query, Value key);
  /// Whether the mask keeps the element with the given tile coordinates and its
  /// key exists, or null if that is so of all.
  Value isInMask(ImplicitLocOpBuilder &at, Value query, Value key);
  /// What the score region's guards ask, and positions at which it may read.
  Value guardOf(ImplicitLocOpBuilder &at, Value query, Value key);
  ScorePosition readablePosition(ImplicitLocOpBuilder &at, Value query,
                                 Value key);
  /// Whether the element takes part, or null if all do.
  Value takesPart(ImplicitLocOpBuilder &at, Value query, Value key);
  Value modifiedScore(ImplicitLocOpBuilder &at, Value product, Value query,
                      Value key);
  /// The score region on the scaled score of an element.
  Value scoreRegion(ImplicitLocOpBuilder &at, Value score, Value query,
                    Value key);
  /// A quotient of the region by a constant as a product. It may differ in the
  /// last bit, which scores of 16-bit queries and keys do not have, and needs
  /// one instruction instead of ten with a branch. Null for any other op.
  Value asProduct(ImplicitLocOpBuilder &at, Operation &inner,
                  const IRMapping &mapping);
  Value scores();
  /// The maximum of a tile's products, scaled as the state's is.
  Value scaledMax(ImplicitLocOpBuilder &at, Value max) {
    if (!scalesLate())
      return max;
    return arith::MulFOp::create(at, max, emitConstant(at, log2Scale));
  }
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
  /// Whether the values of all keys are finite.
  Value isFinite(Value values);
  /// `acc` plus the product of the probabilities `p` and the values.
  Value addValues(Value p, Value acc);
  Value addValuesCarefully(Value p, Value values, Value acc);

  OnlineAttentionOp op;
  const DecomposeOptions &options;
  QueryCache &queryCache;
  int64_t queries, keys;
  double scale, log2Scale;
};
} // namespace

bool StepBuilder::isLazy() {
  std::optional<ScheduleAttr> schedule = op.getSchedule();
  return schedule && schedule->getValue().has(ScheduleFeatures::LazyRescale);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value StepBuilder::operand(Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (!options.transposeScores || type.getElementType().isF32())
    return tile;
  AffineMap all = b.getMultiDimIdentityMap(2);
  return generic(
      tile, empty(type.getShape()), {all, all},
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {extendToF32(at, args[0])};
      })[0];
}

Value StepBuilder::transposedQuery() {
  Value &transposed = queryCache[op.getQuery()];
  if (transposed)
    return transposed;
  // Before the loop over keys, where the query tile is defined.
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(op.getQuery());
  int64_t headDim = op.getQuery().getType().getDimSize(1);
  transposed = generic(
      op.getQuery(), empty({headDim, queries}),
      {map(2, {1, 0}), map(2, {0, 1})},
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {extendToF32(at, args[0])};
      })[0];
  return transposed;
}

Value StepBuilder::contract(Value a, Value other, Value sum,
                            ArrayRef<AffineMap> maps) {
  auto contract =
      linalg::ContractOp::create(b, sum.getType(), ValueRange{a, other}, sum,
                                 b.getAffineMapArrayAttr(maps));
  if (std::optional<Precision> precision = op.getPrecision())
    FlashDialect::PrecisionAttrHelper(b.getContext())
        .setAttr(contract,
                 ProductPrecisionAttr::get(b.getContext(), *precision));
  return contract.getResult(0);
}

Value StepBuilder::products() {
  Value zero = filled(scoreShape(), 0.0);
  if (options.transposeScores) {
    Value key = operand(op.getKey());
    return contract(key, transposedQuery(), zero,
                    {map(3, {0, 2}), map(3, {2, 1}), map(3, {0, 1})});
  }
  return contract(op.getQuery(), op.getKey(), zero,
                  {map(3, {0, 2}), map(3, {1, 2}), map(3, {0, 1})});
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

ScorePosition StepBuilder::positionOf(ImplicitLocOpBuilder &at, Value query,
                                      Value key) {
  auto value = [&](OpFoldResult entry) {
    return getValueOrCreateConstantIndexOp(at, at.getLoc(), entry);
  };
  SmallVector<OpFoldResult> first = op.getMixedPosition(),
                            extents = op.getMixedExtents();
  Value head = value(first[1]);
  if (op.getPackedHeads() > 1) {
    Value packed = arith::ConstantIndexOp::create(at, op.getPackedHeads());
    head = arith::AddIOp::create(at, head,
                                 arith::RemUIOp::create(at, query, packed));
    query = arith::DivUIOp::create(at, query, packed);
  }
  return {value(first[0]),
          head,
          arith::AddIOp::create(at, value(first[2]), query),
          arith::AddIOp::create(at, value(first[3]), key),
          value(extents[0]),
          value(extents[1])};
}

Value StepBuilder::isInMask(ImplicitLocOpBuilder &at, Value query, Value key) {
  Value condition;
  if (op.getMask()) {
    Block *block = at.getInsertionBlock();
    Operation *before = block->empty() ? nullptr : &block->back();
    condition = emitMaskPredicate(at, at.getLoc(), *op.getMask(),
                                  positionOf(at, query, key));
    // Positions are far from the ends of their type. With that a comparison of
    // sums becomes one of a thread's own value and a constant.
    for (Operation *op = before ? before->getNextNode() : &block->front(); op;
         op = op->getNextNode())
      if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op) &&
          op->getResult(0).getType().isIndex())
        op->setAttr("overflowFlags",
                    arith::IntegerOverflowFlagsAttr::get(
                        at.getContext(), arith::IntegerOverflowFlags::nsw));
  }
  if (!op.getKeys())
    return condition;
  Value exists =
      arith::CmpIOp::create(at, arith::CmpIPredicate::slt, key, op.getKeys());
  if (!condition)
    return exists;
  return arith::AndIOp::create(at, condition, exists);
}

Value StepBuilder::asProduct(ImplicitLocOpBuilder &at, Operation &inner,
                             const IRMapping &mapping) {
  auto quotient = dyn_cast<arith::DivFOp>(inner);
  APFloat divisor(0.0);
  if (op.getQuery().getType().getElementTypeBitWidth() != 16 || !quotient ||
      !quotient.getType().isF32() || !mapping.contains(quotient.getLhs()) ||
      !matchPattern(quotient.getRhs(), m_ConstantFloat(&divisor)))
    return {};
  double factor = 1.0 / divisor.convertToDouble();
  if (!APFloat(static_cast<float>(factor)).isNormal())
    return {};
  return arith::MulFOp::create(at, mapping.lookup(quotient.getLhs()),
                               emitConstant(at, factor));
}

Value StepBuilder::guardOf(ImplicitLocOpBuilder &at, Value query, Value key) {
  Value condition =
      hasGuards(op.getScore()) ? isInMask(at, query, key) : Value();
  if (!condition)
    return {};
  ScorePosition position = positionOf(at, query, key);
  return emitRowExists(at, at.getLoc(), condition, position.query,
                       position.numQueries);
}

ScorePosition StepBuilder::readablePosition(ImplicitLocOpBuilder &at,
                                            Value query, Value key) {
  Block &region = op.getScore().front();
  ScorePosition position = positionOf(at, query, key);
  // Padding may lie past the last query or key, where a captured tensor must
  // not be read.
  auto clampBelow = [&](Value index, Value extent, BlockArgument of) -> Value {
    llvm::SetVector<Operation *> users;
    getForwardSlice(of, &users);
    // Reading outside is undefined, but an extract counts as speculatable.
    if (llvm::none_of(users, [](Operation *user) {
          return isa<tensor::ExtractOp>(user) || !isSpeculatable(user);
        }))
      return index;
    Value one = arith::ConstantIndexOp::create(at, 1);
    Value last = arith::SubIOp::create(at, extent, one);
    return arith::MinSIOp::create(at, index, last);
  };
  position.query =
      clampBelow(position.query, position.numQueries, region.getArgument(3));
  if (op.getKeys())
    position.key =
        clampBelow(position.key, position.numKeys, region.getArgument(4));
  return position;
}

Value StepBuilder::takesPart(ImplicitLocOpBuilder &at, Value query, Value key) {
  Value condition = isInMask(at, query, key);
  if (!masksElements(op.getScore()))
    return condition;
  Value keep = emitKeep(at, op.getScore(), readablePosition(at, query, key),
                        guardOf(at, query, key));
  if (!condition)
    return keep;
  return arith::AndIOp::create(at, condition, keep);
}

Value StepBuilder::scoreRegion(ImplicitLocOpBuilder &at, Value score,
                               Value query, Value key) {
  Value guard = guardOf(at, query, key);
  ScorePosition position = readablePosition(at, query, key);
  score = arith::MulFOp::create(at, score, emitConstant(at, scale));
  return emitScoreRegion(at, at.getLoc(), op.getScore(), score, position, guard,
                         [&](Operation &inner, const IRMapping &mapping) {
                           return asProduct(at, inner, mapping);
                         });
}

Value StepBuilder::modifiedScore(ImplicitLocOpBuilder &at, Value product,
                                 Value query, Value key) {
  Value score = product;
  if (hasScore())
    score = scoreRegion(at, score, query, key);
  if (!scalesLate())
    score = arith::MulFOp::create(
        at, score,
        emitConstant(at, hasScore() ? llvm::numbers::log2e : log2Scale));
  if (Value condition = takesPart(at, query, key))
    score = arith::SelectOp::create(at, condition, score,
                                    emitConstant(at, minusInfinity));
  return score;
}

Value StepBuilder::scores() {
  Value s = products();
  if (scalesLate() && !isMasked() && !op.getKeys())
    return s;
  return generic(
      {}, s, scoreMap(),
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value query = linalg::IndexOp::create(at, queryLoop());
        Value key = linalg::IndexOp::create(at, keyLoop());
        return {modifiedScore(at, args[0], query, key)};
      })[0];
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value StepBuilder::addValuesCarefully(Value p, Value values, Value acc) {
  AffineMap pMap = options.transposeScores ? map(3, {2, 0}) : map(3, {0, 2});
  return generic(
      {p, values}, acc, {pMap, map(3, {2, 1}), map(3, {0, 1})},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value query = linalg::IndexOp::create(at, 0);
        Value key = linalg::IndexOp::create(at, 2);
        Value condition = takesPart(at, query, key);
        Value term = arith::MulFOp::create(at, extendToF32(at, args[0]),
                                           extendToF32(at, args[1]));
        Value sum = arith::AddFOp::create(at, args[2], term);
        if (condition)
          sum = arith::SelectOp::create(at, condition, sum, args[2]);
        return {sum};
      })[0];
}

Value StepBuilder::isFinite(Value values) {
  auto look = [&]() -> Value {
    return IsFiniteOp::create(b, b.getI1Type(), values);
  };
  if (isMasked())
    return look();
  // Most tiles have all their keys.
  Value all = arith::ConstantIndexOp::create(b, keys);
  Value isWhole =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, op.getKeys(), all);
  auto choice = scf::IfOp::create(b, b.getI1Type(), isWhole,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(b, isWhole);
  b.setInsertionPointToStart(choice.elseBlock());
  scf::YieldOp::create(b, look());
  return choice.getResult(0);
}

Value StepBuilder::addValues(Value p, Value acc) {
  Value values = operand(op.getValue());
  if (auto type = cast<RankedTensorType>(values.getType());
      !type.getElementType().isF32())
    p = arith::TruncFOp::create(
        b, cast<RankedTensorType>(p.getType()).clone(type.getElementType()), p);
  auto product = [&] {
    AffineMap pMap = options.transposeScores ? map(3, {2, 0}) : map(3, {0, 2});
    return contract(p, values, acc, {pMap, map(3, {2, 1}), map(3, {0, 1})});
  };
  // Of keys that do not exist the values may be anything, too.
  auto pad = op.getValue().getDefiningOp<tensor::PadOp>();
  bool mayBeAnything = pad && op.getKeys() && isPaddedWithAnything(pad);
  if (!isMasked() && !mayBeAnything)
    return product();
  // A masked key has probability 0, but 0 * NaN is NaN: a tile with such values
  // takes the slow product that leaves masked elements out.
  if (!options.guardValues)
    return addValuesCarefully(p, values, acc);
  Value finite = isFinite(values);
  auto choice = scf::IfOp::create(b, acc.getType(), finite,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(b, product());
  b.setInsertionPointToStart(choice.elseBlock());
  scf::YieldOp::create(b, addValuesCarefully(p, values, acc));
  return choice.getResult(0);
}

Growth StepBuilder::grow(Value tileMax) {
  ValueRange growth = rows(
      tileMax, {op.getMax(), empty({queries})},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Growth growth = emitGrowth(at, args[1], scaledMax(at, args[0]));
        return {growth.max, growth.rescale};
      });
  return {growth[0], growth[1]};
}

Value StepBuilder::scaledAcc(Value factor) {
  // Where products are added to the accumulator outside of tensor cores,
  // addition and multiplication become one instruction.
  auto flags = op.getValue().getType().getElementType().isF32()
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
        return {emitIsFarAbove(at, args[1], scaledMax(at, args[0]))};
      })[0];
  Value any = AnyOp::create(b, b.getI1Type(), isFarAbove);
  auto choose = [&](TypeRange types, function_ref<SmallVector<Value>()> then,
                    function_ref<SmallVector<Value>()> otherwise) {
    auto choice = scf::IfOp::create(b, types, any, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.thenBlock());
    scf::YieldOp::create(b, then());
    b.setInsertionPointToStart(choice.elseBlock());
    scf::YieldOp::create(b, otherwise());
    return choice.getResults();
  };
  Type row = op.getMax().getType();
  ResultRange growth = choose(
      {row, row},
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
      op.getAcc().getType(),
      [&]() -> SmallVector<Value> { return {scaledAcc(growth[1])}; },
      [&]() -> SmallVector<Value> { return {op.getAcc()}; })[0];
  return {growth[0], growth[1], acc};
}

void StepBuilder::run() {
  Value x = scores();
  Value tileMax = generic(
      x, filled({queries}, minusInfinity), {scoreMap(), rowMap()},
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {arith::MaxNumFOp::create(at, args[1], args[0])};
      })[0];
  Rescaled state = isLazy() ? rescaleLazily(tileMax) : rescale(tileMax);
  Value max = state.max;
  Value shift =
      rows(max, empty({queries}),
           [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
             return {emitShift(at, args[0])};
           })[0];
  Value p = generic(
      shift, x, {rowMap(), scoreMap()},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        if (scalesLate())
          return {emitScaledExponential(at, args[1], log2Scale, args[0])};
        return {emitExponential(at, args[1], args[0])};
      })[0];
  auto multiply = [](ImplicitLocOpBuilder &at,
                     ValueRange args) -> SmallVector<Value> {
    return {arith::MulFOp::create(at, args[1], args[0])};
  };
  Value sum = generic(
      p, rows(state.factor, op.getSum(), multiply), {scoreMap(), rowMap()},
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {arith::AddFOp::create(at, args[1], args[0])};
      })[0];
  Value acc = addValues(p, state.acc ? state.acc : scaledAcc(state.factor));
  op->replaceAllUsesWith(ValueRange{acc, max, sum});
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
        [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          // log(0) is -inf, as is the maximum of a row without keys.
          Value max = arith::MulFOp::create(
              at, args[0], emitConstant(at, llvm::numbers::ln2));
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
    SmallVector<OnlineAttentionOp> steps;
    SmallVector<FinalizeOp> finalizes;
    SmallVector<CombineOp> combines;
    bool whole = false;
    auto refuse = [&](Operation *op) {
      op->emitOpError("can be decomposed only as a statically shaped tile of "
                      "rank 2; run flash-tile first");
      whole = true;
    };
    getOperation().walk([&](Operation *op) {
      if (auto step = dyn_cast<OnlineAttentionOp>(op)) {
        if (!step.isTile() || !step.getQuery().getType().hasStaticShape() ||
            !step.getKey().getType().hasStaticShape())
          return refuse(op);
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
    // A CPU has memory of its own for a padded tile, and reads all of it.
    if (transposeScores)
      getOperation().walk([](tensor::PadOp pad) {
        if (isPaddedWithAnything(pad))
          fillWithZeros(pad);
      });
    StepBuilder::QueryCache queryCache;
    DecomposeOptions options{transposeScores, guardValues};
    for (OnlineAttentionOp step : steps)
      StepBuilder(step, options, queryCache).run();
    for (FinalizeOp finalize : finalizes)
      decomposeFinalize(finalize);
    for (CombineOp combine : combines)
      if (failed(decomposeCombine(combine)))
        return signalPassFailure();
  }
};
} // namespace
