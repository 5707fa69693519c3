//===- BlockList.cpp - The tiles that a block map lists -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockList.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flash;

BlockList::BlockList(OpBuilder &b, Location loc, Value tiles, Value counts,
                     ValueRange row, bool isGiven)
    : tiles(tiles), row(row) {
  // One map may be for all batches, or for all heads.
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tiles.getType()).getShape();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  for (unsigned dim : {0, 1})
    if (shape[dim] == 1)
      this->row[dim] = constant(0);
  auto atMost = [&](Value number, Value limit) -> Value {
    return arith::MinSIOp::create(b, loc, number, limit);
  };
  auto sizeOf = [&](unsigned dim) {
    return getValueOrCreateConstantIndexOp(
        b, loc, tensor::getMixedSize(b, loc, tiles, dim));
  };
  // How many batches and heads have lists may be known at run time only.
  if (isGiven)
    for (unsigned dim : {0, 1})
      if (ShapedType::isDynamic(shape[dim]))
        this->row[dim] = atMost(
            row[dim], arith::SubIOp::create(b, loc, sizeOf(dim), constant(1)));
  endOfParts = read(b, loc, counts, constant(0));
  end = read(b, loc, counts, constant(1));
  if (!isGiven)
    return;
  end = atMost(arith::MaxSIOp::create(b, loc, end, constant(0)), sizeOf(3));
  endOfParts =
      atMost(arith::MaxSIOp::create(b, loc, endOfParts, constant(0)), end);
}

Value BlockList::read(OpBuilder &b, Location loc, Value tensor,
                      Value entry) const {
  SmallVector<Value> indices(row);
  indices.push_back(entry);
  Value number = tensor::ExtractOp::create(b, loc, tensor, indices);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
}

Value BlockList::getStart(OpBuilder &b, Location loc, Value entry,
                          int64_t tile) const {
  return getValueOrCreateConstantIndexOp(
      b, loc,
      affine::makeComposedFoldedAffineApply(
          b, loc, b.getAffineDimExpr(0) * tile, {read(b, loc, tiles, entry)}));
}
