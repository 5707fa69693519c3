//===- DecomposeNaiveGrad.cpp - Gradients from their definition -----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NaiveBuilder.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/ScoreGradient.h"
#include "flash/Dialect/Flash/Utils/TileSlices.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/SaveAndRestore.h"

namespace flash {
#define GEN_PASS_DEF_DECOMPOSENAIVEGRAD
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// More than there are: the scores of a head at a time.
static constexpr int64_t mostQueries = std::numeric_limits<int32_t>::max();

namespace {
/// The keys and values of one head.
struct KeyHead {
  Value batch;
  /// The first query head that reads it.
  Value firstHead;
  /// The length of the batch, or null.
  Value length;
  /// `[Nk, D]`; and both transposed, of f32.
  Value key, transposedKey, transposedValue;
};

/// Some queries of one head, and what is computed of their scores.
struct Block : NaivePosition {
  Value length;
  /// `[rows, D]` and `[rows, Dv]`, 0 in rows that see no key.
  Value query, outputGrad;
  /// `[rows]`, of f32.
  Value lse, delta;
  /// `[rows, Nk]`, of f32: what the score region gets; the probabilities; the
  /// gradients of what it gives, and of what it gets.
  Value scores, probabilities, scoreGrad, productGrad;
};

/// A part of a tensor.
struct Slice {
  Slice(ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes)
      : offsets(offsets), sizes(sizes) {
    // The size of a cast's result may be a value that is constant.
    (void)foldDynamicIndexList(this->sizes);
  }
  SmallVector<OpFoldResult> strides(Builder &b) const {
    return SmallVector<OpFoldResult>(offsets.size(), b.getIndexAttr(1));
  }

  SmallVector<OpFoldResult> offsets, sizes;
};

class NaiveGradient : NaiveBuilder {
public:
  NaiveGradient(AttentionGradOp op, int64_t rowBlock)
      : NaiveBuilder(op), grad(op), rowBlock(rowBlock) {}
  /// The results of the op; fails after an error.
  FailureOr<SmallVector<Value>> emit();

private:
  using LoopBody =
      function_ref<SmallVector<Value>(Value at, ValueRange carried)>;
  /// Values of the element's row.
  struct RowValues {
    Value lse, delta;
  };
  /// `takesPart` says whether the element has gradients.
  using ScoreBody =
      function_ref<Value(OpBuilder &, ValueRange args, const RowValues &row,
                         const ScorePosition &at, Value takesPart)>;

  Value emitDelta();
  Value emitSinkGrad(Value delta);
  SmallVector<Value> emitParallel(ArrayRef<Value> grads, Value delta);
  SmallVector<Value> emitSequential(ArrayRef<Value> grads, Value delta);
  SmallVector<Value> emitKeyHead(Value batch, Value keyHead, ValueRange carried,
                                 ArrayRef<Slice> slices, Value delta);
  SmallVector<Value> emitBlock(const KeyHead &keys, Value firstQuery,
                               Value head, ValueRange sums, Value delta);
  SmallVector<Value> emitCaptured(const Block &block, ArrayRef<Value> captured);
  void emitScores(const KeyHead &keys, Block &block);

  SmallVector<Value> loop(Value end, int64_t step, ValueRange inits,
                          LoopBody body);
  SmallVector<Slice> getSlices(Value batch, Value keyHead);
  Value extract(Value tensor, const Slice &slice, unsigned rank);
  Value insert(Value part, Value tensor, const Slice &slice);
  /// Zeros of the operands' type, instead of a tensor of it.
  Value clear(Value tensor);
  Value clearUnseen(Value rows, Value lse);
  Value rowsTimesKeys(Value rows, Value transposedKeys);
  Value onScores(const Block &block, ArrayRef<Value> scores, ScoreBody body);
  Value weighted(const Block &block, Value weights, Value other, Value sum,
                 bool sumsQueries);
  Value finish(Value sum, Value into, Value lse, bool scales);
  Value fillWide(Value like);
  Value roundTo(Value sum, RankedTensorType type);
  void setGroup();

  Value isSeen(OpBuilder &nested, Value lse) {
    return arith::CmpFOp::create(nested, loc, arith::CmpFPredicate::UNE, lse,
                                 minusInfinity(nested));
  }
  Value zeroUnless(OpBuilder &nested, Value condition, Value value) {
    if (!condition)
      return value;
    Value zero = arith::ConstantOp::create(nested, loc,
                                           nested.getZeroAttr(value.getType()));
    return arith::SelectOp::create(nested, loc, condition, value, zero);
  }
  Value both(OpBuilder &nested, Value lhs, Value rhs) {
    return lhs ? arith::AndIOp::create(nested, loc, lhs, rhs).getResult() : rhs;
  }

