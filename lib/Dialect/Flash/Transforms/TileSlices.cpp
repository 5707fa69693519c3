//===- TileSlices.cpp - Tiles of attention's operands ---------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileSlices.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/ViewLikeInterfaceUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace flash;

OpFoldResult TiledDim::existing(OpBuilder &b, Location loc, Value start) const {
  if (!isRagged())
    return b.getIndexAttr(tile);
  AffineExpr begin = b.getAffineDimExpr(0), end = b.getAffineSymbolExpr(0);
  return affine::makeComposedFoldedAffineMin(
      b, loc,
      AffineMap::get(1, 1, {end - begin, b.getAffineConstantExpr(tile)},
                     b.getContext()),
      {start, this->end});
}

HeadGroups::HeadGroups(OpBuilder &b, Location loc, Value query, Value key) {
  OpFoldResult queryHeads = tensor::getMixedSize(b, loc, query, 1);
  OpFoldResult keyHeads = tensor::getMixedSize(b, loc, key, 1);
  std::optional<int64_t> staticQueryHeads = getConstantIntValue(queryHeads),
                         staticKeyHeads = getConstantIntValue(keyHeads);
  if (staticQueryHeads && staticKeyHeads)
    group = b.getIndexAttr(*staticQueryHeads / *staticKeyHeads);
  else
    group = arith::DivUIOp::create(
                b, loc, getValueOrCreateConstantIndexOp(b, loc, queryHeads),
                getValueOrCreateConstantIndexOp(b, loc, keyHeads))
                .getResult();
}

OpFoldResult HeadGroups::getKeyHead(OpBuilder &b, Location loc,
                                    Value head) const {
  if (std::optional<int64_t> size = getConstantIntValue(group))
    return affine::makeComposedFoldedAffineApply(
        b, loc, b.getAffineDimExpr(0).floorDiv(*size), {head});
  return arith::DivUIOp::create(b, loc, head, cast<Value>(group)).getResult();
}

static Value pad(OpBuilder &b, Location loc, Value slice,
                 ArrayRef<OpFoldResult> sizes, ArrayRef<int64_t> shape,
                 Value padding) {
  AffineExpr existing = b.getAffineDimExpr(0);
  SmallVector<OpFoldResult> low(shape.size(), b.getIndexAttr(0)), high;
  for (auto [size, tile] : llvm::zip_equal(sizes, shape))
    high.push_back(
        affine::makeComposedFoldedAffineApply(b, loc, tile - existing, {size}));
  auto type = cast<RankedTensorType>(slice.getType());
  return tensor::PadOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), slice, low,
      high, padding);
}

Value flash::extractRows(OpBuilder &b, Location loc, Value tensor,
                         ArrayRef<OpFoldResult> first, OpFoldResult rows,
                         int64_t tile, std::optional<Columns> columns,
                         Padding padding) {
  auto type = cast<RankedTensorType>(tensor.getType());
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> offsets(first), sizes = {one, one, rows};
  SmallVector<int64_t> tileShape = {tile};
  if (type.getRank() == 4) {
    if (!columns)
      columns = {zero, type.getShape().back()};
    offsets.push_back(columns->start);
    sizes.push_back(b.getIndexAttr(columns->count));
    tileShape.push_back(columns->count);
  }
  SmallVector<OpFoldResult> strides(type.getRank(), one);
  SmallVector<int64_t> sliceShape(tileShape);
  std::optional<int64_t> staticRows = getConstantIntValue(rows);
  sliceShape[0] = staticRows.value_or(ShapedType::kDynamic);
  Value slice = tensor::ExtractSliceOp::create(
      b, loc, RankedTensorType::get(sliceShape, type.getElementType()), tensor,
      offsets, sizes, strides);
  Type element = type.getElementType();
  if (padding == Padding::Zero || staticRows == tile)
    return padToTile(b, loc, slice, ArrayRef(sizes).drop_front(2), tileShape,
                     b.getZeroAttr(element));
  return pad(b, loc, slice, ArrayRef(sizes).drop_front(2), tileShape,
             ub::PoisonOp::create(b, loc, element));
}

SmallVector<OpFoldResult> flash::getSizes(OpBuilder &b, Location loc,
                                          Value tensor) {
  auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice)
    return tensor::getMixedSizes(b, loc, tensor);
  SmallVector<OpFoldResult> sizes;
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  for (auto [dim, size] : llvm::enumerate(slice.getMixedSizes()))
    if (!dropped.test(dim))
      sizes.push_back(size);
  return sizes;
}

FailureOr<int64_t> flash::getMostRows(Operation *op, Value tensor,
                                      int64_t dim) {
  // The first bound that is found may not be the least.
  FailureOr<int64_t> rows = ValueBoundsConstraintSet::computeConstantBound(
      presburger::BoundType::UB, {tensor, dim},
      [](Value, std::optional<int64_t>, ValueBoundsConstraintSet &) {
        return false;
      },
      /*closedUB=*/true);
  if (failed(rows))
    op->emitOpError("has no known bound on its number of rows; cut it into "
                    "blocks of rows first");
  else
    rows = std::max<int64_t>(*rows, 1); // Of none, a tile is all padding.
  return rows;
}

Value flash::extractPart(OpBuilder &b, Location loc, Value tensor,
                         ArrayRef<OpFoldResult> offsets,
                         ArrayRef<OpFoldResult> sizes,
                         ArrayRef<int64_t> shape) {
  SmallVector<OpFoldResult> allOffsets(offsets), allSizes(sizes),
      strides(offsets.size(), b.getIndexAttr(1));
  if (auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>()) {
    SmallVector<OpFoldResult> outerOffsets, outerSizes, outerStrides;
    if (succeeded(affine::mergeOffsetsSizesAndStrides(
            b, loc, slice.getMixedOffsets(), slice.getMixedSizes(),
            slice.getMixedStrides(), slice.getDroppedDims(), allOffsets,
            allSizes, strides, outerOffsets, outerSizes, outerStrides))) {
      tensor = slice.getSource();
      allOffsets = outerOffsets;
      allSizes = outerSizes;
      strides = outerStrides;
    }
  }
  Type element = getElementTypeOrSelf(tensor);
  return tensor::ExtractSliceOp::create(b, loc,
                                        RankedTensorType::get(shape, element),
                                        tensor, allOffsets, allSizes, strides);
}

Value flash::padToTile(OpBuilder &b, Location loc, Value slice,
                       ArrayRef<OpFoldResult> sizes, ArrayRef<int64_t> shape,
                       TypedAttr padding) {
  if (cast<RankedTensorType>(slice.getType()).getShape() == shape)
    return slice;
  return pad(b, loc, slice, sizes, shape,
             arith::ConstantOp::create(b, loc, padding));
}
