//===- NaiveBuilder.cpp - What naive programs are made of -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NaiveBuilder.h"

#include "flash/Dialect/Flash/Utils/TileSlices.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include <limits>

using namespace mlir;
using namespace flash;

NaiveBuilder::NaiveBuilder(AttentionOpInterface op)
    : op(op), b(op), loc(op.getLoc()), f32(b.getF32Type()),
      elementType(op.getQuery().getType().getElementType()) {
  auto length = [&](Value tensor) {
    return getValueOrCreateConstantIndexOp(
        b, loc, tensor::getMixedSize(b, loc, tensor, 2));
  };
  numQueries = length(op.getQuery());
  numKeys = length(op.getKey());
  if (!op.getBlockSizes())
    return;
  if (auto attention = dyn_cast<AttentionOp>(op.getOperation()))
    blocks = expandBlocks(attention.getKeyTiles(), attention.getTileCounts());
  else if (auto grad = dyn_cast<AttentionGradOp>(op.getOperation()))
    blocks = expandBlocks(grad.getKeyTiles(), grad.getKeyTileCounts());
}

//===----------------------------------------------------------------------===//
// Lists of blocks
//===----------------------------------------------------------------------===//

static constexpr int64_t partOfBlock = 1, allOfBlock = 2;

Value NaiveBuilder::expandBlocks(Value list, Value counts) {
  Type i32 = b.getI32Type();
  auto number = [&](OpBuilder &at, int64_t value) -> Value {
    return arith::ConstantOp::create(at, loc, at.getIntegerAttr(i32, value));
  };
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, list);
  sizes.back() = affine::makeComposedFoldedAffineApply(
      b, loc, b.getAffineDimExpr(0).ceilDiv(op.getBlockSizes()->back()),
      {getAsOpFoldResult(numKeys)});
  Value nothing =
      linalg::FillOp::create(b, loc, number(b, 0), empty(sizes, i32))
          .getResult(0);
  // Loops over batches, heads, blocks of queries, blocks of keys and entries.
  constexpr unsigned numLoops = 5;
  auto dims = [&](ArrayRef<unsigned> loops) {
    return AffineMap::getMultiDimMapWithTargets(numLoops, loops,
                                                b.getContext());
  };
  SmallVector<utils::IteratorType> iterators(numLoops, parallel);
  iterators.back() = reduction;
  return generic(
      {dims({0, 1, 2, 4}), dims({0, 1, 2, 3})}, iterators, list, nothing,
      [&](OpBuilder &at, Location loc, ValueRange args) -> Value {
        auto loop = [&](unsigned dim) -> Value {
          return linalg::IndexOp::create(at, loc, dim);
        };
        auto isBefore = [&](int64_t kind) -> Value {
          Value count = tensor::ExtractOp::create(
              at, loc, counts,
              ValueRange{loop(0), loop(1), loop(2),
                         arith::ConstantIndexOp::create(at, loc, kind)});
          return arith::CmpIOp::create(
              at, loc, arith::CmpIPredicate::slt,
              arith::IndexCastOp::create(at, loc, i32, loop(4)), count);
        };
        Value isBlock = arith::CmpIOp::create(
            at, loc, arith::CmpIPredicate::eq, args[0],
            arith::IndexCastOp::create(at, loc, i32, loop(3)));
        Value isListed = arith::AndIOp::create(at, loc, isBlock, isBefore(1));
        Value left = arith::SelectOp::create(at, loc, isBefore(0),
                                             number(at, partOfBlock),
                                             number(at, allOfBlock));
        left = arith::SelectOp::create(at, loc, isListed, left, number(at, 0));
        return arith::MaxSIOp::create(at, loc, args[1], left);
      });
}