  AttentionGradOp grad;
  int64_t rowBlock;
  /// Query heads that read a key head, inside the loops over these.
  OpFoldResult group;
  bool failedToDerive = false;
};
} // namespace

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

SmallVector<Value> NaiveGradient::loop(Value end, int64_t step,
                                       ValueRange inits, LoopBody body) {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto loop = scf::ForOp::create(b, loc, index(0), end, index(step), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!inits.empty())
    scf::YieldOp::create(b, loc, next);
  return llvm::to_vector_of<Value>(loop.getResults());
}

Value NaiveGradient::extract(Value tensor, const Slice &slice, unsigned rank) {
  auto full = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape;
  for (OpFoldResult size : ArrayRef(slice.sizes).take_back(rank))
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  return tensor::ExtractSliceOp::create(
      b, loc, RankedTensorType::get(shape, full.getElementType()), tensor,
      slice.offsets, slice.sizes, slice.strides(b));
}

Value NaiveGradient::insert(Value part, Value tensor, const Slice &slice) {
  return tensor::InsertSliceOp::create(b, loc, part, tensor, slice.offsets,
                                       slice.sizes, slice.strides(b));
}

Value NaiveGradient::clear(Value tensor) {
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(elementType));
  return linalg::FillOp::create(b, loc, zero, tensor).getResult(0);
}

/// The rows, 0 where a query sees no key: it must add nothing to a sum, though
/// 0 times what it holds may be NaN.
Value NaiveGradient::clearUnseen(Value rows, Value lse) {
  AffineMap all = b.getMultiDimIdentityMap(2), ofRow = all.getMajorSubMap(1);
  return generic({all, ofRow, all},
                 SmallVector<utils::IteratorType>(2, parallel), {rows, lse},
                 empty(tensor::getMixedSizes(b, loc, rows), elementType),
                 [&](OpBuilder &nested, Location loc, ValueRange args) {
                   return zeroUnless(nested, isSeen(nested, args[1]), args[0]);
                 });
}

/// `[rows, Nk]` from `[rows, X]` and `[X, Nk]`.
Value NaiveGradient::rowsTimesKeys(Value rows, Value transposedKeys) {
  AffineExpr row, inner, key;
  bindDims(b.getContext(), row, inner, key);
  auto contract = arith::FastMathFlags::contract;
  return generic(
      {map(3, {row, inner}), map(3, {inner, key}), map(3, {row, key})},
      {parallel, reduction, parallel}, {rows, transposedKeys},
      fill({tensor::getMixedSize(b, loc, rows, 0), getAsOpFoldResult(numKeys)},
           0.0),
      [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
        Value product = arith::MulFOp::create(
            nested, loc, widen(nested, loc, args[0]), args[1], contract);
        return arith::AddFOp::create(nested, loc, args[2], product, contract);
      });
}

/// A tensor of `[rows, Nk]` from others of that shape.
Value NaiveGradient::onScores(const Block &block, ArrayRef<Value> scores,
                              ScoreBody body) {
  AffineMap all = b.getMultiDimIdentityMap(2), ofRow = all.getMajorSubMap(1);
  SmallVector<AffineMap> maps(scores.size(), all);
  maps.append({ofRow, ofRow, all});
  SmallVector<Value> inputs(scores);
  inputs.append({block.lse, block.delta});
  return generic(
      maps, {parallel, parallel}, inputs,
      empty(tensor::getMixedSizes(b, loc, scores.front()), f32),
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        RowValues row = {args[scores.size()], args[scores.size() + 1]};
        ScorePosition at = position(nested, loc, block, /*withKey=*/true);
        Value keep =
            takesPart(nested, loc, isInMask(nested, loc, block.length, at), at);
        return body(nested, args, row, at,
                    both(nested, keep, isSeen(nested, row.lse)));
      });
}

