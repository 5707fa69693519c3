//===- Decompose.cpp - The online step of one tile as linalg --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scores are held transposed, keys by queries: s[j, i]. A vector of
// neighbouring elements then belongs to different queries, so that the maximum
// and the sum over keys need no reduction within a vector, and both products
// read the key and value tiles as they lie in memory:
//
//   s[j, i]  = sum_d k[j, d] * qt[d, i]    (the query tile is transposed once)
//   o[i, d] += sum_j p[j, i] * v[j, d]
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

namespace flash {
#define GEN_PASS_DEF_DECOMPOSE
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
/// Builds linalg on f32 tiles.
class TileBuilder {
public:
  TileBuilder(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  using Body = function_ref<Value(OpBuilder &, ValueRange)>;

  Value constant(OpBuilder &at, double value) {
    return arith::ConstantOp::create(at, loc, at.getF32FloatAttr(value));
  }
  Value empty(ArrayRef<int64_t> shape) {
    return tensor::EmptyOp::create(b, loc, shape, b.getF32Type());
  }
  Value zeros(ArrayRef<int64_t> shape) {
    return linalg::FillOp::create(b, loc, constant(b, 0.0), empty(shape))
        .getResult(0);
  }
  /// The map of `rank` loops to the loops `dims`.
  AffineMap map(unsigned rank, ArrayRef<unsigned> dims) {
    return AffineMap::getMultiDimMapWithTargets(rank, dims, b.getContext());
  }
  /// A linalg.generic with one result, reducing over `reductions`.
  Value generic(ValueRange inputs, Value init, ArrayRef<AffineMap> maps,
                ArrayRef<unsigned> reductions, Body body) {
    SmallVector<utils::IteratorType> iterators(maps[0].getNumDims(),
                                               utils::IteratorType::parallel);
    for (unsigned dim : reductions)
      iterators[dim] = utils::IteratorType::reduction;
    return linalg::GenericOp::create(
               b, loc, init.getType(), inputs, init, maps, iterators,
               [&](OpBuilder &nested, Location, ValueRange args) {
                 linalg::YieldOp::create(nested, loc, body(nested, args));
               })
        .getResult(0);
  }
  /// out[x, y] += lhs * rhs over the loops (x, y, z), z reduced.
  Value contract(Value lhs, Value rhs, Value init, ArrayRef<unsigned> lhsDims,
                 ArrayRef<unsigned> rhsDims) {
    return generic(
        {lhs, rhs}, init, {map(3, lhsDims), map(3, rhsDims), map(3, {0, 1})},
        {2}, [&](OpBuilder &nested, ValueRange args) -> Value {
          Value product = arith::MulFOp::create(nested, loc, args[0], args[1]);
          return arith::AddFOp::create(nested, loc, args[2], product);
        });
  }
  /// `tensor` as f32; a no-op on f32.
  Value toF32(Value tensor) {
    auto type = cast<RankedTensorType>(tensor.getType());
    if (type.getElementType().isF32())
      return tensor;
    AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
    return generic({tensor}, empty(type.getShape()), {identity, identity}, {},
                   [&](OpBuilder &nested, ValueRange args) {
                     return extend(nested, args[0]);
                   });
  }
  Value extend(OpBuilder &nested, Value scalar) {
    if (scalar.getType().isF32())
      return scalar;
    return arith::ExtFOp::create(nested, loc, nested.getF32Type(), scalar);
  }

  OpBuilder &b;
  Location loc;
};

/// Decomposes one tile of flash.online_attention.
class StepBuilder : TileBuilder {
public:
  /// Transposed query tiles with their scale, shared by all steps of a tile.
  using QueryCache = DenseMap<std::pair<Value, Attribute>, Value>;

  StepBuilder(OpBuilder &b, OnlineAttentionOp op, QueryCache &queryCache)
      : TileBuilder(b, op.getLoc()), op(op), queryCache(queryCache),
        queries(op.getQuery().getType().getDimSize(0)),
        keys(op.getKey().getType().getDimSize(0)),
        valueDim(op.getValue().getType().getDimSize(1)) {}

