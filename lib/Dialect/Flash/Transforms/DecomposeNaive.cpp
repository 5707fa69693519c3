//===- DecomposeNaive.cpp - Attention as scores, softmax and product ------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NaiveBuilder.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "flash/Dialect/Flash/Utils/TileSlices.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace flash {
#define GEN_PASS_DEF_DECOMPOSENAIVE
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
/// The scores that exist at a time, and what they are computed from.
struct Piece : NaivePosition {
  /// `[lead..., rows, D]`, `[keyLead..., Nk, D]` and `[keyLead..., Nk, Dv]`.
  Value query, key, value;
  /// Where the key and value are read, by the leading loops.
  SmallVector<AffineExpr> keyLead;
  /// Where to write a block's results; null to make new tensors.
  Value output, lse;
};

class NaiveAttention : NaiveBuilder {
public:
  explicit NaiveAttention(AttentionOp op) : NaiveBuilder(op), attention(op) {}
  SmallVector<Value> emitWhole();
  SmallVector<Value> emitInBlocks(int64_t rowBlock);

private:
  SmallVector<Value> emitPiece(const Piece &piece);
  Value repeatHeads(Value tensor);
  OpFoldResult getKeysOf(Value batch, Value firstQuery);

  /// The maximum of a row as subtracted from its scores: a row that has no
  /// finite score must not compute inf - inf.
  Value shift(OpBuilder &nested, Location loc, Value max) {
    Value isEmpty = arith::CmpFOp::create(
        nested, loc, arith::CmpFPredicate::OEQ, max, minusInfinity(nested));
    return arith::SelectOp::create(nested, loc, isEmpty, constant(nested, 0.0),
                                   max);
  }
  Value zeroIfEmpty(OpBuilder &nested, Location loc, Value sum, Value value) {
    Value zero = constant(nested, 0.0);
    Value isEmpty = arith::CmpFOp::create(nested, loc,
                                          arith::CmpFPredicate::OEQ, sum, zero);
    return arith::SelectOp::create(nested, loc, isEmpty, zero, value);
  }

  AttentionOp attention;
};
} // namespace

