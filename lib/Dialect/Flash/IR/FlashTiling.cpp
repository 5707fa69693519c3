//===- FlashTiling.cpp - The tiling interface of the online step ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The iteration space of an online step is (b, h, i, j), of a finalize
// (b, h, i); a tile of rank 2 has only (i, j) and (i). Head dimensions are
// never cut: a tile holds whole rows of the query, key and value.
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace flash;

namespace {
Range fullRange(OpBuilder &b, Location loc, Value tensor, int64_t dim) {
  return {b.getIndexAttr(0), tensor::getMixedSize(b, loc, tensor, dim),
          b.getIndexAttr(1)};
}

/// Slices `tensor` to offsets/sizes on its first dimensions, whole on the rest.
Operation *sliceLeading(OpBuilder &b, Location loc, Value tensor,
                        ArrayRef<OpFoldResult> offsets,
                        ArrayRef<OpFoldResult> sizes) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  SmallVector<OpFoldResult> fullOffsets(offsets), fullSizes(sizes);
  for (int64_t d = offsets.size(); d < rank; ++d) {
    fullOffsets.push_back(b.getIndexAttr(0));
    fullSizes.push_back(tensor::getMixedSize(b, loc, tensor, d));
  }
  SmallVector<OpFoldResult> strides(rank, b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, tensor, fullOffsets, fullSizes,
                                        strides);
}

/// Collects the slices a tiled op reads, to report them to the driver.
struct Slicer {
  OpBuilder &b;
  Location loc;
  SmallVector<Operation *> slices;

  Value operator()(Value tensor, ArrayRef<OpFoldResult> offsets,
                   ArrayRef<OpFoldResult> sizes) {
    Operation *slice = sliceLeading(b, loc, tensor, offsets, sizes);
    slices.push_back(slice);
    return slice->getResult(0);
  }
};

/// The result tile of a state or output tensor: the given leading offsets, and
/// all of the value dimension where there is one.
LogicalResult leadingTile(OpBuilder &b, Value result,
                          ArrayRef<OpFoldResult> offsets,
                          ArrayRef<OpFoldResult> sizes,
                          SmallVector<OpFoldResult> &resultOffsets,
                          SmallVector<OpFoldResult> &resultSizes) {
  auto type = cast<RankedTensorType>(result.getType());
  resultOffsets.assign(offsets.begin(), offsets.end());
  resultSizes.assign(sizes.begin(), sizes.end());
  if (type.getRank() > static_cast<int64_t>(offsets.size())) {
    resultOffsets.push_back(b.getIndexAttr(0));
    resultSizes.push_back(b.getIndexAttr(type.getShape().back()));
  }
  return success();
}
} // namespace

//===----------------------------------------------------------------------===//
// OnlineAttentionOp
//===----------------------------------------------------------------------===//

SmallVector<utils::IteratorType> OnlineAttentionOp::getLoopIteratorTypes() {
  int64_t rank = getQuery().getType().getRank();
  SmallVector<utils::IteratorType> types(rank, utils::IteratorType::parallel);
  types.back() = utils::IteratorType::reduction;
  return types;
}

SmallVector<Range> OnlineAttentionOp::getIterationDomain(OpBuilder &b) {
  int64_t rank = getQuery().getType().getRank();
  SmallVector<Range> domain;
  for (int64_t d = 0; d < rank - 1; ++d)
    domain.push_back(fullRange(b, getLoc(), getQuery(), d));
  domain.push_back(fullRange(b, getLoc(), getKey(), rank - 2));
  return domain;
}

/// The key head that query head `head` reads.
static OpFoldResult keyHead(OpBuilder &b, Location loc, OnlineAttentionOp op,
                            OpFoldResult head) {
  OpFoldResult queryHeads = tensor::getMixedSize(b, loc, op.getQuery(), 1),
               keyHeads = tensor::getMixedSize(b, loc, op.getKey(), 1);
  std::optional<int64_t> staticQuery = getConstantIntValue(queryHeads),
                         staticKey = getConstantIntValue(keyHeads);
  if (staticQuery && staticKey)
    return affine::makeComposedFoldedAffineApply(
        b, loc, b.getAffineDimExpr(0).floorDiv(*staticQuery / *staticKey),
        {head});
  // Not an affine.apply: lower-affine refuses division by a symbol.
  auto value = [&](OpFoldResult entry) {
    return getValueOrCreateConstantIndexOp(b, loc, entry);
  };
  Value group =
      arith::DivUIOp::create(b, loc, value(queryHeads), value(keyHeads));
  return arith::DivUIOp::create(b, loc, value(head), group).getResult();
}

