//===- DecomposeCombine.cpp - flash.combine as linalg on tiles ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One pass over the splits with the online softmax of their log-sum-exps. The
// time is that of reading memory, so several splits are read before the first
// is needed.
//
//===----------------------------------------------------------------------===//

#include "DecomposeCombine.h"

#include "TileBuilder.h"
#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "flash/Dialect/Flash/Utils/TileSlices.h"
#include "flash/Schedule/SplitKV.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace flash;

static constexpr double minusInfinity =
    -std::numeric_limits<double>::infinity();

namespace {
class CombineBuilder : TileBuilder {
public:
  CombineBuilder(CombineOp op, int64_t tileRows);
  void run();

private:
  /// The output and the log-sum-exp of one split.
  struct Split {
    Value out, lse;
  };
  SmallVector<int64_t> tileShape() { return {tileRows, valueDim}; }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  /// The tile of `shape` of one split of `splits`, which is rows, or rows and
  /// columns, of each split.
  Value readTile(Value splits, Value split, ArrayRef<int64_t> shape);
  Split read(Value split);
  /// The state (acc, max, sum) after some splits.
  SmallVector<Value> add(ValueRange state, ArrayRef<Split> splits);
  void replace(ValueRange state);
  /// The rows of `tile` that exist, in the type of `result`.
  Value existing(Value tile, OpResult result);

  CombineOp op;
  int64_t tileRows, valueDim;
  OpFoldResult rows;
  Value numSplits;
  int64_t splitsAtOnce;
  bool mayExceed = true; ///< Whether some splits of a step may not exist.
};
} // namespace

CombineBuilder::CombineBuilder(CombineOp op, int64_t tileRows)
    : TileBuilder(op), op(op), tileRows(tileRows),
      valueDim(op.getOuts().getType().getShape().back()) {
  SmallVector<OpFoldResult> sizes = getSizes(b, op.getLoc(), op.getOuts());
  rows = sizes[1];
  numSplits = getValueOrCreateConstantIndexOp(b, op.getLoc(), sizes[0]);
  splitsAtOnce = op.getStep().value_or(mostSplitsAtOnce);
  if (std::optional<int64_t> splits = getConstantIntValue(sizes[0])) {
    int64_t steps =
        std::max<int64_t>(llvm::divideCeil(*splits, splitsAtOnce), 1);
    // Each step has as many; splits that a single step leaves out would add
    // nothing.
    if (!op.getStep() || steps == 1)
      splitsAtOnce = std::max<int64_t>(llvm::divideCeil(*splits, steps), 1);
    mayExceed = *splits % splitsAtOnce != 0;
  }
}

Value CombineBuilder::readTile(Value splits, Value split,
                               ArrayRef<int64_t> shape) {
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> offsets = {split, zero}, tileSizes = {rows};
  if (shape.size() == 2) {
    offsets.push_back(zero);
    tileSizes.push_back(b.getIndexAttr(valueDim));
  }
  SmallVector<OpFoldResult> sizes(tileSizes);
  sizes.insert(sizes.begin(), one);
  SmallVector<int64_t> sliceShape(shape);
  sliceShape[0] = getConstantIntValue(rows).value_or(ShapedType::kDynamic);
  Value slice = extractPart(b, b.getLoc(), splits, offsets, sizes, sliceShape);
  return padToTile(b, b.getLoc(), slice, tileSizes, shape,
                   b.getF32FloatAttr(0.0));
}

CombineBuilder::Split CombineBuilder::read(Value split) {
  // Instead of a split that does not exist the last one is read, as one without
  // keys.
  Value exists;
  if (mayExceed) {
    Value last = arith::SubIOp::create(b, numSplits, index(1));
    exists = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, split, last);
    split = arith::MinSIOp::create(b, split, last);
  }
  Split result;
  result.lse = readTile(op.getLses(), split, tileRows);
  result.out = readTile(op.getOuts(), split, tileShape());
  if (!mayExceed)
    return result;
  Value term = arith::SelectOp::create(b, exists, emitConstant(b, 0.0),
                                       emitConstant(b, minusInfinity));
  result.lse = TileBuilder::rows(
      result.lse, empty(tileRows),
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {arith::AddFOp::create(at, args[0], term)};
      })[0];
  return result;
}

