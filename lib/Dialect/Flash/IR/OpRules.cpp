//===- OpRules.cpp - Rules that several ops share -------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpRules.h"

#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "flash/Support/HeadDim.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;
using namespace flash::detail;

bool flash::detail::mayBeEqual(int64_t lhs, int64_t rhs) {
  return lhs == rhs || ShapedType::isDynamic(lhs) || ShapedType::isDynamic(rhs);
}

std::string flash::detail::printSize(int64_t size) {
  return ShapedType::isDynamic(size) ? "?" : std::to_string(size);
}

LogicalResult flash::detail::verifyHeadDim(Operation *op, StringRef name,
                                           int64_t size) {
  if (ShapedType::isDynamic(size))
    return op->emitOpError() << name
                             << " must be static; only batch, heads and "
                                "lengths may be dynamic";
  if (!isHeadDim(size)) {
    int64_t nearest =
        size > largestHeadDim
            ? largestHeadDim
            : std::max<int64_t>(llvm::alignTo(size, headDimMultiple),
                                headDimMultiple);
    return op->emitOpError()
           << name << " must be a multiple of " << headDimMultiple << " from "
           << headDimMultiple << " to " << largestHeadDim << ", got " << size
           << "; the nearest supported size is " << nearest;
  }
  return success();
}

LogicalResult flash::detail::verifySameSize(Operation *op, const Twine &what,
                                            int64_t lhs, int64_t rhs) {
  if (mayBeEqual(lhs, rhs))
    return success();
  return op->emitOpError() << what << " must agree, got " << printSize(lhs)
                           << " and " << printSize(rhs);
}

/// Checks an index that is known, of `size` elements.
static LogicalResult verifyIndex(Operation *op, Value index, int64_t size,
                                 const Twine &what) {
  if (auto cast = index.getDefiningOp<arith::IndexCastOp>())
    index = cast.getIn();
  APInt value;
  if (!matchPattern(index, m_ConstantInt(&value)))
    return success();
  int64_t known = value.getSExtValue();
  if (known >= 0 && (ShapedType::isDynamic(size) || known < size))
    return success();
  if (size == 0)
    return op->emitOpError() << what << " reads what is empty";
  if (ShapedType::isDynamic(size))
    return op->emitOpError() << what << " must not be negative, got " << known;
  return op->emitOpError() << what << " must be from 0 to " << size - 1
                           << ", got " << known;
}

/// Checks what is known of the indices of an op that reads a tensor.
static LogicalResult verifyConstantIndices(Operation *op) {
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    auto type = dyn_cast<RankedTensorType>(dim.getSource().getType());
    return type ? verifyIndex(op, dim.getIndex(), type.getRank(), "dimension")
                : success();
  }
  auto extract = dyn_cast<tensor::ExtractOp>(op);
  if (!extract)
    return success();
  ArrayRef<int64_t> shape = extract.getTensor().getType().getShape();
  for (auto [d, index] : llvm::enumerate(extract.getIndices()))
    if (failed(
            verifyIndex(op, index, shape[d], "index of dimension " + Twine(d))))
      return failure();
  return success();
}

LogicalResult flash::detail::verifyElementwise(Block &block, StringRef name) {
  for (Operation &inner : block) {
    if (failed(verifyConstantIndices(&inner)))
      return failure();
    if (isa<YieldOp, GuardOp, tensor::ExtractOp, tensor::DimOp>(inner) ||
        inner.hasTrait<OpTrait::ConstantLike>())
      continue;
    if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
            inner.getDialect()) ||
        !inner.hasTrait<OpTrait::Elementwise>() ||
        llvm::any_of(inner.getResultTypes(),
                     [](Type type) { return isa<ShapedType>(type); }))
      return inner.emitOpError("is not allowed in ")
             << name
             << "; use elementwise arith and math ops on scalars (arith.select "
                "instead of control flow), tensor.extract and tensor.dim";
  }
  return success();
}

LogicalResult flash::detail::verifyScoreRegion(Operation *op, Region &region) {
  if (region.empty())
    return success();
  Block &block = region.front();
  Builder builder(op->getContext());
  SmallVector<Type> expected(5, builder.getIndexType());
  expected[0] = builder.getF32Type();
  if (block.getArgumentTypes() != TypeRange(expected))
    return op->emitOpError("the score region takes (score: f32, batch: index, "
                           "head: index, query: index, key: index)");
  if (block.empty() || !isa<YieldOp>(block.back()))
    return op->emitOpError("the score region must end with flash.yield");
  if (failed(verifyElementwise(block, "a score region")))
    return failure();
  auto yield = cast<YieldOp>(block.back());
  if (!yield.getResult().getType().isF32())
    return yield.emitOpError("gives the score, of type f32, got ")
           << yield.getResult().getType();
  llvm::DenseSet<Value> ofScore = {block.getArgument(0)};
  for (Operation &inner : block.without_terminator())
    if (llvm::any_of(inner.getOperands(),
                     [&](Value operand) { return ofScore.contains(operand); }))
      ofScore.insert_range(inner.getResults());
  if (yield.getKeep() && ofScore.contains(yield.getKeep()))
    return yield.emitOpError("keeps elements by what depends on their score; "
                             "give such a score the value -inf instead");
  return success();
}

