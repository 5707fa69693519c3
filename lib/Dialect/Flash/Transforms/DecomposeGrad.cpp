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
#include "flash/Dialect/Flash/Utils/TileSlices.h"
#include "flash/Schedule/Warpgroups.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

namespace {
class GradStepBuilder : ScoreTileBuilder {
public:
  GradStepBuilder(StepOpInterface step, Value lseLog2, Value delta,
                  const DecomposeOptions &options, Transposed &transposed)
      : ScoreTileBuilder(step, options, transposed), lseLog2(lseLog2),
        delta(delta) {}

  LogicalResult run(QueryGradStepOp op);
  LogicalResult run(KeyGradStepOp op, KeysOfSums &keysOfSums);
  LogicalResult run(CapturedGradStepOp op);

private:
  /// The probabilities of scores, in their memory if nobody else needs them.
  /// Where the mask reads memory, the probability of an element that takes no
  /// part is -0, which no exponential is: gradients test that, not the mask
  /// again.
  Value probabilities(Value s);
  /// The gradients of the scaled products: the scores `s` and the probabilities
  /// `p`, and the products `dp` of the values and the output's gradients.
  FailureOr<Value> scoreGrads(Value s, Value p, Value dp);
  /// The gradients of what the score region gives.
  Value modifiedScoreGrads(Value p, Value dp);
  Value modifiedScoreGrad(ImplicitLocOpBuilder &at, Value p, Value delta,
                          Value dp) {
    Value difference = arith::SubFOp::create(at, dp, delta);
    return arith::MulFOp::create(at, p, difference);
  }
  /// Whether an element of the probability `p` takes part, or null if all do.
  Value tookPart(ImplicitLocOpBuilder &at, Value p, Value query, Value key);
  /// Whether the gradient of its score is added up, or null if that of all is.
  Value isUsed(ImplicitLocOpBuilder &at, Value p, Value query, Value key);
  /// The keys that the gradient of the queries is a sum of. What is not finite
  /// is left out where this or another step with the same keys may leave some
  /// out: they have the weight 0 then, and 0 * NaN is NaN.
  Value getKeysOfSum(KeyGradStepOp op, KeysOfSums &keysOfSums);
  /// `sum`, a row for each query, plus the product of `weights`, which have the
  /// shape of scores, and the rows of keys. The sum may have its columns in
  /// parts, one below the other.
  Value addKeys(Value weights, Value keys, Value sum);
  /// A tile of scores as products take it, in the type of the operands.
  Value asFactor(Value x);
  /// The same in f32 again: until then it has half of the registers.
  Value rounded(Value x);
  /// A tile of scores in the type of the operands, with keys as rows.
  Value ofKeysAndQueries(Value x);
  Value zeroUnless(ImplicitLocOpBuilder &at, Value condition, Value value,
                   double zero = 0) {
    if (!condition)
      return value;
    return arith::SelectOp::create(at, condition, value,
                                   emitConstant(at, zero));
  }
  void replace(Operation *op, ValueRange results) {
    op->replaceAllUsesWith(results);
    op->erase();
  }

  Value lseLog2, delta;
  /// How many keys of the tile add to the gradients of queries; null if all do.
  Value usedKeys;
};
} // namespace

Value GradStepBuilder::tookPart(ImplicitLocOpBuilder &at, Value p, Value query,
                                Value key) {
  if (!readsToMask(step.getScore()))
    return takesPart(at, query, key);
  unsigned width = p.getType().getIntOrFloatBitWidth();
  Type bits = at.getIntegerType(width);
  Value minusZero = arith::ConstantOp::create(
      at, at.getIntegerAttr(bits, APInt::getSignMask(width)));
  return arith::CmpIOp::create(at, arith::CmpIPredicate::ne,
                               arith::BitcastOp::create(at, bits, p),
                               minusZero);
}

Value GradStepBuilder::isUsed(ImplicitLocOpBuilder &at, Value p, Value query,
                              Value key) {
  Value condition = tookPart(at, p, query, key);
  return usedKeys ? emitRowExists(at, at.getLoc(), condition, key, usedKeys)
                  : condition;
}