  void run();

private:
  bool hasScore() { return !op.getScore().empty(); }

  Value transposedQuery();
  Value scores();
  /// Where the element with the given tile coordinates is.
  ScorePosition positionOf(OpBuilder &nested, Value query, Value key);
  /// Whether the element with the given tile coordinates takes part, or null
  /// if all do.
  Value takesPart(OpBuilder &nested, Value query, Value key, bool withKeys);
  /// `index`, or the last below `extent`.
  Value clampBelow(OpBuilder &nested, Value index, Value extent) {
    Value one = arith::ConstantIndexOp::create(nested, loc, 1);
    Value last = arith::SubIOp::create(nested, loc, extent, one);
    return arith::MinSIOp::create(nested, loc, index, last);
  }
  Value modifiedScores(Value scores);
  Value valuesAreFinite(Value values);
  Value weightedValues(Value weights);

  OnlineAttentionOp op;
  QueryCache &queryCache;
  int64_t queries, keys, valueDim;
};
} // namespace

Value StepBuilder::transposedQuery() {
  // Without a score region the scores are scaled to base-2 logarithms at once.
  double scale = op.getScale().convertToDouble();
  if (!hasScore())
    scale *= llvm::numbers::log2e;
  Value &transposed = queryCache[{op.getQuery(), b.getF64FloatAttr(scale)}];
  if (transposed)
    return transposed;
  // Before the loop over keys, where the query tile is defined.
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(op.getQuery());
  int64_t headDim = op.getQuery().getType().getDimSize(1);
  transposed = generic({op.getQuery()}, empty({headDim, queries}),
                       {map(2, {1, 0}), map(2, {0, 1})}, {},
                       [&](OpBuilder &nested, ValueRange args) -> Value {
                         return arith::MulFOp::create(nested, loc,
                                                      extend(nested, args[0]),
                                                      constant(nested, scale));
                       });
  return transposed;
}

Value StepBuilder::scores() {
  return contract(toF32(op.getKey()), transposedQuery(), zeros({keys, queries}),
                  {0, 2}, {2, 1});
}

ScorePosition StepBuilder::positionOf(OpBuilder &nested, Value query,
                                      Value key) {
  auto value = [&](OpFoldResult entry) {
    return getValueOrCreateConstantIndexOp(nested, loc, entry);
  };
  SmallVector<OpFoldResult> at = op.getMixedPosition(),
                            of = op.getMixedExtents();
  return {value(at[0]),
          value(at[1]),
          arith::AddIOp::create(nested, loc, value(at[2]), query),
          arith::AddIOp::create(nested, loc, value(at[3]), key),
          value(of[0]),
          value(of[1])};
}

Value StepBuilder::takesPart(OpBuilder &nested, Value query, Value key,
                             bool withKeys) {
  Value condition;
  if (op.getMask())
    condition = emitMaskPredicate(nested, loc, *op.getMask(),
                                  positionOf(nested, query, key));
  if (withKeys && op.getKeys()) {
    Value exists = arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::slt,
                                         key, op.getKeys());
    condition = condition
                    ? arith::AndIOp::create(nested, loc, condition, exists)
                    : exists;
  }
  return condition;
}

Value StepBuilder::modifiedScores(Value scores) {
  if (!hasScore() && !op.getMask() && !op.getKeys())
    return scores;
  AffineMap identity = b.getMultiDimIdentityMap(2);
  return generic(
      {}, scores, {identity}, {}, [&](OpBuilder &nested, ValueRange args) {
        Value key = linalg::IndexOp::create(nested, loc, 0);
        Value query = linalg::IndexOp::create(nested, loc, 1);
        Value score = args[0];
        Value condition = takesPart(nested, query, key, /*withKeys=*/true);
        if (hasScore()) {
          // Padding may lie past the last query or key: a captured tensor must
          // not be read there.
          ScorePosition position = positionOf(nested, query, key);
          Value guard;
          if (condition && hasGuards(op.getScore()))
            guard = emitRowExists(nested, loc, condition, position.query,
                                  position.numQueries);
          position.query =
              clampBelow(nested, position.query, position.numQueries);
          position.key = clampBelow(nested, position.key, position.numKeys);
          score = emitScoreRegion(nested, loc, op.getScore(), score, position,
                                  guard);
          score = arith::MulFOp::create(nested, loc, score,
                                        constant(nested, llvm::numbers::log2e));
        }
        if (!condition)
          return score;
        Value minusInfinity =
            constant(nested, -std::numeric_limits<double>::infinity());
        return arith::SelectOp::create(nested, loc, condition, score,
                                       minusInfinity)
            .getResult();
      });
}

