//===- TileSlices.cpp - Tiles of attention's operands ---------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/Utils/TileSlices.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/ViewLikeInterfaceUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace flash;

OpFoldResult TiledDim::existing(OpBuilder &b, Location loc, Value start) const {
  if (!isRagged())
    return b.getIndexAttr(tile);
  AffineExpr begin = b.getAffineDimExpr(0), end = b.getAffineSymbolExpr(0);
  OpFoldResult rows = affine::makeComposedFoldedAffineMin(
      b, loc,
      AffineMap::get(1, 1, {end - begin, b.getAffineConstantExpr(tile)},
                     b.getContext()),
      {start, this->end});
  if (!mayEndBefore)
    return rows;
  return affine::makeComposedFoldedAffineMax(
      b, loc,
      AffineMap::get(1, 0, {begin, b.getAffineConstantExpr(0)}, b.getContext()),
      {rows});
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

std::pair<OpFoldResult, OpFoldResult>
HeadGroups::getQueryHeads(OpBuilder &b, Location loc, Value keyHead) const {
  if (std::optional<int64_t> size = getConstantIntValue(group)) {
    AffineExpr first = b.getAffineDimExpr(0) * *size;
    auto apply = [&](AffineExpr expr) {
      return affine::makeComposedFoldedAffineApply(b, loc, expr, {keyHead});
    };
    return {apply(first), apply(first + *size)};
  }
  Value size = cast<Value>(group);
  Value first = arith::MulIOp::create(b, loc, keyHead, size);
  Value end = arith::AddIOp::create(b, loc, first, size);
  return {first, end};
}

OpFoldResult flash::getLength(OpBuilder &b, Location loc, OpFoldResult size,
                              Value lengths, Value batch) {
  if (!lengths)
    return size;
  Value written = tensor::ExtractOp::create(b, loc, lengths, batch);
  Value asIndex = arith::IndexCastOp::create(b, loc, b.getIndexType(), written);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value notNegative = arith::MaxSIOp::create(b, loc, asIndex, zero).getResult();
  return arith::MinSIOp::create(b, loc, notNegative,
                                getValueOrCreateConstantIndexOp(b, loc, size))
      .getResult();
}

Value flash::padToTile(OpBuilder &b, Location loc, Value slice,
                       ArrayRef<OpFoldResult> sizes, ArrayRef<int64_t> shape,
                       TypedAttr padding) {
  if (cast<RankedTensorType>(slice.getType()).getShape() == shape)
    return slice;
  Value filling = arith::ConstantOp::create(b, loc, padding);
  AffineExpr existing = b.getAffineDimExpr(0);
  SmallVector<OpFoldResult> low(shape.size(), b.getIndexAttr(0)), high;
  for (auto [size, tile] : llvm::zip_equal(sizes, shape))
    high.push_back(
        affine::makeComposedFoldedAffineApply(b, loc, tile - existing, {size}));
  auto type = cast<RankedTensorType>(slice.getType());
  return tensor::PadOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), slice, low,
      high, filling);
}

/// Says of a tile that was padded, if any, that what it lacks is behind the
/// memory's end.
static Value endAtMemory(Value tile, bool toEnd) {
  if (auto pad = tile.getDefiningOp<tensor::PadOp>(); pad && toEnd)
    pad->setAttr(toEndName, UnitAttr::get(pad.getContext()));
  return tile;
}

Value flash::extractRows(OpBuilder &b, Location loc, Value tensor,
                         ArrayRef<OpFoldResult> first, OpFoldResult rows,
                         int64_t tile, std::optional<Columns> columns,
                         bool toEnd) {
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
  return endAtMemory(padToTile(b, loc, slice, ArrayRef(sizes).drop_front(2),
                               tileShape, b.getZeroAttr(type.getElementType())),
                     toEnd);
}