/// `sum[i, d] + sum_j weights[i, j] other[j, d]`, or, if it sums queries,
/// `sum[j, d] + sum_i weights[i, j] other[i, d]`. An element that does not take
/// part has the weight 0, but 0 times `other` may be NaN.
Value NaiveGradient::weighted(const Block &block, Value weights, Value other,
                              Value sum, bool sumsQueries) {
  AffineExpr query, key, column;
  bindDims(b.getContext(), query, key, column);
  SmallVector<AffineMap> maps = {map(3, {query, key}),
                                 map(3, {sumsQueries ? query : key, column}),
                                 map(3, {sumsQueries ? key : query, column})};
  SmallVector<utils::IteratorType> iterators(3, parallel);
  iterators[sumsQueries ? 0 : 1] = reduction;
  auto contract = arith::FastMathFlags::contract;
  return generic(
      maps, iterators, {weights, other}, sum,
      [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
        Value term = arith::MulFOp::create(
            nested, loc, args[0], widen(nested, loc, args[1]), contract);
        ScorePosition at = position(nested, loc, block, /*withKey=*/true);
        Value keep =
            takesPart(nested, loc, isInMask(nested, loc, block.length, at), at);
        return arith::AddFOp::create(nested, loc, args[2],
                                     zeroUnless(nested, keep, term), contract);
      });
}

/// A sum as a result, in `into`: times the scale if it `scales`, rounded, and
/// with `lse`, of its rows, 0 where they see no key.
Value NaiveGradient::finish(Value sum, Value into, Value lse, bool scales) {
  AffineMap all = b.getMultiDimIdentityMap(2), ofRow = all.getMajorSubMap(1);
  SmallVector<AffineMap> maps = {all};
  SmallVector<Value> inputs = {sum};
  if (lse) {
    maps.push_back(ofRow);
    inputs.push_back(lse);
  }
  maps.push_back(all);
  return generic(maps, {parallel, parallel}, inputs, into,
                 [&](OpBuilder &nested, Location loc, ValueRange args) {
                   Value value = args[0];
                   if (scales)
                     value = arith::MulFOp::create(nested, loc, value,
                                                   scale(nested));
                   if (lse)
                     value = zeroUnless(nested, isSeen(nested, args[1]), value);
                   return narrow(nested, loc, value);
                 });
}

//===----------------------------------------------------------------------===//
// What concerns rows only
//===----------------------------------------------------------------------===//

Value NaiveGradient::emitDelta() {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, loc, op.getQuery());
  sizes.pop_back();
  AffineMap ofRow = b.getMultiDimIdentityMap(3);
  Value init = fill(sizes, 0.0);
  if (grad.getLseGrad())
    init =
        generic({ofRow, ofRow}, SmallVector<utils::IteratorType>(3, parallel),
                grad.getLseGrad(), empty(sizes, f32),
                [&](OpBuilder &nested, Location loc, ValueRange args) {
                  return arith::NegFOp::create(nested, loc, args[0]);
                });
  AffineMap all = b.getMultiDimIdentityMap(4);
  auto fast = arith::FastMathFlags::contract | arith::FastMathFlags::reassoc;
  return generic(
      {all, all, all.getMajorSubMap(3)},
      {parallel, parallel, parallel, reduction},
      {grad.getOutputGrad(), grad.getOutput()}, init,
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        Value product =
            arith::MulFOp::create(nested, loc, widen(nested, loc, args[0]),
                                  widen(nested, loc, args[1]), fast);
        return arith::AddFOp::create(nested, loc, args[2], product, fast);
      });
}

Value NaiveGradient::emitSinkGrad(Value delta) {
  AffineExpr head, batch, query;
  bindDims(b.getContext(), head, batch, query);
  AffineMap ofRow = map(3, {batch, head, query});
  return generic(
      {ofRow, ofRow, map(3, {head})}, {parallel, reduction, reduction},
      {grad.getLse(), delta}, fillWide(op.getSink()),
      [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
        Value logit =
            sink(nested, loc, linalg::IndexOp::create(nested, loc, 0));
        Value share = math::ExpOp::create(
            nested, loc, arith::SubFOp::create(nested, loc, logit, args[0]));
        Value term = arith::MulFOp::create(nested, loc, share, args[1]);
        term = zeroUnless(nested, isSeen(nested, args[0]), term);
        return arith::SubFOp::create(
            nested, loc, args[2],
            arith::ExtFOp::create(nested, loc, args[2].getType(), term));
      });
}

//===----------------------------------------------------------------------===//
// What concerns scores
//===----------------------------------------------------------------------===//

