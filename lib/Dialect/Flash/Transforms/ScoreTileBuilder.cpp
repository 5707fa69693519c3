//===- ScoreTileBuilder.cpp - The scores of one tile ----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreTileBuilder.h"

#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace flash;

ScoreTileBuilder::ScoreTileBuilder(StepOpInterface step,
                                   const DecomposeOptions &options,
                                   Transposed &transposed)
    : TileBuilder(step), step(step), options(options),
      queries(step.getQuery().getType().getDimSize(0)),
      keys(step.getKey().getType().getDimSize(0)),
      scale(step.getScale().convertToDouble()), transposed(transposed) {}

SmallVector<int64_t> ScoreTileBuilder::scoreShape() {
  SmallVector<int64_t> shape(2);
  shape[queryLoop()] = queries;
  shape[keyLoop()] = keys;
  return shape;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value ScoreTileBuilder::operand(Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (!options.transposeScores || type.getElementType().isF32())
    return tile;
  Value &wide = widened[tile];
  if (wide)
    return wide;
  AffineMap all = b.getMultiDimIdentityMap(2);
  return wide = generic(tile, empty(type.getShape()), {all, all},
                        [](ImplicitLocOpBuilder &at,
                           ValueRange args) -> SmallVector<Value> {
                          return {extendToF32(at, args[0])};
                        })[0];
}

Value ScoreTileBuilder::transpose(Value fixed) {
  Value &result = transposed[fixed];
  if (result)
    return result;
  // Before the loop, where the tile is defined.
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(fixed);
  auto type = cast<RankedTensorType>(fixed.getType());
  result = generic(
      fixed, empty({type.getDimSize(1), type.getDimSize(0)}),
      {map(2, {1, 0}), map(2, {0, 1})},
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {extendToF32(at, args[0])};
      })[0];
  return result;
}

Value ScoreTileBuilder::contract(Value a, Value other, Value sum,
                                 ArrayRef<AffineMap> maps, bool isInterleaved) {
  auto contract =
      linalg::ContractOp::create(b, sum.getType(), ValueRange{a, other}, sum,
                                 b.getAffineMapArrayAttr(maps));
  std::optional<Precision> precision = step.getPrecision();
  if (precision == Precision::TF32 || isInterleaved)
    FlashDialect::PrecisionAttrHelper(b.getContext())
        .setAttr(contract,
                 ProductPrecisionAttr::get(b.getContext(), *precision));
  return contract.getResult(0);
}

Value ScoreTileBuilder::products(Value fixed, Value stepped) {
  Value zero = filled(scoreShape(), 0.0);
  if (options.transposeScores) {
    Value rows = operand(stepped);
    return contract(rows, transpose(fixed), zero,
                    {map(3, {0, 2}), map(3, {2, 1}), map(3, {0, 1})});
  }
  return contract(fixed, stepped, zero,
                  {map(3, {0, 2}), map(3, {1, 2}), map(3, {0, 1})});
}

Value ScoreTileBuilder::addRowsCarefully(Value weights, Value rows, Value acc) {
  AffineMap ofWeights =
      options.transposeScores ? map(3, {2, 0}) : map(3, {0, 2});
  return generic(
      {weights, rows}, acc, {ofWeights, map(3, {2, 1}), map(3, {0, 1})},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value query = linalg::IndexOp::create(at, 0);
        Value key = linalg::IndexOp::create(at, 2);
        if (step.stepsOverQueries())
          std::swap(query, key);
        Value condition = takesPart(at, query, key);
        Value term = arith::MulFOp::create(at, extendToF32(at, args[0]),
                                           extendToF32(at, args[1]));
        Value sum = arith::AddFOp::create(at, args[2], term);
        if (condition)
          sum = arith::SelectOp::create(at, condition, sum, args[2]);
        return {sum};
      })[0];
}

