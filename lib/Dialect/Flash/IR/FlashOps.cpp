//===- FlashOps.cpp - Verifiers and accessors of the flash ops ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Schedule/SplitKV.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace flash;

//===----------------------------------------------------------------------===//
// Shared rules
//===----------------------------------------------------------------------===//

namespace {
constexpr int64_t headDimMultiple = 8;
constexpr int64_t largestHeadDim = 256;

/// Two sizes of which at least one may be known only at run time.
bool mayBeEqual(int64_t lhs, int64_t rhs) {
  return lhs == rhs || ShapedType::isDynamic(lhs) || ShapedType::isDynamic(rhs);
}

std::string printSize(int64_t size) {
  return ShapedType::isDynamic(size) ? "?" : std::to_string(size);
}

/// Checks that `name` is a static multiple of 8 from 8 to 256.
LogicalResult verifyHeadDim(Operation *op, StringRef name, int64_t size) {
  if (ShapedType::isDynamic(size))
    return op->emitOpError() << name
                             << " must be static; only batch, heads and "
                                "lengths may be dynamic";
  if (size < headDimMultiple || size > largestHeadDim ||
      size % headDimMultiple != 0) {
    int64_t nearest =
        size > largestHeadDim
            ? largestHeadDim
            : std::max<int64_t>(llvm::alignTo(size, headDimMultiple),
                                headDimMultiple);
    return op->emitOpError()
           << name << " must be a multiple of 8 from 8 to 256, got " << size
           << "; the nearest supported size is " << nearest;
  }
  return success();
}

LogicalResult verifySameSize(Operation *op, const Twine &what, int64_t lhs,
                             int64_t rhs) {
  if (mayBeEqual(lhs, rhs))
    return success();
  return op->emitOpError() << what << " must agree, got " << printSize(lhs)
                           << " and " << printSize(rhs);
}

/// Checks an index that is known, of `size` elements.
LogicalResult verifyIndex(Operation *op, Value index, int64_t size,
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
LogicalResult verifyConstantIndices(Operation *op) {
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

/// The score region runs on vectors of scores, so only ops with an elementwise
/// or an explicit gather meaning can be allowed in it.
LogicalResult verifyScoreRegion(Operation *op, Region &region) {
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
      return inner.emitOpError(
          "is not allowed in a score region; use elementwise arith and math "
          "ops on scalars (arith.select instead of control flow), "
          "tensor.extract and tensor.dim");
  }
  return success();
}

/// Rules that hold for q, k, v of any rank; sizes counted from the back.
LogicalResult verifyOperandShapes(Operation *op, RankedTensorType query,
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

/// Checks batch and head counts, where `batchDim` and `headDim` are the
/// positions of those dimensions, or -1.
LogicalResult verifyLeadingDims(Operation *op, RankedTensorType query,
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

LogicalResult verifyScale(Operation *op, const APFloat &scale) {
  if (!scale.isFinite())
    return op->emitOpError("scale must be finite");
  return success();
}

LogicalResult verifyPrecision(Operation *op, std::optional<Precision> precision,
                              Type elementType) {
  if (precision && !elementType.isF32())
    return op->emitOpError()
           << "precision(" << stringifyPrecision(*precision)
           << ") rounds operands of f32, got " << elementType
           << "; leave it out, operands of 16 bits are not rounded";
  return success();
}

/// Checks that `type` has `shape`, up to dynamic sizes; if it
/// ends in the value dimension, that one must be static.
LogicalResult verifyShape(Operation *op, StringRef name, RankedTensorType type,
                          ArrayRef<int64_t> shape,
                          bool endsInValueDim = false) {
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

SmallVector<int64_t> withLast(ArrayRef<int64_t> shape, int64_t last) {
  SmallVector<int64_t> result(shape);
  result.back() = last;
  return result;
}
} // namespace

/// Results print as one type, or as a parenthesised pair with the log-sum-exp.
static ParseResult parseAttentionResults(OpAsmParser &parser, Type &output,
                                         Type &lse) {
  if (failed(parser.parseOptionalLParen()))
    return parser.parseType(output);
  if (parser.parseType(output))
    return failure();
  if (succeeded(parser.parseOptionalComma()) && parser.parseType(lse))
    return failure();
  return parser.parseRParen();
}

static void printAttentionResults(OpAsmPrinter &printer, Operation *,
                                  Type output, Type lse) {
  if (lse)
    printer << "(" << output << ", " << lse << ")";
  else
    printer << output;
}

#define GET_OP_CLASSES
#include "flash/Dialect/Flash/IR/FlashOps.cpp.inc"

//===----------------------------------------------------------------------===//
// AttentionOp
//===----------------------------------------------------------------------===//

double AttentionOp::getScaleOrDefault() {
  if (getScale())
    return getScale()->convertToDouble();
  return 1.0 / std::sqrt(static_cast<double>(getHeadDim()));
}

MaskAttrInterface AttentionOp::getMaskOrFull() {
  if (getMask())
    return *getMask();
  return cast<MaskAttrInterface>(FullAttr::get(getContext()));
}

bool AttentionOp::hasBatch() {
  return getQuery().getType().getRank() == 4 || getLeading() == Leading::Batch;
}

bool AttentionOp::hasHeads() {
  return getQuery().getType().getRank() == 4 || getLeading() != Leading::Batch;
}

std::optional<int64_t> AttentionOp::getGroup() {
  if (!hasHeads())
    return 1;
  RankedTensorType query = getQuery().getType(), key = getKey().getType();
  int64_t dim = query.getRank() - 3;
  if (query.isDynamicDim(dim) || key.isDynamicDim(dim))
    return std::nullopt;
  return query.getDimSize(dim) / key.getDimSize(dim);
}

LogicalResult AttentionOp::requireRank4() {
  if (getQuery().getType().getRank() == 4)
    return success();
  return emitOpError("needs rank 4 here; run flash-expand-rank first");
}

/// Checks what the lengths are said to be multiples of.
static LogicalResult verifyMultiples(Operation *op, ArrayRef<int64_t> multiples,
                                     int64_t queries, int64_t keys) {
  if (multiples.size() != 2 || multiples[0] < 1 || multiples[1] < 1)
    return op->emitOpError("multiples are two positive numbers, of queries and "
                           "of keys");
  for (auto [length, multiple, name] :
       {std::tuple(queries, multiples[0], "queries"),
        {keys, multiples[1], "keys"}})
    if (!ShapedType::isDynamic(length) && length % multiple != 0)
      return op->emitOpError("has ")
             << length << " " << name << ", no multiple of " << multiple;
  return success();
}

LogicalResult AttentionOp::verify() {
  RankedTensorType query = getQuery().getType(), key = getKey().getType(),
                   value = getValue().getType();
  int64_t rank = query.getRank();
  if (rank != 3 && rank != 4)
    return emitOpError()
           << "operands must have rank 4 (batch, heads, length, head "
              "dimension) or rank 3 (without batch, or with leading(batch) "
              "without heads), got rank "
           << rank;
  if (getLeading() && rank != 3)
    return emitOpError("leading says what the first of three dimensions is; "
                       "rank-4 operands have both batch and heads");
  if (failed(verifyOperandShapes(*this, query, key, value)) ||
      failed(verifyLeadingDims(*this, query, key, value, hasBatch() ? 0 : -1,
                               hasHeads() ? rank - 3 : -1)))
    return failure();

  if (getOutput().getType().getElementType() != query.getElementType())
    return emitOpError() << "output must have the operands' element type "
                         << query.getElementType() << ", got "
                         << getOutput().getType().getElementType();
  if (failed(verifyShape(*this, "output", getOutput().getType(),
                         withLast(query.getShape(), value.getDimSize(rank - 1)),
                         /*endsInValueDim=*/true)))
    return failure();
  if (getLse() && failed(verifyShape(*this, "log-sum-exp", getLse().getType(),
                                     query.getShape().drop_back())))
    return failure();

  if (getLengths() &&
      failed(verifySameSize(*this, "batch size and number of lengths",
                            hasBatch() ? query.getDimSize(0) : 1,
                            getLengths().getType().getDimSize(0))))
    return failure();
  if (getSink() &&
      failed(verifySameSize(*this, "query heads and number of sinks",
                            hasHeads() ? query.getDimSize(rank - 3) : 1,
                            getSink().getType().getDimSize(0))))
    return failure();
  if (getMultiples() &&
      failed(verifyMultiples(*this, *getMultiples(), query.getDimSize(rank - 2),
                             key.getDimSize(rank - 2))))
    return failure();
  if (getScale() && failed(verifyScale(*this, *getScale())))
    return failure();
  if (failed(verifyPrecision(*this, getPrecision(), query.getElementType())) ||
      failed(verifyScoreRegion(*this, getScore())))
    return failure();
  for (const PositionRead &read : getPositionReads()) {
    auto sizeOf = [](Value tensor, int64_t dim) {
      return cast<RankedTensorType>(tensor.getType()).getDimSize(dim);
    };
    int64_t size = sizeOf(read.extract->getOperand(0), read.dim);
    int64_t extent = read.extentOf ? sizeOf(read.extentOf, read.extentDim) : 1;
    if (!ShapedType::isDynamic(size) && !ShapedType::isDynamic(extent) &&
        size < extent)
      return read.extract->emitOpError()
             << "reads dimension " << read.dim << ", of size " << size
             << ", by the " << read.name << ", of which there are " << extent;
  }
  return success();
}

SmallVector<PositionRead> AttentionOp::getPositionReads() {
  SmallVector<PositionRead> reads;
  if (getScore().empty())
    return reads;
  int64_t rank = getQuery().getType().getRank();
  // The position's tensor and dimension, in the order of the region's
  // arguments.
  const std::tuple<StringRef, Value, int64_t> extents[] = {
      {"batch", hasBatch() ? getQuery() : Value(), 0},
      {"head", hasHeads() ? getQuery() : Value(), rank - 3},
      {"query", getQuery(), rank - 2},
      {"key", getKey(), rank - 2}};
  for (auto extract : getScore().front().getOps<tensor::ExtractOp>())
    for (auto [dim, index] : llvm::enumerate(extract.getIndices())) {
      auto argument = dyn_cast<BlockArgument>(index);
      if (!argument || argument.getOwner() != &getScore().front())
        continue;
      auto [name, tensor, tensorDim] = extents[argument.getArgNumber() - 1];
      reads.push_back(
          {extract, static_cast<int64_t>(dim), name, tensor, tensorDim});
    }
  return reads;
}

//===----------------------------------------------------------------------===//
// OnlineAttentionOp
//===----------------------------------------------------------------------===//

MutableOperandRange OnlineAttentionOp::getDpsInitsMutable() {
  return MutableOperandRange(*this, getAccMutable().getOperandNumber(), 3);
}

SmallVector<OpFoldResult> OnlineAttentionOp::getMixedPosition() {
  Builder builder(getContext());
  return getMixedValues(getStaticPosition(), getPosition(), builder);
}

SmallVector<OpFoldResult> OnlineAttentionOp::getMixedExtents() {
  Builder builder(getContext());
  return getMixedValues(getStaticExtents(), getExtents(), builder);
}

LogicalResult OnlineAttentionOp::verify() {
  RankedTensorType query = getQuery().getType(), key = getKey().getType(),
                   value = getValue().getType();
  int64_t rank = query.getRank();
  if (rank != 2 && rank != 4)
    return emitOpError("operands must have rank 4 (whole tensors) or rank 2 "
                       "(one tile of one head), got rank ")
           << rank;
  if (failed(verifyOperandShapes(*this, query, key, value)) ||
      (rank == 4 && failed(verifyLeadingDims(*this, query, key, value, 0, 1))))
    return failure();
  if (failed(verifyShape(*this, "accumulator", getAcc().getType(),
                         withLast(query.getShape(), value.getDimSize(rank - 1)),
                         /*endsInValueDim=*/true)) ||
      failed(verifyShape(*this, "maximum", getMax().getType(),
                         query.getShape().drop_back())) ||
      failed(verifyShape(*this, "sum", getSum().getType(),
                         query.getShape().drop_back())))
    return failure();
  if (getStaticPosition().size() != 4)
    return emitOpError("'at' takes the four indices [b, h, i, j]");
  if (getStaticExtents().size() != 2)
    return emitOpError("'of' takes the two lengths [nq, nk]");
  for (int64_t value :
       llvm::concat<const int64_t>(getStaticPosition(), getStaticExtents()))
    if (!ShapedType::isDynamic(value) && value < 0)
      return emitOpError("'at' and 'of' must not be negative, got ") << value;
  auto countDynamic = [](ArrayRef<int64_t> values) {
    return static_cast<size_t>(llvm::count_if(values, ShapedType::isDynamic));
  };
  if (countDynamic(getStaticPosition()) != getPosition().size() ||
      countDynamic(getStaticExtents()) != getExtents().size())
    return emitOpError("'at' and 'of' need one operand per dynamic entry");
  if (getKeys() && !isTile())
    return emitOpError("keys counts the keys of a tile (rank 2); use lengths "
                       "on whole tensors");
  if (getPacked() && (!isTile() || getPackedHeads() < 1))
    return emitOpError("packed is the number of heads of a tile (rank 2), at "
                       "least 1; on whole tensors the schedule has "
                       "packed_heads");
  if (getPacked() && !query.isDynamicDim(0) &&
      getPackedHeads() > query.getDimSize(0))
    return emitOpError("packs ")
           << getPackedHeads() << " heads into a tile of "
           << query.getDimSize(0) << " rows, which has one for each at least";
  if (getMultiples() && isTile())
    return emitOpError("multiples are of whole tensors (rank 4)");
  if (getMultiples() &&
      failed(verifyMultiples(*this, *getMultiples(), query.getDimSize(2),
                             key.getDimSize(2))))
    return failure();
  if (getLengths() && isTile())
    return emitOpError("lengths are per batch and need rank 4; use keys on a "
                       "tile");
  if (getLengths() &&
      failed(verifySameSize(*this, "batch size and number of lengths",
                            query.getDimSize(0),
                            getLengths().getType().getDimSize(0))))
    return failure();
  if (failed(verifyScale(*this, getScale())) ||
      failed(verifyPrecision(*this, getPrecision(), query.getElementType())))
    return failure();
  return verifyScoreRegion(*this, getScore());
}

//===----------------------------------------------------------------------===//
// FinalizeOp
//===----------------------------------------------------------------------===//

MutableOperandRange FinalizeOp::getDpsInitsMutable() {
  return MutableOperandRange(*this, getOutputInitMutable().getOperandNumber(),
                             getLseInit() ? 2 : 1);
}

LogicalResult FinalizeOp::verify() {
  ArrayRef<int64_t> shape = getAcc().getType().getShape();
  if (shape.size() != 2 && shape.size() != 4)
    return emitOpError("operands must have rank 4 (whole tensors) or rank 2 "
                       "(one tile of one head), got rank ")
           << shape.size();
  if (failed(verifyHeadDim(*this, "value head dimension", shape.back())) ||
      failed(verifyShape(*this, "maximum", getMax().getType(),
                         shape.drop_back())) ||
      failed(
          verifyShape(*this, "sum", getSum().getType(), shape.drop_back())) ||
      failed(verifyShape(*this, "output", getOutputInit().getType(), shape,
                         /*endsInValueDim=*/true)))
    return failure();
  if (getOutput().getType() != getOutputInit().getType())
    return emitOpError("output must have the type of its init");
  if (static_cast<bool>(getLse()) != static_cast<bool>(getLseInit()))
    return emitOpError("a log-sum-exp result needs an init, and an init a "
                       "result");
  if (!getLse())
    return success();
  if (getLse().getType() != getLseInit().getType())
    return emitOpError("log-sum-exp must have the type of its init");
  return verifyShape(*this, "log-sum-exp", getLseInit().getType(),
                     shape.drop_back());
}

//===----------------------------------------------------------------------===//
// SoftmaxOp
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxOp::verify() {
  RankedTensorType scores = getScores().getType();
  if (scores.getRank() != 2)
    return emitOpError("needs scores of rank 2 (rows of one head), got rank ")
           << scores.getRank();
  if (getResult().getType() != scores)
    return emitOpError("must give the type of its scores, ") << scores;
  if (getLse() &&
      getLse().getType().getShape() != scores.getShape().drop_back())
    return emitOpError("must give one log-sum-exp for each row, not ")
           << getLse().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// CombineOp
//===----------------------------------------------------------------------===//

LogicalResult CombineOp::verify() {
  ArrayRef<int64_t> shape = getOuts().getType().getShape();
  if (shape.size() != 3)
    return emitOpError("needs outputs of rank 3 (splits of the keys, rows, "
                       "value head dimension), got rank ")
           << shape.size();
  if (getStep() && (*getStep() < 1 || *getStep() > mostSplitsAtOnce))
    return emitOpError("adds 1 to ")
           << mostSplitsAtOnce << " splits in a step, got " << *getStep();
  if (failed(verifyHeadDim(*this, "value head dimension", shape.back())) ||
      failed(verifyShape(*this, "log-sum-exps", getLses().getType(),
                         shape.drop_back())) ||
      failed(verifyShape(*this, "output", getOutput().getType(),
                         shape.drop_front(), /*endsInValueDim=*/true)))
    return failure();
  if (!getLse())
    return success();
  return verifyShape(*this, "log-sum-exp", getLse().getType(),
                     shape.drop_front().drop_back());
}