SmallVector<Value> NaiveAttention::emitPiece(const Piece &piece) {
  unsigned lead = piece.lead;
  unsigned rowLoops = lead + 1, scoreLoops = lead + 2, productLoops = lead + 3;
  auto dim = [&](unsigned position) { return b.getAffineDimExpr(position); };
  auto dims = [&](unsigned count) {
    SmallVector<AffineExpr> result;
    for (unsigned d = 0; d < count; ++d)
      result.push_back(dim(d));
    return result;
  };
  auto with = [](ArrayRef<AffineExpr> exprs, ArrayRef<AffineExpr> more) {
    SmallVector<AffineExpr> result(exprs);
    llvm::append_range(result, more);
    return result;
  };
  SmallVector<AffineExpr> row = dims(rowLoops), score = dims(scoreLoops);
  SmallVector<utils::IteratorType> rowIterators(rowLoops, parallel);
  SmallVector<utils::IteratorType> scoreIterators(scoreLoops, parallel);
  SmallVector<utils::IteratorType> productIterators(productLoops, parallel);
  productIterators[lead + 1] = reduction;
  AffineMap rowOfScore = map(scoreLoops, row);
  AffineMap scoreMap = map(scoreLoops, score);
  AffineMap rowMap = map(rowLoops, row);

  SmallVector<OpFoldResult> querySizes =
      tensor::getMixedSizes(b, loc, piece.query);
  SmallVector<OpFoldResult> keySizes = tensor::getMixedSizes(b, loc, piece.key);
  OpFoldResult keys = keySizes[keySizes.size() - 2];
  SmallVector<OpFoldResult> rowSizes(querySizes);
  rowSizes.pop_back();
  auto sized = [&](OpFoldResult last) {
    SmallVector<OpFoldResult> sizes(rowSizes);
    sizes.push_back(last);
    return sizes;
  };
  Value blockLength;
  if (op.getLengths() && piece.batch)
    blockLength =
        tensor::ExtractOp::create(b, loc, op.getLengths(), piece.batch);

  // The scores.
  auto contract = arith::FastMathFlags::contract;
  Value scores = generic(
      {map(productLoops, with(row, dim(lead + 1))),
       map(productLoops, with(piece.keyLead, {dim(lead + 1), dim(lead + 2)})),
       map(productLoops, with(row, dim(lead + 2)))},
      productIterators, {piece.query, transposed(piece.key)},
      fill(sized(keys), 0.0),
      [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
        Value product = arith::MulFOp::create(
            nested, loc, widen(nested, loc, args[0]), args[1], contract);
        return arith::AddFOp::create(nested, loc, args[2], product, contract);
      });
  scores = generic(
      {scoreMap}, scoreIterators, {}, scores,
      [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
        ScorePosition at = position(nested, loc, piece, /*withKey=*/true);
        Value scaled =
            arith::MulFOp::create(nested, loc, args[0], scale(nested));
        Value inMask = isInMask(nested, loc, blockLength, at);
        Value keep = takesPart(nested, loc, inMask, at);
        Value modified =
            emitScoreRegion(nested, loc, op.getScore(), scaled, at, keep);
        if (!keep)
          return modified;
        return arith::SelectOp::create(nested, loc, keep, modified,
                                       minusInfinity(nested));
      });

  // Their softmax.
  SmallVector<utils::IteratorType> reduceIterators(scoreIterators);
  reduceIterators.back() = reduction;
  Value max;
  // A query that does not exist has no sink, either.
  auto logitOf = [&](OpBuilder &nested) -> Value {
    ScorePosition at = position(nested, loc, piece, /*withKey=*/false);
    Value logit = sink(nested, loc, at.head);
    if (!op.getQueryLengths())
      return logit;
    Value queries =
        tensor::ExtractOp::create(nested, loc, op.getQueryLengths(), at.batch);
    Value exists = emitLengthPredicate(nested, loc, {}, queries, at.query);
    return arith::SelectOp::create(nested, loc, exists, logit,
                                   minusInfinity(nested));
  };
  if (op.getSink())
    max = generic({rowMap}, rowIterators, {}, empty(rowSizes, f32),
                  [&](OpBuilder &nested, Location, ValueRange) {
                    return logitOf(nested);
                  });
  else
    max = fill(rowSizes, -std::numeric_limits<double>::infinity());
  max =
      generic({scoreMap, rowOfScore}, reduceIterators, scores, max,
              [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
                return arith::MaximumFOp::create(nested, loc, args[1], args[0]);
              });
  Value exps =
      generic({rowOfScore, scoreMap}, scoreIterators, max, scores,
              [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
                Value shifted = arith::SubFOp::create(
                    nested, loc, args[1], shift(nested, loc, args[0]));
                return math::ExpOp::create(nested, loc, shifted);
              });
  Value sum;
  if (op.getSink())
    sum =
        generic({rowMap, rowMap}, rowIterators, max, empty(rowSizes, f32),
                [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
                  Value shifted =
                      arith::SubFOp::create(nested, loc, logitOf(nested),
                                            shift(nested, loc, args[0]));
                  return math::ExpOp::create(nested, loc, shifted);
                });
  else
    sum = fill(rowSizes, 0.0);
  sum = generic({scoreMap, rowOfScore}, reduceIterators, exps, sum,
                [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
                  return arith::AddFOp::create(nested, loc, args[1], args[0],
                                               arith::FastMathFlags::reassoc);
                });
  auto normalize = [&](OpBuilder &nested, Location loc, Value exp,
                       Value sum) -> Value {
    Value quotient = arith::DivFOp::create(nested, loc, exp, sum);
    return narrow(nested, loc, zeroIfEmpty(nested, loc, sum, quotient));
  };
  Value probabilities;
  if (elementType.isF32())
    probabilities =
        generic({rowOfScore, scoreMap}, scoreIterators, sum, exps,
                [&](OpBuilder &nested, Location loc, ValueRange args) {
                  return normalize(nested, loc, args[1], args[0]);
                });
  else
    probabilities =
        generic({scoreMap, rowOfScore, scoreMap}, scoreIterators, {exps, sum},
                empty(sized(keys), elementType),
                [&](OpBuilder &nested, Location loc, ValueRange args) {
                  return normalize(nested, loc, args[0], args[1]);
                });

  // Their product with the value. An element that does not take part has
  // probability 0, but 0 times its value may be NaN.
  OpFoldResult valueDim = b.getIndexAttr(op.getValueDim());
  Value product = generic(
      {map(productLoops, score),
       map(productLoops, with(piece.keyLead, {dim(lead + 1), dim(lead + 2)})),
       map(productLoops, with(row, dim(lead + 2)))},
      productIterators, {probabilities, piece.value},
      fill(sized(valueDim), 0.0),
      [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
        Value term =
            arith::MulFOp::create(nested, loc, widen(nested, loc, args[0]),
                                  widen(nested, loc, args[1]), contract);
        ScorePosition at = position(nested, loc, piece, /*withKey=*/true);
        Value keep =
            takesPart(nested, loc, isInMask(nested, loc, blockLength, at), at);
        if (keep)
          term = arith::SelectOp::create(nested, loc, keep, term,
                                         constant(nested, 0.0));
        return arith::AddFOp::create(nested, loc, args[2], term, contract);
      });

  // A row without any finite score is zero whatever the values are.
  Value output =
      piece.output ? piece.output : empty(sized(valueDim), elementType);
  SmallVector<Value> results = {generic(
      {scoreMap, rowOfScore, scoreMap}, scoreIterators, {product, sum}, output,
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        return narrow(nested, loc, zeroIfEmpty(nested, loc, args[1], args[0]));
      })};
  if (attention.getLse())
    results.push_back(
        generic({rowMap, rowMap, rowMap}, rowIterators, {max, sum},
                piece.lse ? piece.lse : empty(rowSizes, f32),
                [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
                  Value logSum = math::LogOp::create(nested, loc, args[1]);
                  return arith::AddFOp::create(nested, loc, args[0], logSum);
                }));
  return results;
}