/// The scores of a block and their gradients.
void NaiveGradient::emitScores(const KeyHead &keys, Block &block) {
  Value products = rowsTimesKeys(block.query, keys.transposedKey);
  AffineMap all = b.getMultiDimIdentityMap(2);
  block.scores = generic(
      all, {parallel, parallel}, {}, products,
      [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
        return arith::MulFOp::create(nested, loc, args[0], scale(nested));
      });
  block.probabilities = onScores(
      block, block.scores,
      [&](OpBuilder &nested, ValueRange args, const RowValues &row,
          const ScorePosition &at, Value takesPart) {
        Value score =
            emitScoreRegion(nested, loc, op.getScore(), args[0], at, takesPart);
        Value power = arith::SubFOp::create(nested, loc, score, row.lse);
        return zeroUnless(nested, takesPart,
                          math::ExpOp::create(nested, loc, power));
      });
  Value probabilityGrad = rowsTimesKeys(block.outputGrad, keys.transposedValue);
  block.scoreGrad = onScores(
      block, {block.probabilities, probabilityGrad},
      [&](OpBuilder &nested, ValueRange args, const RowValues &row,
          const ScorePosition &, Value takesPart) {
        Value centred = arith::SubFOp::create(nested, loc, args[1], row.delta);
        return zeroUnless(nested, takesPart,
                          arith::MulFOp::create(nested, loc, args[0], centred));
      });
  block.productGrad = block.scoreGrad;
  if (op.getScore().empty())
    return;
  block.productGrad = onScores(
      block, {block.scores, block.scoreGrad},
      [&](OpBuilder &nested, ValueRange args, const RowValues &,
          const ScorePosition &at, Value takesPart) -> Value {
        IRMapping values;
        emitScoreValues(nested, op.getScore(), args[0], at, takesPart, values);
        FailureOr<ScoreGradient> gradient = emitScoreGradient(
            nested, op.getScore(), values, args[1], takesPart);
        failedToDerive |= failed(gradient);
        // A score that is not read has no gradient.
        return succeeded(gradient) && gradient->score ? gradient->score
                                                      : constant(nested, 0.0);
      });
}

/// Adds what the reads of each score contribute, one after the other.
SmallVector<Value> NaiveGradient::emitCaptured(const Block &block,
                                               ArrayRef<Value> captured) {
  Value rows = getValueOrCreateConstantIndexOp(
      b, loc, tensor::getMixedSize(b, loc, block.scores, 0));
  auto addTo = [&](Value sum, ReadGradient &read) -> Value {
    Value before = tensor::ExtractOp::create(b, loc, sum, read.indices);
    Value wide = arith::ExtFOp::create(b, loc, before.getType(), read.gradient);
    Value after = arith::AddFOp::create(b, loc, before, wide);
    return tensor::InsertOp::create(b, loc, after, sum, read.indices);
  };
  auto addElement = [&](Value row, Value key, SmallVector<Value> sums) {
    ScorePosition at = {block.batch,
                        block.head,
                        arith::AddIOp::create(b, loc, block.firstQuery, row),
                        key,
                        numQueries,
                        numKeys};
    Value lse = tensor::ExtractOp::create(b, loc, block.lse, row);
    Value inMask = isInMask(b, loc, block.length, at);
    Value keep = both(b, takesPart(b, loc, inMask, at), isSeen(b, lse));
    auto branch =
        scf::IfOp::create(b, loc, TypeRange(sums), keep, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, sums);
    b.setInsertionPointToStart(branch.thenBlock());
    Value score = tensor::ExtractOp::create(b, loc, block.scores, {row, key});
    Value scoreGrad =
        tensor::ExtractOp::create(b, loc, block.scoreGrad, {row, key});
    IRMapping values;
    emitScoreValues(b, op.getScore(), score, at, /*takesPart=*/Value(), values);
    FailureOr<ScoreGradient> gradient =
        emitScoreGradient(b, op.getScore(), values, scoreGrad,
                          /*condition=*/Value(), grad.getCaptured());
    failedToDerive |= failed(gradient);
    if (succeeded(gradient))
      for (ReadGradient &read : gradient->reads) {
        auto number = llvm::find(grad.getCaptured(), read.read.getTensor()) -
                      grad.getCaptured().begin();
        sums[number] = addTo(sums[number], read);
      }
    scf::YieldOp::create(b, loc, sums);
    return llvm::to_vector_of<Value>(branch.getResults());
  };
  return loop(rows, 1, captured, [&](Value row, ValueRange sums) {
    return loop(numKeys, 1, sums, [&](Value key, ValueRange sums) {
      return addElement(row, key, llvm::to_vector(sums));
    });
  });
}

