//===- OnlineStep.cpp - The online softmax on register tiles --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnlineStep.h"

#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

RankedTensorType BlockTypes::fragment(int64_t columns, Type element) const {
  return RankedTensorType::get({queries, columns}, element,
                               tile::FragmentAttr::get(context, warps));
}

RankedTensorType BlockTypes::rows() const {
  return RankedTensorType::get({queries}, Float32Type::get(context),
                               tile::RowsAttr::get(context, warps));
}

RankedTensorType BlockTypes::lanes() const {
  return RankedTensorType::get({queries, 4}, Float32Type::get(context),
                               tile::LanesAttr::get(context, warps));
}

namespace {
constexpr double minusInfinity = -std::numeric_limits<double>::infinity();

/// Arithmetic on register tiles of f32.
struct Registers {
  OpBuilder &b;
  Location loc;
  const BlockTypes &types;

  Value splat(RankedTensorType type, double value) {
    auto element = b.getF32FloatAttr(value);
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(type, element));
  }
  Value scalar(double value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  Value broadcast(Value rows, Type type) {
    return tile::BroadcastOp::create(b, loc, type, rows);
  }
  /// 2 to the power of `lhs - rhs`.
  Value exp2OfDifference(Value lhs, Value rhs) {
    Value difference = arith::SubFOp::create(b, loc, lhs, rhs);
    return math::Exp2Op::create(b, loc, difference);
  }
  Value reduce(tile::Reduction kind, Value lanes) {
    return tile::ReduceOp::create(b, loc, types.rows(), kind, lanes);
  }
  /// The maximum in each lane of `x`; NaN counts as -inf and reaches the result
  /// through the sum.
  Value laneMaximum(Value x) {
    Value none = splat(types.lanes(), minusInfinity);
    return tile::FoldOp::create(b, loc, types.lanes(), tile::Reduction::Max, x,
                                none);
  }
  /// While a row has seen no score, its maximum is -inf and -inf - -inf is NaN.
  Value shiftOf(Value max) { return replace(max, minusInfinity, 0.0); }
  /// Applies `body` to each element of a fragment, its row and its column.
  Value mapElements(Value x, function_ref<Value(ValueRange)> body) {
    auto map = tile::MapOp::create(b, loc, x.getType(), x);
    OpBuilder::InsertionGuard guard(b);
    Block *block = b.createBlock(
        &map.getBody(), {},
        {b.getF32Type(), b.getIndexType(), b.getIndexType()}, {loc, loc, loc});
    tile::YieldOp::create(b, loc, body(block->getArguments()));
    eraseDeadOps(*block);
    return map;
  }
  /// `value`, or `replacement` where it equals `special`.
  Value replace(Value value, double special, double replacement) {
    auto type = cast<RankedTensorType>(value.getType());
    Value found = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                        value, splat(type, special));
    return arith::SelectOp::create(b, loc, found, splat(type, replacement),
                                   value);
  }
};

/// Emits one step.
class StepEmitter : Registers {
public:
  StepEmitter(OpBuilder &b, OnlineAttentionOp op, const BlockTypes &types,
              const StepInputs &inputs)
      : Registers{b, op.getLoc(), types}, op(op), inputs(inputs),
        scale(op.getScale().convertToDouble()) {}

  OnlineState run(const OnlineState &state);

private:
  bool hasScore() { return !op.getScore().empty(); }
  /// Whether the row maximum of the products, scaled, is that of the scores;
  /// the scale then joins the exponential's subtraction in one instruction.
  bool scalesLate() { return !hasScore() && scale > 0; }