/// Whether no element of the value tile is NaN or infinite, as an i1: exactly
/// then 0 * v sums to something that equals itself.
Value StepBuilder::valuesAreFinite(Value values) {
  Value columns =
      generic({values}, zeros({valueDim}), {map(2, {0, 1}), map(2, {1})}, {0},
              [&](OpBuilder &nested, ValueRange args) -> Value {
                Value zero = arith::MulFOp::create(nested, loc, args[0],
                                                   constant(nested, 0.0));
                return arith::AddFOp::create(nested, loc, args[1], zero);
              });
  Value total =
      generic({columns}, zeros({}), {map(1, {0}), map(1, {})}, {0},
              [&](OpBuilder &nested, ValueRange args) -> Value {
                return arith::AddFOp::create(nested, loc, args[0], args[1]);
              });
  Value sum = tensor::ExtractOp::create(b, loc, total, ValueRange{});
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ORD, sum, sum);
}

Value StepBuilder::weightedValues(Value weights) {
  Value values = toF32(op.getValue());
  Value init = zeros({queries, valueDim});
  auto product = [&] {
    return contract(weights, values, init, {2, 0}, {2, 1});
  };
  if (!op.getMask())
    return product();
  // A masked key has weight 0, but 0 * NaN is NaN: a tile with such values
  // takes the slow product that leaves masked elements out.
  Value finite = valuesAreFinite(values);
  auto choice = scf::IfOp::create(b, loc, init.getType(), finite,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(b, loc, product());
  b.setInsertionPointToStart(choice.elseBlock());
  Value careful = generic(
      {weights, values}, init, {map(3, {2, 0}), map(3, {2, 1}), map(3, {0, 1})},
      {2}, [&](OpBuilder &nested, ValueRange args) -> Value {
        Value query = linalg::IndexOp::create(nested, loc, 0);
        Value key = linalg::IndexOp::create(nested, loc, 2);
        Value condition = takesPart(nested, query, key, /*withKeys=*/false);
        Value term = arith::MulFOp::create(nested, loc, args[0], args[1]);
        Value sum = arith::AddFOp::create(nested, loc, args[2], term);
        if (!condition)
          return sum;
        return arith::SelectOp::create(nested, loc, condition, sum, args[2]);
      });
  scf::YieldOp::create(b, loc, careful);
  return choice.getResult(0);
}

void StepBuilder::run() {
  AffineMap row = map(2, {1}), tile = map(2, {0, 1});
  AffineMap vector = b.getMultiDimIdentityMap(1);
  Value s = modifiedScores(scores());
  Value max = generic(
      {s}, op.getMax(), {tile, row}, {0},
      [&](OpBuilder &nested, ValueRange args) -> Value {
        // One max instruction; a NaN score is left to the sum.
        Value greater = arith::CmpFOp::create(
            nested, loc, arith::CmpFPredicate::OGT, args[0], args[1]);
        return arith::SelectOp::create(nested, loc, greater, args[0], args[1]);
      });
  // While a row has seen no score, its maximum is -inf and -inf - -inf is NaN.
  Value shift =
      generic({max}, empty({queries}), {vector, vector}, {},
              [&](OpBuilder &nested, ValueRange args) -> Value {
                Value minusInfinity =
                    constant(nested, -std::numeric_limits<double>::infinity());
                Value unseen = arith::CmpFOp::create(nested, loc,
                                                     arith::CmpFPredicate::OEQ,
                                                     args[0], minusInfinity);
                return arith::SelectOp::create(nested, loc, unseen,
                                               constant(nested, 0.0), args[0]);
              });
  auto exp2OfDifference = [&](OpBuilder &nested, Value lhs,
                              Value rhs) -> Value {
    Value difference = arith::SubFOp::create(nested, loc, lhs, rhs);
    return math::Exp2Op::create(nested, loc, difference);
  };
  Value rescale =
      generic({op.getMax(), shift}, empty({queries}), {vector, vector, vector},
              {}, [&](OpBuilder &nested, ValueRange args) {
                return exp2OfDifference(nested, args[0], args[1]);
              });
  Value weights = generic({shift}, s, {row, tile}, {},
                          [&](OpBuilder &nested, ValueRange args) {
                            return exp2OfDifference(nested, args[1], args[0]);
                          });
  // The sums of a tile are added to the state as wholes: error grows with the
  // number of tiles rather than of keys.
  Value tileSum =
      generic({weights}, zeros({queries}), {tile, row}, {0},
              [&](OpBuilder &nested, ValueRange args) -> Value {
                return arith::AddFOp::create(nested, loc, args[0], args[1]);
              });
  auto scaleAndAdd = [&](OpBuilder &nested, ValueRange args) -> Value {
    Value scaled = arith::MulFOp::create(nested, loc, args[2], args[1]);
    return arith::AddFOp::create(nested, loc, scaled, args[0]);
  };
  Value sum = generic({tileSum, rescale}, op.getSum(), {vector, vector, vector},
                      {}, scaleAndAdd);
  Value acc = generic({weightedValues(weights), rescale}, op.getAcc(),
                      {tile, map(2, {0}), tile}, {}, scaleAndAdd);
  op->replaceAllUsesWith(ValueRange{acc, max, sum});
  op.erase();
}

/// Decomposes one tile of flash.finalize.
static void decomposeFinalize(OpBuilder &b, FinalizeOp op) {
  TileBuilder t(b, op.getLoc());
  AffineMap tile = t.map(2, {0, 1}), row = t.map(2, {0});
  AffineMap vector = b.getMultiDimIdentityMap(1);
  Type elementType = op.getOutput().getType().getElementType();
  SmallVector<Value> results = {t.generic(
      {op.getAcc(), op.getSum()}, op.getOutputInit(), {tile, row, tile}, {},
      [&](OpBuilder &nested, ValueRange args) -> Value {
        Value zero = t.constant(nested, 0.0);
        Value quotient = arith::DivFOp::create(nested, t.loc, args[0], args[1]);
        Value empty = arith::CmpFOp::create(
            nested, t.loc, arith::CmpFPredicate::OEQ, args[1], zero);
        Value result =
            arith::SelectOp::create(nested, t.loc, empty, zero, quotient);
        if (elementType.isF32())
          return result;
        return arith::TruncFOp::create(nested, t.loc, elementType, result);
      })};
  if (op.getLseInit())
    results.push_back(t.generic(
        {op.getMax(), op.getSum()}, op.getLseInit(), {vector, vector, vector},
        {}, [&](OpBuilder &nested, ValueRange args) -> Value {
          // log(0) is -inf, as is the maximum of a row without keys.
          Value max = arith::MulFOp::create(
              nested, t.loc, args[0], t.constant(nested, llvm::numbers::ln2));
          Value log = math::LogOp::create(nested, t.loc, args[1]);
          return arith::AddFOp::create(nested, t.loc, max, log);
        }));
  op->replaceAllUsesWith(results);
  op.erase();
}

namespace {
struct Decompose : flash::impl::DecomposeBase<Decompose> {
  void runOnOperation() override {
    SmallVector<OnlineAttentionOp> steps;
    SmallVector<FinalizeOp> finalizes;
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
      }
    });
    if (whole)
      return signalPassFailure();
    OpBuilder b(&getContext());
    StepBuilder::QueryCache queryCache;
    for (OnlineAttentionOp step : steps) {
      b.setInsertionPoint(step);
      StepBuilder(b, step, queryCache).run();
    }
    for (FinalizeOp finalize : finalizes) {
      b.setInsertionPoint(finalize);
      decomposeFinalize(b, finalize);
    }
  }
};
} // namespace