/// The gradients of a block of queries: written into the query's gradient,
/// `[heads, Nq, D]`, and added to the gradients of the key and the value, of
/// f32, and of captured tensors.
SmallVector<Value> NaiveGradient::emitBlock(const KeyHead &keys,
                                            Value firstQuery, Value inGroup,
                                            ValueRange sums, Value delta) {
  Block block;
  block.batch = keys.batch;
  block.length = keys.length;
  block.head = arith::AddIOp::create(b, loc, keys.firstHead, inGroup);
  block.firstQuery = firstQuery;
  OpFoldResult rows = getRows(firstQuery, rowBlock);
  auto ofRows = [&](Value tensor) {
    return slice(tensor, block.batch, block.head, firstQuery, rows);
  };
  block.lse = ofRows(grad.getLse());
  block.delta = ofRows(delta);
  block.query = clearUnseen(ofRows(op.getQuery()), block.lse);
  block.outputGrad = clearUnseen(ofRows(grad.getOutputGrad()), block.lse);
  emitScores(keys, block);

  OpFoldResult one = b.getIndexAttr(1), zero = b.getIndexAttr(0),
               headDim = b.getIndexAttr(op.getHeadDim());
  Slice ofBlock = {{inGroup, firstQuery, zero}, {one, rows, headDim}};
  Value queryGrad = finish(
      weighted(block, block.productGrad, keys.key, fill({rows, headDim}, 0.0),
               /*sumsQueries=*/false),
      extract(sums[0], ofBlock, 2), block.lse, /*scales=*/true);
  SmallVector<Value> results = {
      insert(queryGrad, sums[0], ofBlock),
      weighted(block, block.productGrad, block.query, sums[1],
               /*sumsQueries=*/true),
      weighted(block, block.probabilities, block.outputGrad, sums[2],
               /*sumsQueries=*/true)};
  if (sums.size() > results.size() && !failedToDerive)
    llvm::append_range(
        results,
        emitCaptured(block, llvm::to_vector(sums.drop_front(results.size()))));
  return results;
}

//===----------------------------------------------------------------------===//
// Loops over heads
//===----------------------------------------------------------------------===//

/// Where a key head's slices are in the gradients of the query (all heads that
/// read the key head), the key and the value.
SmallVector<Slice> NaiveGradient::getSlices(Value batch, Value keyHead) {
  OpFoldResult one = b.getIndexAttr(1), zero = b.getIndexAttr(0);
  AffineExpr head = b.getAffineDimExpr(0), size = b.getAffineSymbolExpr(0);
  OpFoldResult firstHead = affine::makeComposedFoldedAffineApply(
      b, loc, head * size, {keyHead, group});
  Slice ofQuery = {{batch, firstHead, zero, zero},
                   {one, group, getAsOpFoldResult(numQueries),
                    b.getIndexAttr(op.getHeadDim())}};
  SmallVector<Slice> slices = {ofQuery};
  for (Value tensor : {op.getKey(), op.getValue()})
    slices.push_back({{batch, keyHead, zero, zero},
                      {one, one, tensor::getMixedSize(b, loc, tensor, 2),
                       tensor::getMixedSize(b, loc, tensor, 3)}});
  return slices;
}