std::pair<Value, Value> NaiveBuilder::findBlock(OpBuilder &nested, Location loc,
                                                const ScorePosition &at) {
  if (!blocks)
    return {};
  SmallVector<Value> indices = {at.batch, at.head, at.query, at.key};
  auto type = cast<RankedTensorType>(blocks.getType());
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(nested, loc, value);
  };
  // One list may be for all batches or heads.
  for (unsigned dim : {0, 1})
    if (type.getDimSize(dim) == 1) {
      indices[dim] = constant(0);
    } else if (type.isDynamicDim(dim)) {
      Value last = arith::SubIOp::create(
          nested, loc, tensor::DimOp::create(nested, loc, blocks, dim),
          constant(1));
      indices[dim] = arith::MinSIOp::create(nested, loc, indices[dim], last);
    }
  for (unsigned dim : {0, 1})
    indices[2 + dim] = arith::DivUIOp::create(
        nested, loc, indices[2 + dim], constant((*op.getBlockSizes())[dim]));
  Value left = tensor::ExtractOp::create(nested, loc, blocks, indices);
  auto is = [&](int64_t kind) -> Value {
    return arith::CmpIOp::create(
        nested, loc, arith::CmpIPredicate::eq, left,
        arith::ConstantOp::create(nested, loc, nested.getI32IntegerAttr(kind)));
  };
  return {is(partOfBlock), is(allOfBlock)};
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Value NaiveBuilder::empty(ArrayRef<OpFoldResult> sizes, Type type) {
  return tensor::EmptyOp::create(b, loc, sizes, type);
}

Value NaiveBuilder::fill(ArrayRef<OpFoldResult> sizes, double value) {
  return linalg::FillOp::create(b, loc, constant(b, value), empty(sizes, f32))
      .getResult(0);
}

Value NaiveBuilder::generic(ArrayRef<AffineMap> maps,
                            ArrayRef<utils::IteratorType> iterators,
                            ValueRange inputs, Value init, Body body) {
  auto generic = linalg::GenericOp::create(
      b, loc, init.getType(), inputs, init, maps, iterators,
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        linalg::YieldOp::create(nested, loc, body(nested, loc, args));
      });
  eraseDeadOps(*generic.getBody());
  return generic.getResult(0);
}

Value NaiveBuilder::transposed(Value tensor) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  unsigned rank = sizes.size();
  AffineMap natural = b.getMultiDimIdentityMap(rank);
  SmallVector<AffineExpr> exchanged(natural.getResults());
  std::swap(exchanged[rank - 2], exchanged[rank - 1]);
  std::swap(sizes[rank - 2], sizes[rank - 1]);
  return generic({natural, map(rank, exchanged)},
                 SmallVector<utils::IteratorType>(rank, parallel), tensor,
                 empty(sizes, f32),
                 [&](OpBuilder &nested, Location loc, ValueRange args) {
                   return widen(nested, loc, args[0]);
                 });
}

OpFoldResult NaiveBuilder::getRows(Value first, int64_t rowBlock) {
  std::optional<int64_t> queries = getConstantIntValue(numQueries);
  if (queries && *queries % rowBlock == 0)
    return b.getIndexAttr(rowBlock);
  AffineExpr start = b.getAffineDimExpr(0), end = b.getAffineSymbolExpr(0);
  return affine::makeComposedFoldedAffineMin(
      b, loc,
      AffineMap::get(1, 1, {b.getAffineConstantExpr(rowBlock), end - start},
                     b.getContext()),
      {first, getAsOpFoldResult(numQueries)});
}

Value NaiveBuilder::slice(Value tensor, Value batch, OpFoldResult head,
                          OpFoldResult row, OpFoldResult count) {
  OpFoldResult one = b.getIndexAttr(1);
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> offsets = {batch, head, row};
  SmallVector<OpFoldResult> sizes = {one, one, count};
  // The size of a cast's result may be a value that is constant.
  (void)foldDynamicIndexList(sizes);
  SmallVector<int64_t> shape = {
      getConstantIntValue(count).value_or(ShapedType::kDynamic)};
  if (type.getRank() == 4) {
    offsets.push_back(b.getIndexAttr(0));
    sizes.push_back(b.getIndexAttr(type.getDimSize(3)));
    shape.push_back(type.getDimSize(3));
  }
  SmallVector<OpFoldResult> strides(type.getRank(), one);
  return tensor::ExtractSliceOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), tensor,
      offsets, sizes, strides);
}

OpFoldResult NaiveBuilder::keyHeadOf(Value head) {
  if (op.getKey().getType().getDimSize(1) == 1)
    return b.getIndexAttr(0);
  if (std::optional<int64_t> group = op.getGroup())
    return affine::makeComposedFoldedAffineApply(
        b, loc, b.getAffineDimExpr(0).floorDiv(*group), {head});
  return keyHeadOf(b, loc, head);
}