SmallVector<OpFoldResult> flash::getSizes(OpBuilder &b, Location loc,
                                          Value tensor) {
  SmallVector<OpFoldResult> sizes;
  if (auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>()) {
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    for (auto [dim, size] : llvm::enumerate(slice.getMixedSizes()))
      if (!dropped.test(dim))
        sizes.push_back(size);
  } else {
    sizes = tensor::getMixedSizes(b, loc, tensor);
  }
  // What a type leaves open may be a constant all the same.
  for (OpFoldResult &size : sizes)
    if (auto value = dyn_cast<Value>(size))
      size = getAsOpFoldResult(value);
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
    rows = std::max<int64_t>(*rows, 1); // Without rows, a tile is all padding.
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

ArrayAttr flash::getBlockMapping(OpBuilder &b, size_t numDims) {
  return b.getArrayAttr(llvm::map_to_vector(
      llvm::reverse(llvm::seq(numDims)), [&](size_t dim) -> Attribute {
        return gpu::GPUBlockMappingAttr::get(
            b.getContext(),
            static_cast<gpu::MappingId>(
                static_cast<size_t>(gpu::MappingId::LinearDim0) + dim));
      }));
}

/// Swaps the first two dimensions; `sizes` are the sizes of the result.
static Value swapHeadsAndQueries(OpBuilder &b, Location loc, Value tensor,
                                 ArrayRef<OpFoldResult> sizes) {
  Value empty =
      tensor::EmptyOp::create(b, loc, sizes, getElementTypeOrSelf(tensor));
  SmallVector<int64_t> permutation = {1, 0};
  if (sizes.size() == 3)
    permutation.push_back(2);
  return linalg::TransposeOp::create(b, loc, tensor, empty, permutation)
      ->getResult(0);
}

/// Which dimensions of queries by heads are the rows of a tile.
static SmallVector<ReassociationIndices> getRowDims(int64_t rank) {
  SmallVector<ReassociationIndices> dims = {{0, 1}};
  if (rank == 3)
    dims.push_back({2});
  return dims;
}

/// How many rows `queries` of `heads` heads are.
static OpFoldResult countRows(OpBuilder &b, Location loc, int64_t heads,
                              OpFoldResult queries) {
  return affine::makeComposedFoldedAffineApply(
      b, loc, b.getAffineDimExpr(0) * heads, {queries});
}

Value flash::packRows(OpBuilder &b, Location loc, Value tensor,
                      ArrayRef<OpFoldResult> first, int64_t heads,
                      OpFoldResult queries, int64_t tile,
                      std::optional<Columns> columns, bool toEnd) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Type element = type.getElementType();
  OpFoldResult one = b.getIndexAttr(1), ofHeads = b.getIndexAttr(heads);
  SmallVector<OpFoldResult> offsets(first), sizes = {one, ofHeads, queries},
                                            byQuery = {queries, ofHeads};
  OpFoldResult rows = countRows(b, loc, heads, queries);
  SmallVector<OpFoldResult> rowSizes = {rows};
  auto sizeOf = [](OpFoldResult size) {
    return getConstantIntValue(size).value_or(ShapedType::kDynamic);
  };
  SmallVector<int64_t> shape = {heads, sizeOf(queries)}, tileShape = {tile};
  if (type.getRank() == 4) {
    if (!columns)
      columns = {b.getIndexAttr(0), type.getShape().back()};
    offsets.push_back(columns->start);
    shape.push_back(columns->count);
    tileShape.push_back(columns->count);
    for (auto *list : {&sizes, &byQuery, &rowSizes})
      list->push_back(b.getIndexAttr(columns->count));
  }
  Value slice = tensor::ExtractSliceOp::create(
      b, loc, RankedTensorType::get(shape, element), tensor, offsets, sizes,
      SmallVector<OpFoldResult>(type.getRank(), one));
  slice = swapHeadsAndQueries(b, loc, slice, byQuery);
  slice = tensor::CollapseShapeOp::create(b, loc, slice,
                                          getRowDims(byQuery.size()));
  if (sizeOf(rows) == tile)
    return slice;
  return endAtMemory(
      padToTile(b, loc, slice, rowSizes, tileShape, b.getZeroAttr(element)),
      toEnd);
}

/// The first rows of a tile in which heads are packed, by heads, then queries.
static Value unpackRows(OpBuilder &b, Location loc, Value tile, int64_t heads,
                        OpFoldResult queries) {
  auto type = cast<RankedTensorType>(tile.getType());
  OpFoldResult rows = countRows(b, loc, heads, queries);
  SmallVector<OpFoldResult> sizes = {rows},
                            byQuery = {queries, b.getIndexAttr(heads)},
                            byHead = {byQuery[1], byQuery[0]};
  if (type.getRank() == 2)
    for (auto *list : {&sizes, &byQuery, &byHead})
      list->push_back(b.getIndexAttr(type.getDimSize(1)));
  if (getConstantIntValue(rows) != type.getDimSize(0)) {
    int64_t rank = type.getRank();
    tile = tensor::ExtractSliceOp::create(
        b, loc, tile, SmallVector<OpFoldResult>(rank, b.getIndexAttr(0)), sizes,
        SmallVector<OpFoldResult>(rank, b.getIndexAttr(1)));
  }
  SmallVector<int64_t> shape = llvm::map_to_vector(byQuery, [](auto size) {
    return getConstantIntValue(size).value_or(ShapedType::kDynamic);
  });
  tile = tensor::ExpandShapeOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), tile,
      getRowDims(byQuery.size()), byQuery);
  return swapHeadsAndQueries(b, loc, tile, byHead);
}

Value flash::takeRows(OpBuilder &b, Location loc, Value tile, OpFoldResult rows,
                      int64_t heads) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (heads > 1)
    return unpackRows(b, loc, tile, heads, rows);
  if (getConstantIntValue(rows) == type.getDimSize(0))
    return tile;
  SmallVector<OpFoldResult> sizes = {rows};
  if (type.getRank() == 2)
    sizes.push_back(b.getIndexAttr(type.getDimSize(1)));
  return tensor::ExtractSliceOp::create(
      b, loc, tile, SmallVector<OpFoldResult>(sizes.size(), b.getIndexAttr(0)),
      sizes, SmallVector<OpFoldResult>(sizes.size(), b.getIndexAttr(1)));
}