/// The gradients of a key head and of the queries that read it, inserted at
/// `slices` of the first tensors that are carried, and the gradients of
/// captured tensors, to which it adds.
SmallVector<Value> NaiveGradient::emitKeyHead(Value batch, Value keyHead,
                                              ValueRange carried,
                                              ArrayRef<Slice> slices,
                                              Value delta) {
  KeyHead keys;
  keys.batch = batch;
  keys.firstHead =
      getValueOrCreateConstantIndexOp(b, loc, slices.front().offsets[1]);
  if (op.getLengths())
    keys.length = tensor::ExtractOp::create(b, loc, op.getLengths(), batch);
  // Rows beyond the end of a sequence of its own are 0, and not gone over.
  Value queries = getValueOrCreateConstantIndexOp(
      b, loc, getLength(b, loc, numQueries, op.getQueryLengths(), batch));
  llvm::SaveAndRestore ofBatch(
      numKeys,
      getValueOrCreateConstantIndexOp(
          b, loc, getLength(b, loc, numKeys, op.getKeyLengths(), batch)));
  auto ofHead = [&](Value tensor) {
    return slice(tensor, batch, keyHead, b.getIndexAttr(0),
                 getAsOpFoldResult(numKeys));
  };
  keys.key = ofHead(op.getKey());
  keys.transposedKey = transposed(keys.key);
  keys.transposedValue = transposed(ofHead(op.getValue()));

  auto sumOfKeys = [&](Value tensor) {
    return fill(
        {getAsOpFoldResult(numKeys), tensor::getMixedSize(b, loc, tensor, 3)},
        0.0);
  };
  Value intoQuery = extract(carried[0], slices[0], 3);
  if (op.getQueryLengths())
    intoQuery = clear(intoQuery);
  SmallVector<Value> sums = {intoQuery, sumOfKeys(op.getKey()),
                             sumOfKeys(op.getValue())};
  llvm::append_range(sums, carried.drop_front(sums.size()));
  sums = loop(getValueOrCreateConstantIndexOp(b, loc, group), 1, sums,
              [&](Value inGroup, ValueRange sums) {
                return loop(queries, rowBlock, sums,
                            [&](Value firstQuery, ValueRange sums) {
                              return emitBlock(keys, firstQuery, inGroup, sums,
                                               delta);
                            });
              });
  for (int64_t number : {1, 2}) {
    Value into = extract(carried[number], slices[number], 2);
    auto finishInto = [&](Value rows) {
      return finish(sums[number], rows, /*lse=*/Value(),
                    /*scales=*/number == 1);
    };
    if (!op.getKeyLengths()) {
      sums[number] = finishInto(into);
      continue;
    }
    OpFoldResult zero = b.getIndexAttr(0);
    Slice existing = {
        {zero, zero},
        {getAsOpFoldResult(numKeys), tensor::getMixedSize(b, loc, into, 1)}};
    into = clear(into);
    sums[number] =
        insert(finishInto(extract(into, existing, 2)), into, existing);
  }
  return sums;
}

/// How many query heads read a key head. Inside the loops over those there is
/// one, so that the division is one by a number that is not zero.
void NaiveGradient::setGroup() {
  if (std::optional<int64_t> known = op.getGroup()) {
    group = b.getIndexAttr(*known);
    return;
  }
  Value keyHeads = tensor::DimOp::create(b, loc, op.getKey(), 1);
  Value queryHeads = tensor::DimOp::create(b, loc, op.getQuery(), 1);
  group = arith::DivUIOp::create(b, loc, queryHeads, keyHeads).getResult();
}

SmallVector<Value> NaiveGradient::emitParallel(ArrayRef<Value> grads,
                                               Value delta) {
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  auto forall =
      scf::ForallOp::create(b, loc, {zero, zero},
                            {tensor::getMixedSize(b, loc, op.getQuery(), 0),
                             tensor::getMixedSize(b, loc, op.getKey(), 1)},
                            {one, one}, grads, /*mapping=*/std::nullopt);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(forall.getTerminator());
  setGroup();
  Value batch = forall.getInductionVar(0), keyHead = forall.getInductionVar(1);
  SmallVector<Slice> slices = getSlices(batch, keyHead);
  SmallVector<Value> parts =
      emitKeyHead(batch, keyHead, forall.getRegionIterArgs(), slices, delta);
  b.setInsertionPointToEnd(forall.getTerminator().getBody());
  for (auto [part, shared, slice] :
       llvm::zip_equal(parts, forall.getRegionIterArgs(), slices))
    tensor::ParallelInsertSliceOp::create(b, loc, part, shared, slice.offsets,
                                          slice.sizes, slice.strides(b));
  return llvm::to_vector_of<Value>(forall.getResults());
}

SmallVector<Value> NaiveGradient::emitSequential(ArrayRef<Value> grads,
                                                 Value delta) {
  auto size = [&](Value tensor, int64_t dim) {
    return getValueOrCreateConstantIndexOp(
        b, loc, tensor::getMixedSize(b, loc, tensor, dim));
  };
  auto ofKeyHead = [&](Value batch, Value keyHead, ValueRange carried) {
    setGroup();
    SmallVector<Slice> slices = getSlices(batch, keyHead);
    SmallVector<Value> parts =
        emitKeyHead(batch, keyHead, carried, slices, delta);
    for (auto [part, whole, slice] : llvm::zip(parts, carried, slices))
      part = insert(part, whole, slice);
    return parts;
  };
  return loop(size(op.getQuery(), 0), 1, grads,
              [&](Value batch, ValueRange carried) {
                return loop(size(op.getKey(), 1), 1, carried,
                            [&](Value keyHead, ValueRange carried) {
                              return ofKeyHead(batch, keyHead, carried);
                            });
              });
}

