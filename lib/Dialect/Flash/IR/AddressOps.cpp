//===- AddressOps.cpp - Views of rows in memory ---------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flash;

//===----------------------------------------------------------------------===//
// Rows packed by offsets
//===----------------------------------------------------------------------===//

/// Where the rows of the sequence `batch` in `memory` start and end.
static std::pair<Value, Value> emitSequence(OpBuilder &b, Location loc,
                                            Value memory, Value offsets,
                                            Value batch) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0),
        one = arith::ConstantIndexOp::create(b, loc, 1),
        rows = getValueOrCreateConstantIndexOp(
            b, loc, tensor::getMixedSize(b, loc, memory, 2));
  auto read = [&](Value at, Value least) -> Value {
    Value offset = tensor::ExtractOp::create(b, loc, offsets, at);
    offset = arith::IndexCastOp::create(b, loc, b.getIndexType(), offset);
    return arith::MinSIOp::create(
        b, loc, arith::MaxSIOp::create(b, loc, offset, least), rows);
  };
  Value start = read(batch, zero);
  return {start, read(arith::AddIOp::create(b, loc, batch, one), start)};
}

static SmallVector<OpFoldResult>
emitPackedAddress(OpBuilder &b, Location loc, Value memory, Value offsets,
                  ArrayRef<OpFoldResult> position) {
  Value batch = getValueOrCreateConstantIndexOp(b, loc, position[0]),
        row = getValueOrCreateConstantIndexOp(b, loc, position[2]);
  Value start = emitSequence(b, loc, memory, offsets, batch).first;
  Value inMemory = arith::AddIOp::create(b, loc, start, row);
  return {b.getIndexAttr(0), position[1], inMemory};
}

static Value emitPackedLength(OpBuilder &b, Location loc, Value memory,
                              Value offsets, Value batch) {
  auto [start, end] = emitSequence(b, loc, memory, offsets, batch);
  return arith::SubIOp::create(b, loc, end, start);
}

/// The view that `offsets` make of `memory`.
static SmallVector<OpFoldResult> emitPackedSizes(OpBuilder &b, Location loc,
                                                 Value memory, Value offsets) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, memory);
  sizes[0] = affine::makeComposedFoldedAffineApply(
      b, loc, b.getAffineDimExpr(0) - 1,
      {tensor::getMixedSize(b, loc, offsets, 0)});
  return sizes;
}

static LogicalResult verifyPacked(Operation *op, RankedTensorType memory,
                                  RankedTensorType view,
                                  RankedTensorType offsets) {
  int64_t rank = memory.getRank();
  if ((rank != 3 && rank != 4) || memory.getDimSize(0) != 1)
    return op->emitOpError("rows that lie behind each other are [1, H, T, D] "
                           "or [1, H, T], got ")
           << memory;
  if (!offsets.isDynamicDim(0) && offsets.getDimSize(0) < 1)
    return op->emitOpError("offsets have one element more than there are "
                           "sequences, got ")
           << offsets;
  SmallVector<int64_t> shape(memory.getShape());
  shape[0] = offsets.isDynamicDim(0) ? ShapedType::kDynamic
                                     : offsets.getDimSize(0) - 1;
  auto expected = RankedTensorType::get(shape, memory.getElementType());
  if (view != expected)
    return op->emitOpError("the view of ")
           << memory << " by " << offsets << " is " << expected << ", got "
           << view;
  return success();
}

SmallVector<OpFoldResult>
UnpackOp::emitAddress(OpBuilder &b, Location loc,
                      ArrayRef<OpFoldResult> position) {
  return emitPackedAddress(b, loc, getMemory(), getOffsets(), position);
}

Value UnpackOp::emitLength(OpBuilder &b, Location loc, Value batch) {
  return emitPackedLength(b, loc, getMemory(), getOffsets(), batch);
}

SmallVector<OpFoldResult> UnpackOp::emitSizes(OpBuilder &b, Location loc) {
  return emitPackedSizes(b, loc, getMemory(), getOffsets());
}

LogicalResult UnpackOp::verify() {
  RankedTensorType view = getView().getType();
  if (failed(verifyPacked(*this, getMemory().getType(), view,
                          getOffsets().getType())))
    return failure();
  if (getLengths().getType().getDimSize(0) != view.getDimSize(0))
    return emitOpError("has a length for each sequence of ")
           << view << ", got " << getLengths().getType();
  return success();
}

SmallVector<OpFoldResult> PackOp::emitAddress(OpBuilder &b, Location loc,
                                              ArrayRef<OpFoldResult> position) {
  return emitPackedAddress(b, loc, getMemory(), getOffsets(), position);
}

Value PackOp::emitLength(OpBuilder &b, Location loc, Value batch) {
  return emitPackedLength(b, loc, getMemory(), getOffsets(), batch);
}

SmallVector<OpFoldResult> PackOp::emitSizes(OpBuilder &b, Location loc) {
  return emitPackedSizes(b, loc, getMemory(), getOffsets());
}

LogicalResult PackOp::verify() {
  return verifyPacked(*this, getMemory().getType(), getView().getType(),
                      getOffsets().getType());
}