FailureOr<TilingResult>
OnlineAttentionOp::tileFrom(OpBuilder &b, ValueRange state,
                            ArrayRef<OpFoldResult> offsets,
                            ArrayRef<OpFoldResult> sizes) {
  Location loc = getLoc();
  Slicer slice{b, loc, {}};
  int64_t rank = getQuery().getType().getRank();
  // The loops before the last are the state's loops, (b, h, i) or (i).
  ArrayRef<OpFoldResult> rowOffsets = offsets.drop_back(),
                         rowSizes = sizes.drop_back();
  SmallVector<OpFoldResult> keyOffsets(offsets), keySizes(sizes);
  keyOffsets.erase(keyOffsets.end() - 2);
  keySizes.erase(keySizes.end() - 2);
  auto holdsAllHeads = [&](OpFoldResult offset, OpFoldResult size) {
    if (!isConstantIntValue(offset, 0))
      return false;
    FailureOr<bool> equal = ValueBoundsConstraintSet::areEqual(
        size, ValueBoundsConstraintSet::Variable(getQuery(), 1));
    return succeeded(equal) && *equal;
  };
  if (getPackedHeads() > 1 && !isConstantIntValue(offsets[0], 0))
    return emitOpError("can be tiled along keys only: its rows belong to "
                       "packed heads");
  if (rank == 4) {
    // Query heads h .. h + n read key heads h/g .. (h + n - 1)/g. A tile keeps
    // the grouping only if it holds one head or all of them.
    if (holdsAllHeads(offsets[1], sizes[1])) {
      keyOffsets[1] = b.getIndexAttr(0);
      keySizes[1] = tensor::getMixedSize(b, loc, getKey(), 1);
    } else if (isConstantIntValue(sizes[1], 1)) {
      keyOffsets[1] = keyHead(b, loc, *this, offsets[1]);
    } else {
      return emitOpError("can be tiled along heads only one head at a time");
    }
  }

  Value query = slice(getQuery(), rowOffsets, rowSizes);
  Value key = slice(getKey(), keyOffsets, keySizes);
  Value value = slice(getValue(), keyOffsets, keySizes);

  // The tile starts where the op starts plus the tile's offset.
  SmallVector<OpFoldResult> position = getMixedPosition();
  for (int64_t d = 0; d < rank; ++d) {
    OpFoldResult &entry = position[4 - rank + d];
    AffineExpr lhs = b.getAffineDimExpr(0), rhs = b.getAffineDimExpr(1);
    entry = affine::makeComposedFoldedAffineApply(b, loc, lhs + rhs,
                                                  {entry, offsets[d]});
  }
  Value keys = getKeys();
  if (keys) {
    // The op's existing keys that fall into this tile.
    AffineExpr existing = b.getAffineDimExpr(0), offset = b.getAffineDimExpr(1),
               size = b.getAffineDimExpr(2);
    OpFoldResult clipped = affine::makeComposedFoldedAffineMin(
        b, loc, AffineMap::get(3, 0, {existing - offset, size}, b.getContext()),
        {keys, offsets.back(), sizes.back()});
    keys = getValueOrCreateConstantIndexOp(
        b, loc,
        affine::makeComposedFoldedAffineMax(
            b, loc,
            AffineMap::get(1, 0,
                           {b.getAffineDimExpr(0), b.getAffineConstantExpr(0)},
                           b.getContext()),
            {clipped}));
  }
  auto ofBatches = [&](Value lengths) {
    return lengths ? slice(lengths, {offsets[0]}, {sizes[0]}) : lengths;
  };

  SmallVector<int64_t> staticPosition;
  SmallVector<Value> dynamicPosition;
  dispatchIndexOpFoldResults(position, dynamicPosition, staticPosition);
  auto tiled = OnlineAttentionOp::create(
      b, loc, state.getTypes(), query, key, value, state[0], state[1], state[2],
      dynamicPosition, getExtents(), keys, getPartial(), getFactor(),
      ofBatches(getLengths()), ofBatches(getQueryLengths()),
      ofBatches(getKeyLengths()),
      /*keyTiles=*/Value(),
      /*tileCounts=*/Value(), staticPosition, getStaticExtents(), getScale(),
      getUnit(), getMaskAttr(), getPrecisionAttr(),
      /*blockSizes=*/DenseI64ArrayAttr(), /*multiples=*/DenseI64ArrayAttr(),
      getScheduleAttr(), getPackedAttr());
  IRMapping mapping;
  getScore().cloneInto(&tiled.getScore(), mapping);
  return TilingResult{{tiled},
                      SmallVector<Value>(tiled->getResults()),
                      std::move(slice.slices)};
}