LogicalResult flash::detail::verifyOperandShapes(Operation *op,
                                                 RankedTensorType query,
                                                 RankedTensorType key,
                                                 RankedTensorType value) {
  if (query.getElementType() != key.getElementType() ||
      query.getElementType() != value.getElementType())
    return op->emitOpError()
           << "query, key and value must have one element type, got "
           << query.getElementType() << ", " << key.getElementType() << " and "
           << value.getElementType();
  if (query.getRank() != key.getRank() || query.getRank() != value.getRank())
    return op->emitOpError()
           << "query, key and value must have one rank, got " << query.getRank()
           << ", " << key.getRank() << " and " << value.getRank();
  int64_t rank = query.getRank();
  if (failed(verifyHeadDim(op, "head dimension", query.getDimSize(rank - 1))) ||
      failed(verifyHeadDim(op, "value head dimension",
                           value.getDimSize(rank - 1))) ||
      failed(verifySameSize(op, "head dimensions of query and key",
                            query.getDimSize(rank - 1),
                            key.getDimSize(rank - 1))) ||
      failed(verifySameSize(op, "lengths of key and value",
                            key.getDimSize(rank - 2),
                            value.getDimSize(rank - 2))))
    return failure();
  return success();
}

LogicalResult
flash::detail::verifyLeadingDims(Operation *op, RankedTensorType query,
                                 RankedTensorType key, RankedTensorType value,
                                 int64_t batchDim, int64_t headDim) {
  if (batchDim >= 0 &&
      (failed(verifySameSize(op, "batch sizes of query and key",
                             query.getDimSize(batchDim),
                             key.getDimSize(batchDim))) ||
       failed(verifySameSize(op, "batch sizes of query and value",
                             query.getDimSize(batchDim),
                             value.getDimSize(batchDim)))))
    return failure();
  if (headDim < 0)
    return success();
  if (failed(verifySameSize(op, "head counts of key and value",
                            key.getDimSize(headDim),
                            value.getDimSize(headDim))))
    return failure();
  int64_t queryHeads = query.getDimSize(headDim);
  int64_t keyHeads = key.getDimSize(headDim);
  if (queryHeads == 0 || keyHeads == 0)
    return op->emitOpError("needs at least one head");
  if (!ShapedType::isDynamic(queryHeads) && !ShapedType::isDynamic(keyHeads) &&
      queryHeads % keyHeads != 0)
    return op->emitOpError()
           << "query heads (" << queryHeads
           << ") must be a multiple of key heads (" << keyHeads << ")";
  return success();
}

LogicalResult flash::detail::verifyScale(Operation *op, const APFloat &scale) {
  if (!scale.isFinite())
    return op->emitOpError("scale must be finite");
  return success();
}

LogicalResult flash::detail::verifyUnit(Operation *op, const APFloat &unit) {
  if (!isUnit(unit.convertToDouble()))
    return op->emitOpError("unit must be between 2^-64 and 2^64");
  return success();
}

LogicalResult flash::detail::verifyPrecision(Operation *op,
                                             std::optional<Precision> precision,
                                             Type elementType) {
  if (precision == Precision::TF32 && !elementType.isF32())
    return op->emitOpError()
           << "precision(" << stringifyPrecision(*precision)
           << ") rounds operands of f32, got " << elementType
           << "; leave it out, operands of 16 bits are not rounded";
  return success();
}

LogicalResult flash::detail::verifyTile(Operation *op, StringRef what,
                                        RankedTensorType tile, StringRef key,
                                        std::optional<int64_t> scheduled) {
  int64_t rows = tile.getDimSize(0);
  if (!scheduled || ShapedType::isDynamic(rows) || *scheduled == rows)
    return success();
  return op->emitOpError("has a tile of ")
         << rows << " " << what << ", and its schedule has " << key << " = "
         << *scheduled << "; write " << key << " = " << rows
         << ", or leave it out";
}

LogicalResult flash::detail::verifyShape(Operation *op, StringRef name,
                                         RankedTensorType type,
                                         ArrayRef<int64_t> shape,
                                         bool endsInValueDim) {
  bool agrees = type.getRank() == static_cast<int64_t>(shape.size());
  for (int64_t d = 0; agrees && d < type.getRank(); ++d)
    agrees = mayBeEqual(type.getDimSize(d), shape[d]);
  if (agrees && endsInValueDim)
    agrees = type.getShape().back() == shape.back();
  if (agrees)
    return success();
  return op->emitOpError() << name << " must have type "
                           << RankedTensorType::get(shape,
                                                    type.getElementType())
                           << ", got " << type;
}

bool flash::detail::areColumnsOf(RankedTensorType tile, RankedTensorType whole,
                                 Value column) {
  if (tile.getRank() < 2)
    return !column;
  int64_t columns = tile.getShape().back(), all = whole.getShape().back();
  return column ? columns < all : columns == all;
}

SmallVector<int64_t> flash::detail::withLast(ArrayRef<int64_t> shape,
                                             int64_t last) {
  SmallVector<int64_t> result(shape);
  result.back() = last;
  return result;
}
