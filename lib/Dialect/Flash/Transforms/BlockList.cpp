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
                     Value batch, Value head, Value number)
    : tiles(tiles) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tiles.getType()).getShape();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  // One map may be for all batches, or for all heads.
  row = {shape[0] == 1 ? constant(0) : batch,
         shape[1] == 1 ? constant(0) : head, number};
  endOfParts = read(b, loc, counts, constant(0));
  end = read(b, loc, counts, constant(1));
}

Value BlockList::read(OpBuilder &b, Location loc, Value tensor,
                      Value at) const {
  SmallVector<Value> indices(row);
  indices.push_back(at);
  Value number = tensor::ExtractOp::create(b, loc, tensor, indices);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
}

Value BlockList::getStart(OpBuilder &b, Location loc, Value place,
                          int64_t tile) const {
  return getValueOrCreateConstantIndexOp(
      b, loc,
      affine::makeComposedFoldedAffineApply(
          b, loc, b.getAffineDimExpr(0) * tile, {read(b, loc, tiles, place)}));
}