FailureOr<TilingResult>
OnlineAttentionOp::getTiledImplementation(OpBuilder &b,
                                          ArrayRef<OpFoldResult> offsets,
                                          ArrayRef<OpFoldResult> sizes) {
  Slicer slice{b, getLoc(), {}};
  SmallVector<Value> state;
  for (Value init : getDpsInits())
    state.push_back(slice(init, offsets.drop_back(), sizes.drop_back()));
  FailureOr<TilingResult> tiled = tileFrom(b, state, offsets, sizes);
  if (succeeded(tiled))
    llvm::append_range(tiled->generatedSlices, slice.slices);
  return tiled;
}

LogicalResult OnlineAttentionOp::getResultTilePosition(
    OpBuilder &b, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  return leadingTile(b, getResult(resultNumber), offsets.drop_back(),
                     sizes.drop_back(), resultOffsets, resultSizes);
}

FailureOr<TilingResult>
OnlineAttentionOp::generateResultTileValue(OpBuilder &b, unsigned resultNumber,
                                           ArrayRef<OpFoldResult> offsets,
                                           ArrayRef<OpFoldResult> sizes) {
  // Any result tile needs all the keys of its rows.
  int64_t rows = getQuery().getType().getRank() - 1;
  SmallVector<OpFoldResult> loopOffsets(offsets.take_front(rows)),
      loopSizes(sizes.take_front(rows));
  loopOffsets.push_back(b.getIndexAttr(0));
  loopSizes.push_back(tensor::getMixedSize(b, getLoc(), getKey(), rows - 1));
  FailureOr<TilingResult> tiled =
      getTiledImplementation(b, loopOffsets, loopSizes);
  if (failed(tiled))
    return failure();
  return TilingResult{tiled->tiledOps,
                      {tiled->tiledValues[resultNumber]},
                      tiled->generatedSlices};
}

//===----------------------------------------------------------------------===//
// FinalizeOp
//===----------------------------------------------------------------------===//

SmallVector<utils::IteratorType> FinalizeOp::getLoopIteratorTypes() {
  return SmallVector<utils::IteratorType>(getMax().getType().getRank(),
                                          utils::IteratorType::parallel);
}

SmallVector<Range> FinalizeOp::getIterationDomain(OpBuilder &b) {
  SmallVector<Range> domain;
  for (int64_t d = 0; d < getMax().getType().getRank(); ++d)
    domain.push_back(fullRange(b, getLoc(), getMax(), d));
  return domain;
}

FailureOr<TilingResult>
FinalizeOp::getTiledImplementation(OpBuilder &b, ArrayRef<OpFoldResult> offsets,
                                   ArrayRef<OpFoldResult> sizes) {
  Slicer slice{b, getLoc(), {}};
  SmallVector<Value> operands;
  SmallVector<Type> types;
  for (Value operand : getOperands())
    operands.push_back(slice(operand, offsets, sizes));
  for (Value init : ArrayRef<Value>(operands).drop_front(3))
    types.push_back(init.getType());
  Operation *tiled =
      FinalizeOp::create(b, getLoc(), types, operands, (*this)->getAttrs());
  return TilingResult{
      {tiled}, SmallVector<Value>(tiled->getResults()), slice.slices};
}

LogicalResult FinalizeOp::getResultTilePosition(
    OpBuilder &b, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  return leadingTile(b, getResult(resultNumber), offsets, sizes, resultOffsets,
                     resultSizes);
}

FailureOr<TilingResult>
FinalizeOp::generateResultTileValue(OpBuilder &b, unsigned resultNumber,
                                    ArrayRef<OpFoldResult> offsets,
                                    ArrayRef<OpFoldResult> sizes) {
  int64_t rows = getMax().getType().getRank();
  FailureOr<TilingResult> tiled = getTiledImplementation(
      b, offsets.take_front(rows), sizes.take_front(rows));
  if (failed(tiled))
    return failure();
  return TilingResult{tiled->tiledOps,
                      {tiled->tiledValues[resultNumber]},
                      tiled->generatedSlices};
}