Value ScoreTileBuilder::addRows(Value weights, Value stepped, Value acc) {
  Value rows = operand(stepped);
  if (auto type = cast<RankedTensorType>(rows.getType());
      !type.getElementType().isF32())
    weights = arith::TruncFOp::create(
        b,
        cast<RankedTensorType>(weights.getType()).clone(type.getElementType()),
        weights);
  // Of what a mask leaves out, values of 8 bits that are NaN make NaN.
  if (isa<Float8E4M3FNType>(getElementTypeOrSelf(rows)))
    return contract(weights, rows, acc,
                    {map(3, {0, 2}), map(3, {1, 2}), map(3, {0, 1})},
                    /*isInterleaved=*/true);
  auto product = [&] {
    AffineMap ofWeights =
        options.transposeScores ? map(3, {2, 0}) : map(3, {0, 2});
    return contract(weights, rows, acc,
                    {ofWeights, map(3, {2, 1}), map(3, {0, 1})});
  };
  // Rows that do not exist are zero.
  if (!isMasked())
    return product();
  // What is masked has weight 0, but 0 * NaN is NaN: a tile with such rows
  // takes the slow product that leaves masked elements out.
  if (!options.guardValues)
    return addRowsCarefully(weights, rows, acc);
  Value finite = choosePartial(
      [&] { return IsFiniteOp::create(b, b.getI1Type(), rows).getResult(); },
      [&] { return arith::ConstantIntOp::create(b, 1, 1).getResult(); });
  return choose(
      finite, [&]() -> SmallVector<Value> { return {product()}; },
      [&]() -> SmallVector<Value> {
        return {addRowsCarefully(weights, rows, acc)};
      })[0];
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

Value ScoreTileBuilder::choosePartial(function_ref<Value()> ofPartial,
                                      function_ref<Value()> ofWhole) {
  if (!partial)
    return ofPartial();
  llvm::SaveAndRestore whole(isWhole);
  return choose(
      partial, [&]() -> SmallVector<Value> { return {ofPartial()}; },
      [&]() -> SmallVector<Value> {
        isWhole = true;
        return {ofWhole()};
      })[0];
}

ScorePosition ScoreTileBuilder::positionOf(ImplicitLocOpBuilder &at,
                                           Value query, Value key) {
  auto value = [&](OpFoldResult entry) {
    return getValueOrCreateConstantIndexOp(at, at.getLoc(), entry);
  };
  SmallVector<OpFoldResult> first = step.getMixedPosition(),
                            extents = step.getMixedExtents();
  Value head = value(first[1]);
  if (step.getPackedHeads() > 1) {
    Value packed = arith::ConstantIndexOp::create(at, step.getPackedHeads());
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

Value ScoreTileBuilder::isInMask(ImplicitLocOpBuilder &at, Value query,
                                 Value key) {
  if (isWhole)
    return {};
  Value condition;
  if (step.getMask()) {
    Block *block = at.getInsertionBlock();
    Operation *before = block->empty() ? nullptr : &block->back();
    condition = emitMaskPredicate(at, at.getLoc(), *step.getMask(),
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
  if (!step.getCount() || step.getNeutralPadding())
    return condition;
  Value exists = arith::CmpIOp::create(at, arith::CmpIPredicate::slt,
                                       step.stepsOverQueries() ? query : key,
                                       step.getCount());
  if (!condition)
    return exists;
  return arith::AndIOp::create(at, condition, exists);
}

Value ScoreTileBuilder::asProduct(ImplicitLocOpBuilder &at, Operation &inner,
                                  const IRMapping &mapping) {
  auto quotient = dyn_cast<arith::DivFOp>(inner);
  APFloat divisor(0.0);
  if (step.getQuery().getType().getElementTypeBitWidth() != 16 || !quotient ||
      !quotient.getType().isF32() || !mapping.contains(quotient.getLhs()) ||
      !matchPattern(quotient.getRhs(), m_ConstantFloat(&divisor)))
    return {};
  double factor = 1.0 / divisor.convertToDouble();
  if (!APFloat(static_cast<float>(factor)).isNormal())
    return {};
  return arith::MulFOp::create(at, mapping.lookup(quotient.getLhs()),
                               emitConstant(at, factor));
}

Value ScoreTileBuilder::guardOf(ImplicitLocOpBuilder &at, Value query,
                                Value key) {
  if (!hasGuards(step.getScore()))
    return {};
  Value condition = isInMask(at, query, key);
  if (Value count = step.getFixedCount())
    return emitRowExists(at, at.getLoc(), condition,
                         step.stepsOverQueries() ? key : query, count);
  if (!condition || step.stepsOverQueries())
    return condition;
  ScorePosition position = positionOf(at, query, key);
  return emitRowExists(at, at.getLoc(), condition, position.query,
                       position.numQueries);
}

/// Whether the tile is a slice of a tensor with as many rows as there are: each
/// of its rows exists then.
static bool isSliceOfAll(Value tile, OpFoldResult extent) {
  auto slice = tile.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice)
    return false;
  RankedTensorType source = slice.getSourceType();
  int64_t rows = source.getRank() - 2;
  if (!source.isDynamicDim(rows))
    return getConstantIntValue(extent) == source.getDimSize(rows);
  auto size = dyn_cast<Value>(extent);
  auto dim = size ? size.getDefiningOp<tensor::DimOp>() : tensor::DimOp();
  return dim && dim.getSource() == slice.getSource() &&
         dim.getConstantIndex() == rows;
}

ScorePosition ScoreTileBuilder::readablePosition(ImplicitLocOpBuilder &at,
                                                 Value query, Value key) {
  Block &region = step.getScore().front();
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
  // All rows of the fixed tile are computed; of the other one it is counted
  // which exist.
  bool stepsOverQueries = step.stepsOverQueries();
  SmallVector<OpFoldResult> extents = step.getMixedExtents();
  bool isCounted = step.getCount() && !isWhole;
  if (stepsOverQueries ? isCounted : !isSliceOfAll(step.getQuery(), extents[0]))
    position.query =
        clampBelow(position.query, position.numQueries, region.getArgument(3));
  if (stepsOverQueries ? !isSliceOfAll(step.getKey(), extents[1]) : isCounted)
    position.key =
        clampBelow(position.key, position.numKeys, region.getArgument(4));
  return position;
}

Value ScoreTileBuilder::takesPart(ImplicitLocOpBuilder &at, Value query,
                                  Value key) {
  Value condition = isInMask(at, query, key);
  if (isWhole || !masksElements(step.getScore()))
    return condition;
  Value keep = emitKeep(at, step.getScore(), readablePosition(at, query, key),
                        guardOf(at, query, key));
  if (!condition)
    return keep;
  return arith::AndIOp::create(at, condition, keep);
}

Value ScoreTileBuilder::scoreRegion(ImplicitLocOpBuilder &at, Value product,
                                    Value query, Value key, IRMapping &values) {
  Value guard = guardOf(at, query, key);
  ScorePosition position = readablePosition(at, query, key);
  // What the region itself masks, it does not read for either.
  if (hasGuards(step.getScore()) && !isWhole)
    if (Value keep = emitKeep(at, step.getScore(), position, guard))
      guard = guard ? Value(arith::AndIOp::create(at, guard, keep)) : keep;
  Value score = arith::MulFOp::create(at, product, emitConstant(at, scale));
  return emitScoreValues(at, step.getScore(), score, position, guard, values,
                         [&](Operation &inner, const IRMapping &mapping) {
                           return asProduct(at, inner, mapping);
                         });
}
