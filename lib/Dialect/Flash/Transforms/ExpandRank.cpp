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

/// Gives the op operands of rank 4. Operands with batches, heads and more get
/// the missing dimension; vectors and what a score region reads stay as they
/// are.
static void expandToRank4(AttentionOpInterface op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  // The missing batch dimension comes first; missing heads come second.
  int64_t position = op.hasBatch() ? 1 : 0;
  auto expand = [&](Value tensor) -> Value {
    if (!tensor)
      return tensor;
    auto type =
        insertUnitDim(cast<RankedTensorType>(tensor.getType()), position);
    return tensor::ExpandShapeOp::create(b, loc, type, tensor,
                                         firstTwoTogether(type.getRank()));
  };
  auto expandType = [&](Value result) -> RankedTensorType {
    if (!result)
      return RankedTensorType();
    return insertUnitDim(cast<RankedTensorType>(result.getType()), position);
  };
  AttentionOpInterface expanded;
  if (auto attention = dyn_cast<AttentionOp>(op.getOperation())) {
    expanded = AttentionOp::create(
        b, loc, expandType(attention.getOutput()),
        expandType(attention.getLse()), expand(op.getQuery()),
        expand(op.getKey()), expand(op.getValue()), op.getLengths(),
        op.getQueryLengths(), op.getKeyLengths(), op.getSink(),
        /*keyTiles=*/Value(), /*tileCounts=*/Value(),
        /*leading=*/LeadingAttr(), attention.getScaleAttr(),
        attention.getMaskAttr(), attention.getPrecisionAttr(),
        /*blockSizes=*/DenseI64ArrayAttr(), attention.getMultiplesAttr(),
        attention.getScheduleAttr());
  } else {
    auto grad = cast<AttentionGradOp>(op.getOperation());
    expanded = AttentionGradOp::create(
        b, loc, expandType(grad.getQueryGrad()), expandType(grad.getKeyGrad()),
        expandType(grad.getValueGrad()),
        grad.getSink() ? grad.getSinkGrad().getType() : Type(),
        grad.getCapturedGrads().getTypes(), expand(op.getQuery()),
        expand(op.getKey()), expand(op.getValue()), expand(grad.getOutput()),
        expand(grad.getLse()), expand(grad.getOutputGrad()), op.getLengths(),
        op.getQueryLengths(), op.getKeyLengths(), op.getSink(),
        /*keyTiles=*/Value(), /*keyTileCounts=*/Value(),
        /*queryTiles=*/Value(), /*queryTileCounts=*/Value(),
        /*queryTileRanks=*/Value(),
        /*leading=*/LeadingAttr(), grad.getScaleAttr(), grad.getMaskAttr(),
        grad.getPrecisionAttr(), /*blockSizes=*/DenseI64ArrayAttr(),
        grad.getMultiplesAttr(), grad.getScheduleAttr(),
        expand(grad.getLseGrad()), grad.getCaptured());
  }
  expanded.getScore().takeBody(op.getScore());
  for (auto [result, wide] :
       llvm::zip_equal(op->getResults(), expanded->getResults())) {
    auto type = cast<RankedTensorType>(result.getType());
    Value narrow = wide;
    if (wide.getType() != type)
      narrow = tensor::CollapseShapeOp::create(
          b, loc, type, wide, firstTwoTogether(type.getRank() + 1));
    result.replaceAllUsesWith(narrow);
  }
  op->erase();
}

namespace {
struct ExpandRank : flash::impl::ExpandRankBase<ExpandRank> {
  void runOnOperation() override {
    SmallVector<AttentionOpInterface> ops;
    getOperation().walk([&](AttentionOpInterface op) {
      if (op.getQuery().getType().getRank() == 3)
        ops.push_back(op);
    });
    llvm::for_each(ops, expandToRank4);
  }
};
} // namespace