  Value product(Value a, Value tile, Value c, bool transpose, Type type) {
    Value pending = tile::MmaAsyncOp::create(
        b, loc,
        tile::PendingType::get(b.getContext(), cast<RankedTensorType>(type)), a,
        tile, c, transpose, /*tf32=*/op.getPrecision() == Precision::TF32,
        /*warpgroup=*/false);
    return tile::MmaWaitOp::create(b, loc, type, pending);
  }
  /// What a tile does to the maximum of each row.
  struct Growth {
    Value max;
    /// What was summed up so far must be multiplied by this,
    Value rescale;
    /// where this holds; null if it always must.
    Value isNeeded;
  };
  Growth growMaximum(Value max, Value lanes);
  /// The new maximum and the factor.
  std::pair<Value, Value> grow(Value max, Value lanes);
  Value rescaled(Value acc, const Growth &growth);
  bool hasFeature(ScheduleFeatures feature) {
    std::optional<ScheduleAttr> schedule = op.getSchedule();
    return schedule && schedule->getValue().has(feature);
  }
  bool isLazy() { return hasFeature(ScheduleFeatures::LazyRescale); }
  /// Whether tiles end where memory does, whatever the number of keys.
  bool hasBulkCopies() { return hasFeature(ScheduleFeatures::SpecializeWarps); }
  ScorePosition positionOf(OpBuilder &nested, Value row, Value column);
  /// Whether the element at tile coordinates takes part, or null if all do.
  Value takesPart(OpBuilder &nested, Value row, Value column);
  /// Copies a quotient of the score's program by a constant as a product. It
  /// may differ in the last bit, which scores of 16-bit queries and keys do not
  /// have, and needs one instruction instead of ten with a branch.
  LogicalResult copyAsProduct(OpBuilder &nested, Operation &inner,
                              IRMapping &mapping);
  Value modifiedScore(OpBuilder &nested, Value product, Value row,
                      Value column);
  Value scores(Value products);
  /// Whether the values of keys that do not take part cannot change a sum in
  /// which their weights are 0.
  Value isHarmless(Value values);
  /// `acc` plus the product of the weights `p` and the values.
  Value weightedValues(Value p, Value values, Value acc);
  /// The same, one key after the other, leaving out the masked ones.
  Value carefulWeightedValues(Value p, Value values, Value acc);

  OnlineAttentionOp op;
  const StepInputs &inputs;
  double scale;
};
} // namespace

ScorePosition StepEmitter::positionOf(OpBuilder &nested, Value row,
                                      Value column) {
  auto value = [&](OpFoldResult entry) -> Value {
    if (auto constant = dyn_cast<Attribute>(entry))
      return arith::ConstantIndexOp::create(
          nested, loc, cast<IntegerAttr>(constant).getInt());
    return inputs.lookup(cast<Value>(entry));
  };
  SmallVector<OpFoldResult> at = op.getMixedPosition(),
                            of = op.getMixedExtents();
  return {value(at[0]),
          value(at[1]),
          arith::AddIOp::create(nested, loc, value(at[2]), row),
          arith::AddIOp::create(nested, loc, value(at[3]), column),
          value(of[0]),
          value(of[1])};
}

Value StepEmitter::takesPart(OpBuilder &nested, Value row, Value column) {
  Value condition;
  if (op.getMask()) {
    Block *block = nested.getInsertionBlock();
    Operation *before = block->empty() ? nullptr : &block->back();
    condition = emitMaskPredicate(nested, loc, *op.getMask(),
                                  positionOf(nested, row, column));
    // Positions are far from the ends of their type. With that a comparison of
    // sums becomes one of a thread's own value and a constant.
    for (Operation *op = before ? before->getNextNode() : &block->front(); op;
         op = op->getNextNode())
      if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op) &&
          op->getResult(0).getType().isIndex())
        op->setAttr("overflowFlags",
                    arith::IntegerOverflowFlagsAttr::get(
                        nested.getContext(), arith::IntegerOverflowFlags::nsw));
  }
  if (!op.getKeys())
    return condition;
  Value exists = arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::slt,
                                       column, inputs.lookup(op.getKeys()));
  if (!condition)
    return exists;
  return arith::AndIOp::create(nested, loc, condition, exists);
}

LogicalResult StepEmitter::copyAsProduct(OpBuilder &nested, Operation &inner,
                                         IRMapping &mapping) {
  auto quotient = dyn_cast<arith::DivFOp>(inner);
  APFloat divisor(0.0);
  if (op.getQuery().getType().getElementTypeBitWidth() != 16 || !quotient ||
      !quotient.getType().isF32() || !mapping.contains(quotient.getLhs()) ||
      !matchPattern(quotient.getRhs(), m_ConstantFloat(&divisor)))
    return failure();
  double factor = 1.0 / divisor.convertToDouble();
  if (!APFloat(static_cast<float>(factor)).isNormal())
    return failure();
  Value product = arith::MulFOp::create(
      nested, loc, mapping.lookup(quotient.getLhs()),
      arith::ConstantOp::create(nested, loc, nested.getF32FloatAttr(factor)));
  mapping.map(quotient.getResult(), product);
  return success();
}

