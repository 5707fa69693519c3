//===- PackHeads.cpp - Query heads of a group in one tile -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/MaskNodes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace flash {
#define GEN_PASS_DEF_PACKHEADS
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// How many query heads of `op` read the same keys, if they can be packed; 1 if
/// not.
static int64_t getPackedHeads(AttentionOp op) {
  RankedTensorType query = op.getQuery().getType(), key = op.getKey().getType();
  // With more queries the heads of a group are no equally spaced rows in all
  // layouts. A sink is one of a head, and would have to be one of a row. A
  // batch without sequences has no rows, and no slice starts in it.
  bool isPossible = query.getRank() == 4 && query.getDimSize(2) == 1 &&
                    !query.isDynamicDim(1) && !key.isDynamicDim(1) &&
                    key.getDimSize(1) != 0 && query.getDimSize(0) != 0 &&
                    !op.getSink();
  return isPossible ? query.getDimSize(1) / key.getDimSize(1) : 1;
}

/// Which dimensions of [B, Hkv, group, ...] are those of [B, Hq, ...].
static SmallVector<ReassociationIndices> getHeadsTogether(int64_t rank) {
  SmallVector<ReassociationIndices> together = {{0}, {1, 2}};
  for (int64_t dim = 3; dim < rank; ++dim)
    together.push_back({dim});
  return together;
}

static RankedTensorType withoutDim(RankedTensorType type, int64_t dim) {
  return RankedTensorType::Builder(type).dropDim(dim);
}

static RankedTensorType getPackedType(RankedTensorType type, int64_t group) {
  SmallVector<int64_t> shape(type.getShape());
  shape[1] /= group;
  shape[2] = group;
  return RankedTensorType::get(shape, type.getElementType());
}

/// [B, Hq, 1, D] as [B, Hkv, group, D].
static Value packQuery(OpBuilder &b, Value query, int64_t group) {
  auto type = cast<RankedTensorType>(query.getType());
  Location loc = query.getLoc();
  // A slice is a view whatever the strides are. To collapse a dimension of one
  // would be none, for all that bufferization knows.
  SmallVector<OpFoldResult> zeros(4, b.getIndexAttr(0)),
      ones(4, b.getIndexAttr(1));
  Value heads = tensor::ExtractSliceOp::create(
      b, loc, withoutDim(type, 2), query, zeros,
      tensor::getMixedSizes(b, loc, query), ones);
  return tensor::ExpandShapeOp::create(b, loc, getPackedType(type, group),
                                       heads, getHeadsTogether(4));
}

/// [B, Hkv, group, ...] as [B, Hq, 1, ...].
static Value unpack(OpBuilder &b, Value packed, RankedTensorType type) {
  Location loc = packed.getLoc();
  auto together = getHeadsTogether(type.getRank());
  Value heads = tensor::CollapseShapeOp::create(b, loc, withoutDim(type, 2),
                                                packed, together);
  return tensor::ExpandShapeOp::create(b, loc, type, heads, together);
}

/// The mask where queries are the heads of a group, and all at position 0.
static MaskAttrInterface packMask(MaskAttrInterface mask, int64_t group) {
  MLIRContext *context = mask.getContext();
  AffineExpr b = getAffineDimExpr(0, context), h = getAffineDimExpr(1, context),
             i = getAffineDimExpr(2, context), j = getAffineDimExpr(3, context);
  AffineExpr zero = getAffineConstantExpr(0, context),
             one = getAffineConstantExpr(1, context);
  std::vector<MaskAttrInterface> packed;
  for (MaskNode &node : getMaskNodes(mask)) {
    if (node.kind == MaskForm::Kind::Set) {
      packed.push_back(AffineMaskAttr::get(
          context, IntegerSetAttr::get(node.set.replaceDimsAndSymbols(
                       {b, h * group + i, zero, j},
                       {one, getAffineSymbolExpr(1, context)},
                       /*numResultDims=*/4,
                       /*numResultSyms=*/2))));
      continue;
    }
    auto parts = llvm::map_to_vector(
        node.parts, [&](unsigned part) { return packed[part]; });
    packed.push_back(
        node.kind == MaskForm::Kind::Union
            ? cast<MaskAttrInterface>(AnyOfAttr::get(context, parts))
            : cast<MaskAttrInterface>(AllOfAttr::get(context, parts)));
  }
  return packed.back();
}

/// The same for the score region, whose arguments are score, b, h, i, j.
static void packScore(Block &score, int64_t group) {
  OpBuilder b = OpBuilder::atBlockBegin(&score);
  Location loc = score.getParentOp()->getLoc();
  Value head = score.getArgument(2), inGroup = score.getArgument(3);
  Value size = arith::ConstantIndexOp::create(b, loc, group);
  Value query = arith::ConstantIndexOp::create(b, loc, 0);
  auto first = arith::MulIOp::create(b, loc, head, size);
  auto queryHead = arith::AddIOp::create(b, loc, first, inGroup);
  head.replaceAllUsesExcept(queryHead, first);
  inGroup.replaceAllUsesExcept(query, queryHead);
}

static void pack(AttentionOp op, int64_t group) {
  OpBuilder b(op);
  MaskAttrInterface mask = op.getMaskAttr();
  // The queries are others now.
  DenseI64ArrayAttr multiples = op.getMultiplesAttr();
  if (multiples)
    multiples = b.getDenseI64ArrayAttr({1, multiples[1]});
  auto packed = AttentionOp::create(
      b, op.getLoc(), getPackedType(op.getOutput().getType(), group),
      op.getLse() ? getPackedType(op.getLse().getType(), group)
                  : RankedTensorType(),
      packQuery(b, op.getQuery(), group), op.getKey(), op.getValue(),
      op.getLengths(), /*sink=*/Value(), /*leading=*/LeadingAttr(),
      op.getScaleAttr(), mask ? packMask(mask, group) : mask,
      op.getPrecisionAttr(), multiples, op.getScheduleAttr());
  packed.getScore().takeBody(op.getScore());
  if (!packed.getScore().empty())
    packScore(packed.getScore().front(), group);
  for (auto [result, wide] :
       llvm::zip_equal(op->getResults(), packed->getResults()))
    result.replaceAllUsesWith(
        unpack(b, wide, cast<RankedTensorType>(result.getType())));
  op.erase();
}

namespace {
struct PackHeads : flash::impl::PackHeadsBase<PackHeads> {
  void runOnOperation() override {
    SmallVector<AttentionOp> ops;
    getOperation().walk([&](AttentionOp op) { ops.push_back(op); });
    for (AttentionOp op : ops)
      if (int64_t group = getPackedHeads(op); group > 1)
        pack(op, group);
  }
};
} // namespace
