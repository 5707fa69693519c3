//===- TileOps.cpp - Verifiers of the tile dialect -----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace flash::tile;

#define GET_OP_CLASSES
#include "flash/Dialect/Tile/IR/TileOps.cpp.inc"

static LayoutAttrInterface getLayout(Type type) {
  return cast<LayoutAttrInterface>(cast<RankedTensorType>(type).getEncoding());
}

/// Checks a copy of rows of `memory` into or out of a tile of `columns`.
static LogicalResult verifyRowsOfMemory(Operation *op, MemRefType memory,
                                        size_t numIndices, Type elementType,
                                        std::optional<int64_t> columns) {
  int64_t trailing = columns ? 1 : 0;
  if (memory.getRank() != static_cast<int64_t>(numIndices) + trailing)
    return op->emitOpError(
               "needs an index for each dimension but the columns: ")
           << memory.getRank() - trailing << ", got " << numIndices;
  if (memory.getElementType() != elementType)
    return op->emitOpError("copies elements of ")
           << memory.getElementType() << " into a tile of " << elementType;
  if (columns && memory.getShape().back() != *columns)
    return op->emitOpError("needs as many columns in memory as in the tile, ")
           << *columns;
  if (!memory.isLastDimUnitStride())
    return op->emitOpError("needs memory whose last dimension is contiguous");
  return success();
}

LogicalResult FetchOp::verify() {
  SmemType tile = getResult().getType();
  return verifyRowsOfMemory(*this, getSource().getType(), getIndices().size(),
                            tile.getElementType(), tile.getColumns());
}

LogicalResult CopyAsyncOp::verify() {
  SmemType tile = getRing().getType().getSlot();
  return verifyRowsOfMemory(*this, getSource().getType(), getIndices().size(),
                            tile.getElementType(), tile.getColumns());
}

LogicalResult StoreOp::verify() {
  auto tile = cast<RankedTensorType>(getX().getType());
  std::optional<int64_t> columns;
  if (tile.getRank() == 2)
    columns = tile.getDimSize(1);
  return verifyRowsOfMemory(*this, getDestination().getType(),
                            getIndices().size(), tile.getElementType(),
                            columns);
}

LogicalResult MmaAsyncOp::verify() {
  RankedTensorType result = getResult().getType().getValue();
  auto layout = dyn_cast_or_null<FragmentAttr>(result.getEncoding());
  if (!layout || !result.getElementType().isF32())
    return emitOpError("gives a fragment of f32, not ") << result;
  int64_t rows, inner;
  Type elementType;
  if (auto tile = dyn_cast<SmemType>(getA().getType())) {
    rows = tile.getRows();
    inner = tile.getColumns();
    elementType = tile.getElementType();
  } else {
    auto tensor = cast<RankedTensorType>(getA().getType());
    if (tensor.getEncoding() != layout)
      return emitOpError("needs operands and result over the same warps");
    rows = tensor.getDimSize(0);
    inner = tensor.getDimSize(1);
    elementType = tensor.getElementType();
  }
  SmemType b = getB().getType();
  int64_t innerOfB = getTransposeB() ? b.getColumns() : b.getRows();
  int64_t columns = getTransposeB() ? b.getRows() : b.getColumns();
  if (elementType != b.getElementType())
    return emitOpError("multiplies elements of ")
           << elementType << " by elements of " << b.getElementType();
  if (getTf32() && !elementType.isF32())
    return emitOpError("rounds operands of f32 only to tf32, not of ")
           << elementType;
  if (inner != innerOfB)
    return emitOpError("contracts ")
           << inner << " columns of a with " << innerOfB << " of b";
  if (result.getDimSize(0) != rows || result.getDimSize(1) != columns)
    return emitOpError("gives a tile of ")
           << rows << " x " << columns << ", not " << result;
  if (getC() && getC().getType() != result)
    return emitOpError("adds to a tile of another type than its result: ")
           << getC().getType();
  return success();
}

LogicalResult LoadOp::verify() {
  SmemType source = getSource().getType();
  RankedTensorType result = getResult().getType();
  if (result.getElementType() == source.getElementType() &&
      result.getShape() ==
          ArrayRef<int64_t>({source.getRows(), source.getColumns()}))
    return success();
  return emitOpError("gives a tensor of another shape or element type than ")
         << source;
}

LogicalResult LoadRowOp::verify() {
  RankedTensorType result = getResult().getType();
  if (result.getElementType().isF32() &&
      result.getDimSize(1) == getSource().getType().getColumns())
    return success();
  return emitOpError("gives a tensor of f32 with as many columns as ")
         << getSource().getType();
}

LogicalResult BroadcastOp::verify() {
  RankedTensorType result = getResult().getType();
  auto source = dyn_cast<RankedTensorType>(getSource().getType());
  if (getElementTypeOrSelf(getSource().getType()) != result.getElementType())
    return emitOpError("does not convert elements to ")
           << result.getElementType();
  if (source &&
      (source.getDimSize(0) != result.getDimSize(0) ||
       getLayout(source).getNumWarps() != getLayout(result).getNumWarps()))
    return emitOpError("needs as many rows and warps in its result as in its "
                       "operand");
  return success();
}

LogicalResult FoldOp::verify() {
  RankedTensorType x = getX().getType(), result = getResult().getType();
  if (x.getDimSize(0) == result.getDimSize(0) &&
      x.getElementType() == result.getElementType() &&
      getLayout(x).getNumWarps() == getLayout(result).getNumWarps())
    return success();
  return emitOpError("needs rows, warps and elements alike in its operands");
}

LogicalResult ReduceOp::verify() {
  RankedTensorType x = getX().getType(), result = getResult().getType();
  if (x.getDimSize(0) == result.getDimSize(0) &&
      x.getElementType() == result.getElementType() &&
      getLayout(x).getNumWarps() == getLayout(result).getNumWarps())
    return success();
  return emitOpError("needs rows, warps and elements alike in its operand and "
                     "result");
}

LogicalResult MapOp::verify() {
  Block &block = getBody().front();
  Type element = getX().getType().getElementType();
  Type index = IndexType::get(getContext());
  if (block.getArgumentTypes() != ArrayRef<Type>({element, index, index}))
    return emitOpError("needs a region with the arguments (")
           << element << ", index, index)";
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || yield.getResult().getType() != element)
    return emitOpError("needs a region that yields ") << element;
  return success();
}