Value StepEmitter::modifiedScore(OpBuilder &nested, Value score, Value row,
                                 Value column) {
  auto constant = [&](double value) {
    return arith::ConstantOp::create(nested, loc,
                                     nested.getF32FloatAttr(value));
  };
  if (hasScore()) {
    Block &region = op.getScore().front();
    ScorePosition position = positionOf(nested, row, column);
    Value guard;
    if (hasGuards(op.getScore()))
      if (Value condition = takesPart(nested, row, column))
        guard = emitRowExists(nested, loc, condition, position.query,
                              position.numQueries);
    // Padding may lie past the last query or key, where a captured tensor must
    // not be read.
    auto clampBelow = [&](Value index, Value extent, BlockArgument of) {
      llvm::SetVector<Operation *> users;
      getForwardSlice(of, &users);
      // Reading outside is undefined, but an extract counts as speculatable.
      if (llvm::none_of(users, [](Operation *user) {
            return isa<tensor::ExtractOp>(user) || !isSpeculatable(user);
          }))
        return index;
      Value one = arith::ConstantIndexOp::create(nested, loc, 1);
      Value last = arith::SubIOp::create(nested, loc, extent, one);
      return arith::MinSIOp::create(nested, loc, index, last).getResult();
    };
    Value query =
        clampBelow(position.query, position.numQueries, region.getArgument(3));
    Value key = position.key;
    if (op.getKeys())
      key = clampBelow(key, position.numKeys, region.getArgument(4));
    IRMapping mapping;
    score = arith::MulFOp::create(nested, loc, score, constant(scale));
    mapping.map(region.getArguments(),
                ValueRange{score, position.batch, position.head, query, key});
    for (Operation &inner : region.without_terminator())
      if (auto guarded = dyn_cast<GuardOp>(inner))
        mapping.map(guarded.getResult(),
                    emitGuard(nested, guarded,
                              mapping.contains(guarded.getValue())
                                  ? mapping.lookup(guarded.getValue())
                                  : inputs.lookup(guarded.getValue()),
                              guard));
      else if (failed(copyAsProduct(nested, inner, mapping)))
        inputs.copyScoreOp(nested, inner, mapping);
    Value yielded = cast<YieldOp>(region.getTerminator()).getResult();
    score = mapping.contains(yielded) ? mapping.lookup(yielded)
                                      : inputs.lookup(yielded);
  }
  if (!scalesLate())
    score = arith::MulFOp::create(
        nested, loc, score,
        constant(llvm::numbers::log2e * (hasScore() ? 1.0 : scale)));
  if (Value condition = takesPart(nested, row, column))
    score = arith::SelectOp::create(nested, loc, condition, score,
                                    constant(minusInfinity));
  return score;
}

Value StepEmitter::scores(Value products) {
  if (scalesLate() && !op.getMask() && !op.getKeys())
    return products;
  return mapElements(products, [&](ValueRange element) {
    return modifiedScore(b, element[0], element[1], element[2]);
  });
}

Value StepEmitter::carefulWeightedValues(Value p, Value values, Value acc) {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto loop = scf::ForOp::create(b, loc, index(0),
                                 index(op.getKey().getType().getDimSize(0)),
                                 index(1), acc);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value key = loop.getInductionVar();
  Value weights = tile::ColumnOp::create(b, loc, types.rows(), p, key);
  Value row = tile::LoadRowOp::create(b, loc, acc.getType(), values, key);
  Value terms =
      arith::MulFOp::create(b, loc, row, broadcast(weights, acc.getType()));
  terms = mapElements(terms, [&](ValueRange element) -> Value {
    Value keep = takesPart(b, element[1], key);
    if (!keep)
      return element[0];
    return arith::SelectOp::create(b, loc, keep, element[0], scalar(0.0));
  });
  Value next =
      arith::AddFOp::create(b, loc, loop.getRegionIterArgs()[0], terms);
  scf::YieldOp::create(b, loc, next);
  return loop.getResult(0);
}