FailureOr<SmallVector<Value>> NaiveGradient::emit() {
  std::optional<int64_t> queries = getConstantIntValue(numQueries);
  if (queries)
    rowBlock = std::clamp<int64_t>(*queries, 1, rowBlock);
  // Without any element no slice would be valid.
  auto isEmpty = [](RankedTensorType type) {
    return llvm::is_contained(type.getShape(), 0);
  };
  bool hasElements = !isEmpty(op.getQuery().getType()) &&
                     !isEmpty(op.getKey().getType()) &&
                     !isEmpty(op.getValue().getType());
  SmallVector<Value> grads;
  for (Value tensor : {op.getQuery(), op.getKey(), op.getValue()}) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
    Value grad = empty(sizes, elementType);
    if (!hasElements)
      grad = clear(grad);
    grads.push_back(grad);
  }
  for (Value tensor : grad.getCaptured())
    grads.push_back(fillWide(tensor));
  Value delta = emitDelta();
  bool usesScores = llvm::any_of(grad->getResults(), [&](OpResult result) {
    return result != grad.getSinkGrad() && !result.use_empty();
  });
  if (hasElements && usesScores)
    grads = grad.getCaptured().empty() ? emitParallel(grads, delta)
                                       : emitSequential(grads, delta);
  if (failedToDerive)
    return failure();
  for (auto [sum, tensor] : llvm::zip_equal(
           MutableArrayRef(grads).drop_front(3), grad.getCaptured()))
    sum = roundTo(sum, cast<RankedTensorType>(tensor.getType()));
  if (op.getSink())
    grads.insert(grads.begin() + 3,
                 roundTo(emitSinkGrad(delta), op.getSink().getType()));
  return grads;
}

/// Zeros of f64, with the sizes of `like`: an element may be a sum of all that
/// there is, to which f32 cannot add one by one.
Value NaiveGradient::fillWide(Value like) {
  Type f64 = b.getF64Type();
  Value zero = arith::ConstantOp::create(b, loc, b.getFloatAttr(f64, 0.0));
  return linalg::FillOp::create(b, loc, zero,
                                empty(tensor::getMixedSizes(b, loc, like), f64))
      .getResult(0);
}

/// The gradient of a vector or of a captured tensor, in its element type.
Value NaiveGradient::roundTo(Value sum, RankedTensorType type) {
  AffineMap all = b.getMultiDimIdentityMap(type.getRank());
  return generic(
      {all, all}, SmallVector<utils::IteratorType>(type.getRank(), parallel),
      sum, empty(tensor::getMixedSizes(b, loc, sum), type.getElementType()),
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        return arith::TruncFOp::create(nested, loc, type.getElementType(),
                                       args[0]);
      });
}

static LogicalResult decompose(AttentionGradOp op, int64_t rowBlock) {
  FailureOr<SmallVector<Value>> results = NaiveGradient(op, rowBlock).emit();
  if (failed(results))
    return failure();
  OpBuilder b(op);
  // A result type may be more or less static than the operands' types imply.
  for (auto [result, value] : llvm::zip_equal(op->getResults(), *results)) {
    if (value.getType() != result.getType())
      value = tensor::CastOp::create(b, op.getLoc(), result.getType(), value);
    result.replaceAllUsesWith(value);
  }
  op.erase();
  return success();
}

namespace {
struct DecomposeNaiveGrad
    : flash::impl::DecomposeNaiveGradBase<DecomposeNaiveGrad> {
  using Base::Base;
  void runOnOperation() override {
    if (rowBlock < 0) {
      getOperation().emitError("flash-decompose-naive-grad: row-block must be "
                               "0 or positive, got ")
          << rowBlock.getValue();
      return signalPassFailure();
    }
    SmallVector<AttentionGradOp> ops;
    getOperation().walk([&](AttentionGradOp op) { ops.push_back(op); });
    for (AttentionGradOp op : ops)
      if (failed(op.requireRank4()) ||
          failed(decompose(op, rowBlock ? rowBlock : mostQueries)))
        return signalPassFailure();
  }
};
} // namespace
