//===- AttentionOps.cpp - Attention and its step over keys ----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpRules.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"
#include <cmath>

using namespace mlir;
using namespace flash;
using namespace flash::detail;

//===----------------------------------------------------------------------===//
// AttentionOpInterface
//===----------------------------------------------------------------------===//

double flash::detail::getScaleOrDefault(AttentionOpInterface op) {
  if (op.getScale())
    return op.getScale()->convertToDouble();
  return 1.0 / std::sqrt(static_cast<double>(op.getHeadDim()));
}

MaskAttrInterface flash::detail::getMaskOrFull(AttentionOpInterface op) {
  if (op.getMask())
    return *op.getMask();
  return cast<MaskAttrInterface>(FullAttr::get(op.getContext()));
}

std::optional<int64_t> flash::detail::getGroup(AttentionOpInterface op) {
  if (!op.hasHeads())
    return 1;
  RankedTensorType query = op.getQuery().getType(), key = op.getKey().getType();
  int64_t dim = query.getRank() - 3;
  if (query.isDynamicDim(dim) || key.isDynamicDim(dim))
    return std::nullopt;
  return query.getDimSize(dim) / key.getDimSize(dim);
}

LogicalResult flash::detail::requireRank4(AttentionOpInterface op) {
  if (op.getQuery().getType().getRank() == 4)
    return success();
  return op->emitOpError("needs rank 4 here; run flash-expand-rank first");
}

SmallVector<PositionRead>
flash::detail::getPositionReads(AttentionOpInterface op) {
  SmallVector<PositionRead> reads;
  if (op.getScore().empty())
    return reads;
  int64_t rank = op.getQuery().getType().getRank();
  // The position's tensor and dimension, in the order of the region's
  // arguments.
  const std::tuple<StringRef, Value, int64_t> extents[] = {
      {"batch", op.hasBatch() ? op.getQuery() : Value(), 0},
      {"head", op.hasHeads() ? op.getQuery() : Value(), rank - 3},
      {"query", op.getQuery(), rank - 2},
      {"key", op.getKey(), rank - 2}};
  for (auto extract : op.getScore().front().getOps<tensor::ExtractOp>())
    for (auto [dim, index] : llvm::enumerate(extract.getIndices())) {
      auto argument = dyn_cast<BlockArgument>(index);
      if (!argument || argument.getOwner() != &op.getScore().front() ||
          op.getLengthsOf(argument))
        continue;
      auto [name, tensor, tensorDim] = extents[argument.getArgNumber() - 1];
      reads.push_back(
          {extract, static_cast<int64_t>(dim), name, tensor, tensorDim});
    }
  return reads;
}