Value StepEmitter::isHarmless(Value values) {
  auto isFinite = [&]() -> Value {
    return tile::IsFiniteOp::create(b, loc, b.getI1Type(), values,
                                    /*warps=*/IntegerAttr());
  };
  if (op.getMask())
    return isFinite();
  Value tileSize = arith::ConstantIndexOp::create(
      b, loc, op.getKey().getType().getDimSize(0));
  Value isWhole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge,
                                        inputs.lookup(op.getKeys()), tileSize);
  auto choice = scf::IfOp::create(b, loc, b.getI1Type(), isWhole,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(choice.thenBlock());
  scf::YieldOp::create(b, loc, isWhole);
  b.setInsertionPointToEnd(choice.elseBlock());
  scf::YieldOp::create(b, loc, isFinite());
  return choice.getResult(0);
}

Value StepEmitter::weightedValues(Value p, Value values, Value acc) {
  auto whole = [&](Value acc) {
    return product(p, values, acc, /*transpose=*/false, acc.getType());
  };
  // A masked key has weight 0, but 0 * NaN is NaN. Keys behind the last one are
  // zero; only bulk copies bring what lies in memory there.
  if (!op.getMask() && !(op.getKeys() && hasBulkCopies()))
    return whole(acc);
  Value finite = isHarmless(values);
  auto choice = scf::IfOp::create(b, loc, acc.getType(), finite,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  // Where warps have roles, the product comes behind the choice in any case, of
  // zeros if it has been computed with care: so it can overlap with others.
  bool always = hasBulkCopies();
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(choice.thenBlock());
    scf::YieldOp::create(b, loc, always ? acc : whole(acc));
    b.setInsertionPointToEnd(choice.elseBlock());
    Value sum = carefulWeightedValues(p, values, acc);
    if (always)
      tile::ClearOp::create(b, loc, values, types.warps);
    scf::YieldOp::create(b, loc, sum);
  }
  return always ? whole(choice.getResult(0)) : choice.getResult(0);
}

std::pair<Value, Value> StepEmitter::grow(Value max, Value lanes) {
  Value tileMax = reduce(tile::Reduction::Max, lanes);
  if (scalesLate())
    tileMax = arith::MulFOp::create(
        b, loc, tileMax, splat(types.rows(), scale * llvm::numbers::log2e));
  Value grown = arith::MaxNumFOp::create(b, loc, max, tileMax);
  return {grown, exp2OfDifference(max, shiftOf(grown))};
}

StepEmitter::Growth StepEmitter::growMaximum(Value max, Value lanes) {
  if (!isLazy()) {
    auto [grown, rescale] = grow(max, lanes);
    return {grown, rescale, Value()};
  }
  // Any number will do as the maximum, as long as neither the weights nor their
  // sum overflow: f16 holds 2^15.
  constexpr double threshold = 8.0;
  Value late = lanes;
  if (scalesLate())
    late = arith::MulFOp::create(
        b, loc, lanes, splat(types.lanes(), scale * llvm::numbers::log2e));
  Value bound =
      arith::AddFOp::create(b, loc, max, splat(types.rows(), threshold));
  Value isAbove = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, late,
                                        broadcast(bound, types.lanes()));
  Value isNeeded = tile::AnyOp::create(b, loc, b.getI1Type(), isAbove);
  auto choice =
      scf::IfOp::create(b, loc, TypeRange{types.rows(), types.rows()}, isNeeded,
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(choice.thenBlock());
  auto [grown, rescale] = grow(max, lanes);
  scf::YieldOp::create(b, loc, ValueRange{grown, rescale});
  b.setInsertionPointToEnd(choice.elseBlock());
  scf::YieldOp::create(b, loc, ValueRange{max, splat(types.rows(), 1.0)});
  return {choice.getResult(0), choice.getResult(1), isNeeded};
}