/// A copy of the key or value with one head per query head.
Value NaiveAttention::repeatHeads(Value tensor) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  sizes[1] = tensor::getMixedSize(b, loc, op.getQuery(), 1);
  return generic({b.getMultiDimIdentityMap(4)},
                 SmallVector<utils::IteratorType>(4, parallel), {},
                 empty(sizes, elementType),
                 [&](OpBuilder &nested, Location loc, ValueRange) -> Value {
                   SmallVector<Value> at;
                   for (unsigned d = 0; d < 4; ++d)
                     at.push_back(linalg::IndexOp::create(nested, loc, d));
                   at[1] = keyHeadOf(nested, loc, at[1]);
                   return tensor::ExtractOp::create(nested, loc, tensor, at);
                 });
}

SmallVector<Value> NaiveAttention::emitWhole() {
  int64_t queryHeads = op.getQuery().getType().getDimSize(1);
  int64_t keyHeads = op.getKey().getType().getDimSize(1);
  AffineExpr batch = b.getAffineDimExpr(0), head = b.getAffineDimExpr(1);
  Piece piece;
  piece.query = op.getQuery();
  piece.key = op.getKey();
  piece.value = op.getValue();
  piece.lead = 2;
  if (keyHeads == 1) {
    piece.keyLead = {batch, b.getAffineConstantExpr(0)};
    return emitPiece(piece);
  }
  if (!ShapedType::isDynamic(queryHeads) && !ShapedType::isDynamic(keyHeads)) {
    piece.keyLead = {batch, head.floorDiv(queryHeads / keyHeads)};
    return emitPiece(piece);
  }

  // Affine maps cannot divide by a size that is not known here, so every query
  // head gets a copy of its key head.
  piece.keyLead = {batch, head};
  piece.key = repeatHeads(op.getKey());
  piece.value = repeatHeads(op.getValue());
  return emitPiece(piece);
}

/// How many keys the batch has, and 0 for a block of queries that do not exist:
/// of batches that are sequences of their own, most rows may be beyond them.
OpFoldResult NaiveAttention::getKeysOf(Value batch, Value firstQuery) {
  OpFoldResult keys =
      flash::getLength(b, loc, tensor::getMixedSize(b, loc, op.getKey(), 2),
                       op.getKeyLengths(), batch);
  if (!op.getQueryLengths())
    return keys;
  Value queries = getValueOrCreateConstantIndexOp(
      b, loc,
      flash::getLength(b, loc, numQueries, op.getQueryLengths(), batch));
  Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                       firstQuery, queries);
  return arith::SelectOp::create(b, loc, exists,
                                 getValueOrCreateConstantIndexOp(b, loc, keys),
                                 arith::ConstantIndexOp::create(b, loc, 0))
      .getResult();
}