Value GradStepBuilder::probabilities(Value s) {
  auto exponential = [&](ImplicitLocOpBuilder &at, Value product,
                         Value lseLog2) -> SmallVector<Value> {
    Value query = linalg::IndexOp::create(at, queryLoop());
    Value key = linalg::IndexOp::create(at, keyLoop());
    double factor = scale * llvm::numbers::log2e;
    if (hasScore()) {
      IRMapping values;
      product = scoreRegion(at, product, query, key, values);
      factor = llvm::numbers::log2e;
    }
    // Products of f32 leave time to limit it.
    auto emit = step.getQuery().getType().getElementType().isF32()
                    ? emitProbability
                    : emitScaledExponential;
    Value p = emit(at, product, emitConstant(at, factor), lseLog2);
    return {zeroUnless(at, takesPart(at, query, key), p,
                       readsToMask(step.getScore()) ? -0.0 : 0.0)};
  };
  // The derivative of a score region is a function of the score.
  if (hasScore())
    return generic({s, lseLog2}, empty(scoreShape()),
                   {scoreMap(), rowMap(), scoreMap()},
                   [&](ImplicitLocOpBuilder &at, ValueRange args) {
                     return exponential(at, args[0], args[1]);
                   })[0];
  return generic(lseLog2, s, {rowMap(), scoreMap()},
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

Value GradStepBuilder::modifiedScoreGrads(Value p, Value dp) {
  return generic(
      {p, delta}, dp, {scoreMap(), rowMap(), scoreMap()},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value condition =
            isUsed(at, args[0], linalg::IndexOp::create(at, queryLoop()),
                   linalg::IndexOp::create(at, keyLoop()));
        return {zeroUnless(at, condition,
                           modifiedScoreGrad(at, args[0], args[1], args[2]))};
      })[0];
}

FailureOr<Value> GradStepBuilder::scoreGrads(Value s, Value p, Value dp) {
  if (!hasScore())
    return modifiedScoreGrads(p, dp);
  bool isDifferentiable = true;
  auto body = [&](ImplicitLocOpBuilder &at,
                  ValueRange args) -> SmallVector<Value> {
    Value query = linalg::IndexOp::create(at, queryLoop());
    Value key = linalg::IndexOp::create(at, keyLoop());
    IRMapping values;
    scoreRegion(at, args[0], query, key, values);
    FailureOr<ScoreGradient> gradient =
        emitScoreGradient(at, step.getScore(), values,
                          modifiedScoreGrad(at, args[1], args[2], args[3]),
                          isUsed(at, args[1], query, key));
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

/// Whether the tile is a copy of its first `rows` rows, and zeros.
static bool isPaddedFrom(Value tile, Value rows) {
  auto pad = tile.getDefiningOp<tensor::PadOp>();
  auto slice =
      pad ? pad.getSource().getDefiningOp<tensor::ExtractSliceOp>() : nullptr;
  return slice && llvm::is_contained(slice.getSizes(), rows);
}

/// Whether keys of the step may be left out.
static bool leavesKeysOut(KeyGradStepOp op) {
  return op.getMask() || masksElements(op.getScore()) ||
         (op.getKeys() && !isPaddedFrom(op.getKey(), op.getKeys()));
}

Value GradStepBuilder::getKeysOfSum(KeyGradStepOp op, KeysOfSums &keysOfSums) {
  TypedValue<RankedTensorType> keys = op.getKey();
  Value &known = keysOfSums[keys];
  if (known)
    return known;
  known = keys;
  if (llvm::none_of(keys.getUsers(), [](Operation *user) {
        auto step = dyn_cast<KeyGradStepOp>(user);
        return step && leavesKeysOut(step);
      }))
    return known;
  // Before the loop, where the tile is defined.
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(keys);
  return known = ZeroNonfiniteOp::create(b, keys);
}

Value GradStepBuilder::addKeys(Value weights, Value keys, Value sum) {
  keys = operand(keys);
  if (auto type = cast<RankedTensorType>(keys.getType());
      !type.getElementType().isF32())
    weights = arith::TruncFOp::create(
        b,
        cast<RankedTensorType>(weights.getType()).clone(type.getElementType()),
        weights);
  auto type = cast<RankedTensorType>(sum.getType());
  int64_t queries = step.getQuery().getType().getDimSize(0),
          columns = type.getDimSize(1);
  auto emit = [&](Value keys, Value sum, unsigned numParts) -> Value {
    // Loops over parts, if there are several, what the rows and the columns of
    // the sum are, and keys.
    unsigned query = numParts, column = query + 1, key = query + 2,
             loops = key + 1;
    SmallVector<unsigned> dims(2), ofKeys = {key}, ofSum;
    dims[queryLoop()] = query;
    dims[keyLoop()] = key;
    for (unsigned part = 0; part < numParts; ++part) {
      ofKeys.push_back(part);
      ofSum.push_back(part);
    }
    ofKeys.push_back(column);
    ofSum.append({query, column});
    return contract(weights, keys, sum,
                    {map(loops, dims), map(loops, ofKeys), map(loops, ofSum)});
  };
  int64_t parts = type.getDimSize(0) / queries;
  if (parts == 1)
    return emit(keys, sum, 0);
  auto keyType = cast<RankedTensorType>(keys.getType());
  SmallVector<ReassociationIndices> ofColumns = {{0}, {1, 2}},
                                    ofRows = {{0, 1}, {2}};
  Value keysInParts = tensor::ExpandShapeOp::create(
      b, keyType.clone({keyType.getDimSize(0), parts, columns}), keys,
      ofColumns);
  sum = tensor::ExpandShapeOp::create(b, type.clone({parts, queries, columns}),
                                      sum, ofRows);
  return tensor::CollapseShapeOp::create(b, type, emit(keysInParts, sum, 1),
                                         ofRows);
}

Value GradStepBuilder::asFactor(Value x) {
  auto type = cast<RankedTensorType>(x.getType());
  Type element = getElementTypeOrSelf(step.getQuery().getType());
  return element.isF32()
             ? x
             : arith::TruncFOp::create(b, type.clone(element), x).getResult();
}

Value GradStepBuilder::rounded(Value x) {
  Value factor = asFactor(x);
  return factor == x ? x : arith::ExtFOp::create(b, x.getType(), factor);
}

Value GradStepBuilder::ofKeysAndQueries(Value x) {
  x = asFactor(x);
  auto type = cast<RankedTensorType>(x.getType());
  if (keyLoop() == 0)
    return x;
  SmallVector<int64_t> shape(llvm::reverse(type.getShape()));
  return generic(
      x, empty(shape, type.getElementType()), {map(2, {1, 0}), map(2, {0, 1})},
      [](ImplicitLocOpBuilder &, ValueRange args) -> SmallVector<Value> {
        return {args[0]};
      })[0];
}

LogicalResult GradStepBuilder::run(KeyGradStepOp op, KeysOfSums &keysOfSums) {
  Value keyGrad = op.getKeyGrad(), valueGrad = op.getValueGrad(),
        queryGrad = op.getQueryGrad(), scoreGrad;
  if (queryGrad)
    usedKeys = op.getKeys();
  bool ofKeys = queryGrad || !op.getKeyGradOut().use_empty(),
       ofValues = !op.getValueGradOut().use_empty();
  Value s = products(op.getKey(), op.getQuery());
  Value p = probabilities(s);
  Value dp;
  if (ofKeys)
    dp = products(op.getValue(), op.getOutputGrad());
  // A choice of products for masked rows has no registers for dP or dQ beside
  // the other gradients, and nothing has beside wide ones.
  int64_t columns = op.getKey().getType().getDimSize(1) +
                    op.getValue().getType().getDimSize(1);
  bool isWide =
      queryGrad && !options.transposeScores && areGradientsWide(columns);
  bool isLate = queryGrad && (isWide || isMasked());
  if (ofValues && !isLate)
    valueGrad = addRows(p, op.getOutputGrad(), valueGrad);
  if (ofKeys) {
    FailureOr<Value> dx = scoreGrads(s, isWide ? rounded(p) : p, dp);
    if (failed(dx))
      return failure();
    if (op.getScoreGrads())
      scoreGrad = ofKeysAndQueries(*dx);
    auto addToQueries = [&] {
      queryGrad = addKeys(*dx, getKeysOfSum(op, keysOfSums), queryGrad);
    };
    // dK is computed while a tile of dQ goes to the warps that add it up.
    if (queryGrad && !isLate)
      addToQueries();
    if (isLate)
      valueGrad = addRows(p, op.getOutputGrad(), valueGrad);
    keyGrad = addRows(*dx, op.getQuery(), keyGrad);
    if (isLate)
      addToQueries();
  }
  SmallVector<Value> results = {keyGrad, valueGrad};
  if (queryGrad)
    results.push_back(queryGrad);
  if (op.getScoreGrads())
    results.push_back(scoreGrad);
  replace(op, results);
  return success();
}

LogicalResult GradStepBuilder::run(CapturedGradStepOp op) {
  // What does not get into the scores has the gradient 0.
  if (!hasScore()) {
    replace(op, op.getSum());
    return success();
  }
  Value query = op.getQuery(), key = op.getKey(), value = op.getValue(),
        outputGrad = op.getOutputGrad();
  bool overQueries = op.getOverQueries();
  Value s = overQueries ? products(key, query) : products(query, key);
  Value p = probabilities(s);
  Value dp =
      overQueries ? products(value, outputGrad) : products(outputGrad, value);
  SmallVector<Operation *> all = op.getAllReads();
  llvm::SmallPtrSet<Operation *, 4> wanted;
  for (int64_t read : op.getReads())
    wanted.insert(all[read]);
  bool isDifferentiable = true;
  auto gradientOfReads = [&](ImplicitLocOpBuilder &at, ValueRange args) {
    Value query = linalg::IndexOp::create(at, queryLoop());
    Value key = linalg::IndexOp::create(at, keyLoop());
    IRMapping values;
    scoreRegion(at, args[0], query, key, values);
    Value condition = tookPart(at, args[1], query, key);
    // What is counted must be in the existing rows of the fixed tile, too.
    if (Value count = op.getFixedCount())
      condition = emitRowExists(at, at.getLoc(), condition,
                                overQueries ? key : query, count);
    FailureOr<ScoreGradient> gradient =
        emitScoreGradient(at, op.getScore(), values,
                          modifiedScoreGrad(at, args[1], args[2], args[3]),
                          condition, op.getCaptured());
    isDifferentiable = succeeded(gradient);
    Value sum;
    if (isDifferentiable)
      for (const ReadGradient &read : gradient->reads)
        if (wanted.contains(read.read)) {
          Value term = extendToF32(at, read.gradient);
          sum = sum ? arith::AddFOp::create(at, sum, term).getResult() : term;
        }
    return sum ? sum : emitConstant(at, 0);
  };
  auto add = [](ImplicitLocOpBuilder &at,
                ValueRange args) -> SmallVector<Value> {
    return {arith::AddFOp::create(at, args[1], args[0])};
  };
  Value gradient = generic(
      {s, p, delta}, dp, {scoreMap(), scoreMap(), rowMap(), scoreMap()},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {gradientOfReads(at, args)};
      })[0];
  if (!isDifferentiable)
    return failure();
  // The sum has the rows of the fixed tile.
  bool isOfRows = cast<RankedTensorType>(op.getSum().getType()).getRank() == 1;
  AffineMap ofSum =
      isOfRows ? map(2, {fixedLoop()}) : map(2, {fixedLoop(), 1 - fixedLoop()});
  replace(op, generic(gradient, op.getSum(), {scoreMap(), ofSum}, add)[0]);
  return success();
}

LogicalResult
flash::decomposeGradStep(QueryGradStepOp op, const DecomposeOptions &options,
                         ScoreTileBuilder::Transposed &transposed) {
  return GradStepBuilder(op, op.getLseLog2(), op.getDelta(), options,
                         transposed)
      .run(op);
}

LogicalResult flash::decomposeGradStep(KeyGradStepOp op,
                                       const DecomposeOptions &options,
                                       ScoreTileBuilder::Transposed &transposed,
                                       KeysOfSums &keysOfSums) {
  return GradStepBuilder(op, op.getLseLog2(), op.getDelta(), options,
                         transposed)
      .run(op, keysOfSums);
}

LogicalResult
flash::decomposeGradStep(CapturedGradStepOp op, const DecomposeOptions &options,
                         ScoreTileBuilder::Transposed &transposed) {
  return GradStepBuilder(op, op.getLseLog2(), op.getDelta(), options,
                         transposed)
      .run(op);
}