/// The key head that a query head reads, h floordiv (Hq / Hkv). Where the
/// quotient is not known here, h * Hkv floordiv Hq is the same and divides by a
/// number that is not zero if there is a head h.
Value NaiveBuilder::keyHeadOf(OpBuilder &nested, Location loc, Value head) {
  Value keyHeads = tensor::DimOp::create(nested, loc, op.getKey(), 1);
  Value queryHeads = tensor::DimOp::create(nested, loc, op.getQuery(), 1);
  Value scaled = arith::MulIOp::create(nested, loc, head, keyHeads);
  return arith::DivUIOp::create(nested, loc, scaled, queryHeads);
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value NaiveBuilder::constant(OpBuilder &nested, double value) {
  return arith::ConstantOp::create(nested, loc, nested.getF32FloatAttr(value));
}

Value NaiveBuilder::minusInfinity(OpBuilder &nested) {
  return constant(nested, -std::numeric_limits<double>::infinity());
}

Value NaiveBuilder::widen(OpBuilder &nested, Location loc, Value value) {
  if (value.getType().isF32())
    return value;
  return arith::ExtFOp::create(nested, loc, nested.getF32Type(), value);
}

Value NaiveBuilder::narrow(OpBuilder &nested, Location loc, Value value) {
  if (elementType.isF32())
    return value;
  return arith::TruncFOp::create(nested, loc, elementType, value);
}

Value NaiveBuilder::scale(OpBuilder &nested) {
  APFloat value(op.getScaleOrDefault());
  bool losesInfo = false;
  APFloat rounded = value;
  rounded.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
  if (!losesInfo)
    return arith::ConstantOp::create(nested, loc,
                                     nested.getFloatAttr(f32, rounded));
  Value exact = arith::ConstantOp::create(
      nested, loc, nested.getFloatAttr(nested.getF64Type(), value));
  return arith::TruncFOp::create(nested, loc, f32, exact);
}

ScorePosition NaiveBuilder::position(OpBuilder &nested, Location loc,
                                     const NaivePosition &position,
                                     bool withKey) {
  auto loop = [&](unsigned dim) -> Value {
    return linalg::IndexOp::create(nested, loc, dim);
  };
  ScorePosition at;
  at.numQueries = numQueries;
  at.numKeys = numKeys;
  at.query = loop(position.lead);
  if (withKey)
    at.key = loop(position.lead + 1);
  if (position.lead == 0) {
    at.batch = position.batch;
    at.head = position.head;
    at.query =
        arith::AddIOp::create(nested, loc, position.firstQuery, at.query);
    return at;
  }
  at.batch = loop(0);
  at.head = loop(1);
  return at;
}

Value NaiveBuilder::isInMask(OpBuilder &nested, Location loc, Value blockLength,
                             const ScorePosition &at) {
  Value length = blockLength;
  if (op.getLengths() && !length)
    length = tensor::ExtractOp::create(nested, loc, op.getLengths(), at.batch);
  ScorePosition inBatch = at;
  auto read = [&](Value lengths, Value &number) -> Value {
    if (!lengths)
      return {};
    Value own = tensor::ExtractOp::create(nested, loc, lengths, at.batch);
    number = getValueOrCreateConstantIndexOp(
        nested, loc, getLength(nested, loc, number, lengths, at.batch));
    return own;
  };
  Value queries = read(op.getQueryLengths(), inBatch.numQueries),
        keys = read(op.getKeyLengths(), inBatch.numKeys);
  Value inMask = emitMaskPredicate(nested, loc, op.getMaskOrFull(), inBatch);
  if (auto [isPart, isFull] = findBlock(nested, loc, at); isFull) {
    inMask =
        inMask ? arith::AndIOp::create(nested, loc, inMask, isPart) : isPart;
    inMask = arith::OrIOp::create(nested, loc, inMask, isFull);
  }
  inMask = emitLengthPredicate(nested, loc, inMask, queries, at.query);
  inMask = emitLengthPredicate(nested, loc, inMask, keys, at.key);
  return emitLengthPredicate(nested, loc, inMask, length, at.key);
}

Value NaiveBuilder::takesPart(OpBuilder &nested, Location loc, Value inMask,
                              const ScorePosition &at) {
  auto [isPart, isFull] = findBlock(nested, loc, at);
  // A full block keeps all elements, whatever the region says, whose reads need
  // not be in range there.
  Value isRead =
      isPart ? arith::AndIOp::create(nested, loc, inMask, isPart) : inMask;
  Value keep = emitKeep(nested, op.getScore(), at, isRead);
  if (keep && isFull)
    keep = arith::OrIOp::create(nested, loc, keep, isFull);
  if (!inMask || !keep)
    return keep ? keep : inMask;
  return arith::AndIOp::create(nested, loc, inMask, keep);
}