SmallVector<Value> NaiveAttention::emitInBlocks(int64_t rowBlock) {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, loc, op.getQuery());
  sizes[3] = b.getIndexAttr(op.getValueDim());
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  std::optional<int64_t> queries = getConstantIntValue(sizes[2]);
  if (queries)
    rowBlock = std::clamp<int64_t>(*queries, 1, rowBlock);

  SmallVector<Value> inits = {empty(sizes, elementType)};
  if (attention.getLse())
    inits.push_back(empty(ArrayRef(sizes).drop_back(), f32));
  auto forall = scf::ForallOp::create(
      b, loc, /*lbs=*/{zero, zero, zero},
      /*ubs=*/ArrayRef(sizes).take_front(3),
      /*steps=*/{one, one, b.getIndexAttr(rowBlock)}, inits,
      /*mapping=*/std::nullopt);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(forall.getTerminator());
  Value batch = forall.getInductionVar(0), head = forall.getInductionVar(1),
        first = forall.getInductionVar(2);

  OpFoldResult rows = getRows(first, rowBlock), keyHead = keyHeadOf(head);
  Piece piece;
  piece.batch = batch;
  piece.head = head;
  piece.firstQuery = first;
  piece.query = slice(op.getQuery(), batch, head, first, rows);
  OpFoldResult keys = getKeysOf(batch, first);
  piece.key = slice(op.getKey(), batch, keyHead, zero, keys);
  piece.value = slice(op.getValue(), batch, keyHead, zero, keys);
  SmallVector<Value> slices;
  for (Value shared : forall.getRegionIterArgs())
    slices.push_back(slice(shared, batch, head, first, rows));
  piece.output = slices[0];
  if (attention.getLse())
    piece.lse = slices[1];
  SmallVector<Value> results = emitPiece(piece);

  b.setInsertionPointToEnd(forall.getTerminator().getBody());
  for (auto [result, target, shared] :
       llvm::zip_equal(results, slices, forall.getRegionIterArgs())) {
    auto slice = target.getDefiningOp<tensor::ExtractSliceOp>();
    tensor::ParallelInsertSliceOp::create(
        b, loc, result, shared, slice.getMixedOffsets(), slice.getMixedSizes(),
        slice.getMixedStrides());
  }
  return llvm::to_vector_of<Value>(forall.getResults());
}

static void decompose(AttentionOp op, int64_t rowBlock) {
  NaiveAttention naive(op);
  // Without keys there are no scores to hold (and no slice would be valid).
  bool hasKeys = op.getKey().getType().getDimSize(2) != 0 &&
                 op.getValue().getType().getDimSize(2) != 0;
  SmallVector<Value> results =
      rowBlock && hasKeys ? naive.emitInBlocks(rowBlock) : naive.emitWhole();
  OpBuilder b(op);
  // A result type may be more or less static than the operands' types imply.
  for (auto [result, value] : llvm::zip_equal(op->getResults(), results)) {
    if (value.getType() != result.getType())
      value = tensor::CastOp::create(b, op.getLoc(), result.getType(), value);
    result.replaceAllUsesWith(value);
  }
  op.erase();
}

namespace {
struct DecomposeNaive : flash::impl::DecomposeNaiveBase<DecomposeNaive> {
  using Base::Base;
  void runOnOperation() override {
    if (rowBlock < 0) {
      getOperation().emitError("flash-decompose-naive: row-block must be 0 or "
                               "positive, got ")
          << rowBlock.getValue();
      return signalPassFailure();
    }
    SmallVector<AttentionOp> ops;
    getOperation().walk([&](AttentionOp op) { ops.push_back(op); });
    for (AttentionOp op : ops)
      if (failed(op.requireRank4()))
        return signalPassFailure();
    for (AttentionOp op : ops)
      decompose(op, rowBlock);
    decomposeSoftmax();
  }

  /// A program may hold a softmax of its own; upstream knows its naive form.
  void decomposeSoftmax() {
    SmallVector<linalg::SoftmaxOp> ops;
    getOperation().walk([&](linalg::SoftmaxOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (linalg::SoftmaxOp op : ops) {
      rewriter.setInsertionPoint(op);
      FailureOr<SmallVector<Value>> results = op.decomposeOperation(rewriter);
      if (failed(results))
        return signalPassFailure();
      rewriter.replaceOp(op, *results);
    }
  }
};
} // namespace