Value StepEmitter::rescaled(Value acc, const Growth &growth) {
  // Where products are added to the accumulator outside of the tensor cores,
  // addition and multiplication become one instruction.
  auto flags = op.getValue().getType().getElementType().isF32()
                   ? arith::FastMathFlags::contract
                   : arith::FastMathFlags::none;
  auto multiply = [&] {
    return arith::MulFOp::create(
        b, loc, acc, broadcast(growth.rescale, acc.getType()), flags);
  };
  if (!growth.isNeeded)
    return multiply();
  auto choice = scf::IfOp::create(b, loc, acc.getType(), growth.isNeeded,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(choice.thenBlock());
  scf::YieldOp::create(b, loc, multiply().getResult());
  b.setInsertionPointToEnd(choice.elseBlock());
  scf::YieldOp::create(b, loc, acc);
  return choice.getResult(0);
}

OnlineState StepEmitter::run(const OnlineState &state) {
  RankedTensorType tileType =
      types.fragment(op.getKey().getType().getDimSize(0));
  Value products = product(inputs.query, inputs.fetchKey(), Value(),
                           /*transpose=*/true, tileType);
  Value x = scores(products);
  double late = scale * llvm::numbers::log2e;
  OnlineState next;
  Growth growth = growMaximum(state.max, laneMaximum(x));
  next.max = growth.max;
  // Where products of warpgroups run meanwhile, in front of the exponentials:
  // so no branch divides these from the rounding of weights, and the assembler
  // can mix them. Otherwise behind them, where fewer registers are in use.
  Value acc = hasBulkCopies() ? rescaled(state.acc, growth) : Value();
  Value shift = shiftOf(next.max);
  Value p;
  if (scalesLate()) {
    Value minus = arith::NegFOp::create(b, loc, shift);
    Value exponent = math::FmaOp::create(b, loc, x, splat(tileType, late),
                                         broadcast(minus, tileType));
    p = math::Exp2Op::create(b, loc, exponent);
  } else {
    p = exp2OfDifference(x, broadcast(shift, tileType));
  }
  Value rescale = growth.rescale;
  Value sum = arith::MulFOp::create(b, loc, state.sum,
                                    broadcast(rescale, types.lanes()));
  next.sum =
      tile::FoldOp::create(b, loc, types.lanes(), tile::Reduction::Add, p, sum);
  if (!acc)
    acc = rescaled(state.acc, growth);
  Type element = op.getValue().getType().getElementType();
  if (!element.isF32())
    p = arith::TruncFOp::create(
        b, loc, types.fragment(tileType.getDimSize(1), element), p);
  next.acc = weightedValues(p, inputs.fetchValue(), acc);
  return next;
}

OnlineState flash::emitOnlineStep(OpBuilder &b, OnlineAttentionOp op,
                                  const BlockTypes &types,
                                  const OnlineState &state,
                                  const StepInputs &inputs) {
  return StepEmitter(b, op, types, inputs).run(state);
}

std::pair<Value, Value> flash::emitFinalize(OpBuilder &b, Location loc,
                                            const BlockTypes &types,
                                            const OnlineState &state,
                                            Type outputElement, bool withLse) {
  Registers r{b, loc, types};
  Value sum = r.reduce(tile::Reduction::Add, state.sum);
  // A row without keys has an accumulator of 0: any divisor but 0 will do.
  Value one = r.splat(types.rows(), 1.0);
  Value inverse = arith::DivFOp::create(b, loc, one, r.replace(sum, 0.0, 1.0));
  auto accType = cast<RankedTensorType>(state.acc.getType());
  Value output =
      arith::MulFOp::create(b, loc, state.acc, r.broadcast(inverse, accType));
  if (!outputElement.isF32())
    output = arith::TruncFOp::create(
        b, loc, types.fragment(accType.getDimSize(1), outputElement), output);
  if (!withLse)
    return {output, Value()};
  // log(0) is -inf, as is the maximum of a row without keys.
  Value max = arith::MulFOp::create(b, loc, state.max,
                                    r.splat(types.rows(), llvm::numbers::ln2));
  Value log = math::LogOp::create(b, loc, sum);
  return {output, arith::AddFOp::create(b, loc, max, log)};
}