SmallVector<Value> CombineBuilder::add(ValueRange state,
                                       ArrayRef<Split> splits) {
  Value acc = state[0], max = state[1], sum = state[2];
  SmallVector<Value> lses;
  for (const Split &split : splits)
    lses.push_back(split.lse);
  Value added = lses.front();
  if (lses.size() > 1)
    added = TileBuilder::rows(
        lses, empty(tileRows),
        [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          Value max = args.front();
          for (Value lse : args.drop_front().drop_back())
            max = arith::MaxNumFOp::create(at, max, lse);
          return {max};
        })[0];
  ValueRange growth = TileBuilder::rows(
      added, {max, empty(tileRows)},
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Growth growth = emitGrowth(at, args[1], args[0]);
        return {growth.max, growth.rescale};
      });
  Value rescale = growth[1];
  Value shift = TileBuilder::rows(
      growth[0], empty(tileRows),
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {emitShift(at, args[0])};
      })[0];
  auto multiply = [](ImplicitLocOpBuilder &at,
                     ValueRange args) -> SmallVector<Value> {
    return {arith::MulFOp::create(at, args[1], args[0])};
  };
  AffineMap tile = map(2, {0, 1}), row = map(2, {0});
  sum = TileBuilder::rows(rescale, sum, multiply)[0];
  acc = generic(rescale, acc, {row, tile}, multiply)[0];
  for (const Split &split : splits) {
    Value weight = TileBuilder::rows(
        {split.lse, shift}, empty(tileRows),
        [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {emitExponential(at, args[0], args[1])};
        })[0];
    sum = TileBuilder::rows(
        weight, sum,
        [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {arith::AddFOp::create(at, args[1], args[0])};
        })[0];
    acc = generic(
        {split.out, weight}, acc, {tile, row, tile},
        [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {math::FmaOp::create(at, args[0], args[1], args[2])};
        })[0];
  }
  return {acc, growth[0], sum};
}

Value CombineBuilder::existing(Value tile, OpResult result) {
  auto type = cast<RankedTensorType>(result.getType());
  if (tile.getType() == type)
    return tile;
  SmallVector<OpFoldResult> sizes = {rows};
  if (type.getRank() == 2)
    sizes.push_back(b.getIndexAttr(valueDim));
  Value part = tensor::ExtractSliceOp::create(
      b, tile, SmallVector<OpFoldResult>(sizes.size(), b.getIndexAttr(0)),
      sizes, SmallVector<OpFoldResult>(sizes.size(), b.getIndexAttr(1)));
  return b.createOrFold<tensor::CastOp>(type, part);
}

void CombineBuilder::replace(ValueRange state) {
  Value acc = state[0], max = state[1], sum = state[2];
  Value inverse = TileBuilder::rows(
      sum, empty(tileRows),
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {emitInverseOfSum(at, args[0])};
      })[0];
  Type element = op.getOutput().getType().getElementType();
  AffineMap tile = map(2, {0, 1}), row = map(2, {0});
  Value output = generic(
      {acc, inverse}, empty(tileShape(), element), {tile, row, tile},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value quotient = arith::MulFOp::create(at, args[0], args[1]);
        return {truncateF32(at, element, quotient)};
      })[0];
  SmallVector<Value> results = {existing(output, op->getResult(0))};
  if (op.getLse()) {
    Value lse = TileBuilder::rows(
        {max, sum}, empty(tileRows),
        [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {arith::AddFOp::create(at, args[0],
                                        math::LogOp::create(at, args[1]))};
        })[0];
    results.push_back(existing(lse, op->getResult(1)));
  }
  op->replaceAllUsesWith(results);
}

void CombineBuilder::run() {
  auto loop = scf::ForOp::create(b, index(0), numSplits, index(splitsAtOnce),
                                 ValueRange{filled(tileShape(), 0.0),
                                            filled(tileRows, minusInfinity),
                                            filled(tileRows, 0.0)});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Split> splits;
    for (int64_t i = 0; i < splitsAtOnce; ++i)
      splits.push_back(read(
          b.createOrFold<arith::AddIOp>(loop.getInductionVar(), index(i))));
    scf::YieldOp::create(b, add(loop.getRegionIterArgs(), splits));
  }
  replace(loop.getResults());
  Value inputs[] = {op.getOuts(), op.getLses()};
  op.erase();
  for (Value input : inputs)
    if (Operation *slice = input.getDefiningOp();
        slice && isOpTriviallyDead(slice))
      slice->erase();
}

LogicalResult flash::decomposeCombine(CombineOp op) {
  FailureOr<int64_t> rows = getMostRows(op, op.getOuts(), 1);
  if (failed(rows))
    return failure();
  CombineBuilder(op, *rows).run();
  return success();
}