LogicalResult flash::detail::verifyMultiples(Operation *op,
                                             ArrayRef<int64_t> multiples,
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

/// Checks what precision(fp8) says of: elements of f8E4M3FN, and a scale for
/// all of a head.
static LogicalResult verifyFP8(AttentionOpInterface op) {
  if (isa<AttentionGradOp>(*op))
    return op->emitOpError("has no precision(fp8), which is of flash.attention "
                           "alone; leave it out");
  for (auto [rows, name] : {std::pair<Value, StringRef>(op.getQuery(), "query"),
                            {op.getKey(), "key"},
                            {op.getValue(), "value"}}) {
    auto dequantize = rows.getDefiningOp<DequantizeOp>();
    if (!dequantize ||
        !isa<Float8E4M3FNType>(getElementTypeOrSelf(dequantize.getSource())))
      return op->emitOpError("precision(fp8) multiplies what flash.dequantize "
                             "gives of f8E4M3FN, and the ")
             << name << " is of "
             << (dequantize ? dequantize.getSource().getType()
                            : cast<RankedTensorType>(rows.getType()))
             << "; leave precision(fp8) out, or quantize it, too";
    RankedTensorType scale = dequantize.getScale().getType();
    if (scale.getRank() > 2)
      return op->emitOpError("precision(fp8) takes a scale [1] or for each "
                             "batch and head [B, H], and the ")
             << name << " has one for each row, " << scale
             << "; leave precision(fp8) out, or use one for each head";
    if (auto address = AddressOpInterface::ofRows(rows))
      return op->emitOpError("precision(fp8) takes dense rows, and the ")
             << name << " is a view of " << address->getName()
             << "; leave precision(fp8) out, or copy the rows";
  }
  if (op.getScaleOrDefault() <= 0)
    return op->emitOpError("precision(fp8) takes a positive scale, got ")
           << op.getScaleOrDefault() << "; leave precision(fp8) out";
  return success();
}

LogicalResult flash::detail::verifyAttention(AttentionOpInterface op) {
  RankedTensorType query = op.getQuery().getType(), key = op.getKey().getType(),
                   value = op.getValue().getType();
  int64_t rank = query.getRank();
  if (rank != 3 && rank != 4)
    return op->emitOpError()
           << "operands must have rank 4 (batch, heads, length, head "
              "dimension) or rank 3 (without batch, or with leading(batch) "
              "without heads), got rank "
           << rank;
  if (op.getLeading() && rank != 3)
    return op->emitOpError(
        "leading says what the first of three dimensions is; "
        "rank-4 operands have both batch and heads");
  if (failed(verifyOperandShapes(op, query, key, value)) ||
      failed(verifyLeadingDims(op, query, key, value, op.hasBatch() ? 0 : -1,
                               op.hasHeads() ? rank - 3 : -1)))
    return failure();

  for (Value lengths :
       {op.getLengths(), op.getQueryLengths(), op.getKeyLengths()})
    if (lengths &&
        failed(verifySameSize(
            op, "batch size and number of lengths",
            op.hasBatch() ? query.getDimSize(0) : 1,
            cast<RankedTensorType>(lengths.getType()).getDimSize(0))))
      return failure();
  // Rows of a view exist as far as its lengths say.
  for (auto [rows, lengths, name] :
       {std::tuple<Value, Value, StringRef>(op.getQuery(), op.getQueryLengths(),
                                            "query_lengths"),
        {op.getKey(), op.getKeyLengths(), "key_lengths"},
        {op.getValue(), op.getKeyLengths(), "key_lengths"}}) {
    bool mayBeQuantized =
        isa<AttentionOp>(*op) &&
        (rows != op.getQuery() || op.getPrecision() == Precision::FP8);
    if (rows.getDefiningOp<DequantizeOp>() && !mayBeQuantized)
      return op->emitOpError("takes dequantized rows")
             << (rows == op.getQuery() ? " as queries" : "")
             << "; keys and values of flash.attention alone are, its queries "
                "with precision(fp8), and gradients have 16 bits or more";
    auto address = AddressOpInterface::ofRows(rows);
    if (!address)
      continue;
    bool areInParts = address.getContiguousRows().has_value();
    if (areInParts && (rows == op.getQuery() || isa<AttentionGradOp>(op)))
      return op->emitOpError("takes rows of ")
             << address->getName()
             << (rows == op.getQuery() ? " as queries" : "")
             << ", which lie in parts; keys and values of flash.attention "
                "alone "
                "do";
    if (!address.hasLengths(lengths))
      return op->emitOpError("takes rows of ")
             << address->getName() << ", and needs " << name
             << (areInParts ? " that are its lengths"
                            : " that are the lengths of the same offsets");
  }
  if (op.getSink() &&
      failed(verifySameSize(op, "query heads and number of sinks",
                            op.hasHeads() ? query.getDimSize(rank - 3) : 1,
                            op.getSink().getType().getDimSize(0))))
    return failure();
  if (op.getMultiples() &&
      failed(verifyMultiples(op, *op.getMultiples(), query.getDimSize(rank - 2),
                             key.getDimSize(rank - 2))))
    return failure();
  if (op.getScale() && failed(verifyScale(op, *op.getScale())))
    return failure();
  if (failed(verifyPrecision(op, op.getPrecision(), query.getElementType())) ||
      (op.getPrecision() == Precision::FP8 && failed(verifyFP8(op))) ||
      failed(verifyScoreRegion(op, op.getScore())))
    return failure();
  for (const PositionRead &read : op.getPositionReads()) {
    auto sizeOf = [](Value tensor, int64_t dim) {
      return cast<RankedTensorType>(tensor.getType()).getDimSize(dim);
    };
    int64_t size = sizeOf(read.extract->getOperand(0), read.dim);
    int64_t extent = read.extentOf ? sizeOf(read.extentOf, read.extentDim) : 1;
    if (!ShapedType::isDynamic(size) && !ShapedType::isDynamic(extent) &&
        size < extent)
      return read.extract->emitOpError()
             << "reads dimension " << read.dim << " at the index of the "
             << read.name << ": its size is " << size
             << ", and must be at least " << extent;
  }
  return success();
}

LogicalResult flash::detail::verifyOutput(AttentionOpInterface op,
                                          StringRef name,
                                          RankedTensorType type) {
  RankedTensorType query = op.getQuery().getType();
  if (type.getElementType() != query.getElementType())
    return op->emitOpError()
           << name << " must have the operands' element type "
           << query.getElementType() << ", got " << type.getElementType();
  return verifyShape(op, name, type,
                     withLast(query.getShape(), op.getValueDim()),
                     /*endsInValueDim=*/true);
}

LogicalResult flash::detail::verifyRows(AttentionOpInterface op, StringRef name,
                                        RankedTensorType type) {
  return verifyShape(op, name, type,
                     op.getQuery().getType().getShape().drop_back());
}

//===----------------------------------------------------------------------===//
// AttentionOp
//===----------------------------------------------------------------------===//

LogicalResult AttentionOp::verify() {
  if (failed(verifyAttention(*this)) ||
      failed(verifyOutput(*this, "output", getOutput().getType())) ||
      failed(verifyBlocks(*this, getKeyTiles(), getTileCounts(),
                          getQuery().getType(), getKey().getType(), getMask(),
                          getLengths(), getScore(), getSchedule(),
                          getBlockSizes())))
    return failure();
  if (getLse())
    return verifyRows(*this, "log-sum-exp", getLse().getType());
  return success();
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
  bool isFP8 = isa<Float8E4M3FNType>(query.getElementType());
  if (isFP8 != !!getFactor() ||
      (isFP8 && (!isTile() || getPrecision() != Precision::FP8)))
    return emitOpError("multiplies tiles of f8E4M3FN with precision(fp8) and "
                       "factor(...), and others without a factor; got ")
           << query;
  // Values of 8 bits have their keys as columns.
  if (isFP8 && value.getRank() == 2)
    value = value.clone({value.getDimSize(1), value.getDimSize(0)});
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
  if (failed(verifyPosition(*this)))
    return failure();
  if (getKeys() && !isTile())
    return emitOpError("keys counts the keys of a tile (rank 2); use lengths "
                       "on whole tensors");
  if (getPartial() && !isTile())
    return emitOpError("partial is of a tile (rank 2), not of whole tensors");
  if (getPacked() && (!isTile() || getPackedHeads() < 1))
    return emitOpError("packed is the number of heads of a tile (rank 2), at "
                       "least 1; on whole tensors the schedule has "
                       "packed_heads");
  if (getPacked() && !query.isDynamicDim(0) &&
      getPackedHeads() > query.getDimSize(0))
    return emitOpError("packs ")
           << getPackedHeads() << " heads into a tile of "
           << query.getDimSize(0) << " rows, which has one for each at least";
  if (getSchedule() && isTile()) {
    const Schedule schedule = getSchedule()->getValue();
    if (failed(verifyTile(*this, "queries", query, "query_tile",
                          schedule.queryTile)) ||
        failed(verifyTile(*this, "keys", key, "key_tile", schedule.keyTile)))
      return failure();
  }
  if (getMultiples() && isTile())
    return emitOpError("multiples are of whole tensors (rank 4)");
  if (getMultiples() &&
      failed(verifyMultiples(*this, *getMultiples(), query.getDimSize(2),
                             key.getDimSize(2))))
    return failure();
  for (Value lengths : {getLengths(), getQueryLengths(), getKeyLengths()}) {
    if (!lengths)
      continue;
    if (isTile())
      return emitOpError("lengths are per batch and need rank 4; use keys on a "
                         "tile");
    if (failed(verifySameSize(
            *this, "batch size and number of lengths", query.getDimSize(0),
            cast<RankedTensorType>(lengths.getType()).getDimSize(0))))
      return failure();
  }
  if (failed(verifyScale(*this, getScale())) ||
      failed(verifyUnit(*this, getUnit())) ||
      failed(verifyPrecision(*this, getPrecision(), query.getElementType())) ||
      failed(verifyScoreRegion(*this, getScore())))
    return failure();
  return verifyBlocks(*this, getKeyTiles(), getTileCounts(), query, key,
                      getMask(), getLengths(), getScore(), getSchedule(),
                      getBlockSizes());
}
