//===- ExpandRank.cpp - Give rank-3 attention its missing dimension -------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace flash {
#define GEN_PASS_DEF_EXPANDRANK
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// `type` with a dimension of size one at `position`, 0 or 1.
static RankedTensorType insertUnitDim(RankedTensorType type, int64_t position) {
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + position, 1);
  return RankedTensorType::get(shape, type.getElementType());
}

/// Groups dimensions 0 and 1 of a tensor of `rank` and leaves the rest alone.
static SmallVector<ReassociationIndices> firstTwoTogether(int64_t rank) {
  SmallVector<ReassociationIndices> groups = {{0, 1}};
  for (int64_t d = 2; d < rank; ++d)
    groups.push_back({d});
  return groups;
}

static void expandToRank4(AttentionOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  // The missing batch dimension comes first; missing heads come second.
  int64_t position = op.hasBatch() ? 1 : 0;
  auto expand = [&](Value tensor) -> Value {
    return tensor::ExpandShapeOp::create(
        b, loc,
        insertUnitDim(cast<RankedTensorType>(tensor.getType()), position),
        tensor, firstTwoTogether(4));
  };
  Type lse = op.getLse() ? insertUnitDim(op.getLse().getType(), position)
                         : RankedTensorType();
  auto expanded = AttentionOp::create(
      b, loc, insertUnitDim(op.getOutput().getType(), position), lse,
      expand(op.getQuery()), expand(op.getKey()), expand(op.getValue()),
      op.getLengths(), op.getSink(), /*keyTiles=*/Value(),
      /*tileCounts=*/Value(), /*leading=*/LeadingAttr(), op.getScaleAttr(),
      op.getMaskAttr(), op.getPrecisionAttr(), op.getMultiplesAttr(),
      op.getScheduleAttr());
  expanded.getScore().takeBody(op.getScore());
  for (auto [result, wide] :
       llvm::zip_equal(op->getResults(), expanded->getResults())) {
    auto type = cast<RankedTensorType>(result.getType());
    result.replaceAllUsesWith(tensor::CollapseShapeOp::create(
        b, loc, type, wide, firstTwoTogether(type.getRank() + 1)));
  }
  op.erase();
}

namespace {
struct ExpandRank : flash::impl::ExpandRankBase<ExpandRank> {
  void runOnOperation() override {
    SmallVector<AttentionOp> ops;
    getOperation().walk([&](AttentionOp op) {
      if (op.getQuery().getType().getRank() == 3)
        ops.push_back(op);
    });
    llvm::for_each(ops, expandToRank4);
  }
};
} // namespace
