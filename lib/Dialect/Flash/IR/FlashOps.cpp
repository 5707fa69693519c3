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

/// Such a region runs on vectors of elements, so only ops with an elementwise
/// or an explicit gather meaning can be allowed in it.
LogicalResult verifyElementwise(Block &block, StringRef name) {
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

/// Whether two regions on (..., batch, head, query, key) compute the same,
/// apart from guards, which ask for what each says itself.
class SameValues {
public:
  bool areSame(Value lhs, Value rhs) {
    if (!lhs || !rhs)
      return lhs == rhs;
    lhs = skipGuard(lhs);
    rhs = skipGuard(rhs);
    auto [known, isNew] = results.try_emplace({lhs, rhs}, true);
    if (isNew) {
      bool same = compare(lhs, rhs);
      return results[{lhs, rhs}] = same;
    }
    return known->second;
  }

private:
  static Value skipGuard(Value value) {
    auto guard = value.getDefiningOp<GuardOp>();
    return guard ? guard.getValue() : value;
  }
  bool compare(Value lhs, Value rhs) {
    auto lhsArgument = dyn_cast<BlockArgument>(lhs),
         rhsArgument = dyn_cast<BlockArgument>(rhs);
    if (lhs == rhs)
      return true;
    auto fromBack = [](BlockArgument argument) {
      return argument.getOwner()->getNumArguments() - argument.getArgNumber();
    };
    if (lhsArgument || rhsArgument)
      return lhsArgument && rhsArgument &&
             isElementOp(lhsArgument.getOwner()->getParentOp()) &&
             isElementOp(rhsArgument.getOwner()->getParentOp()) &&
             fromBack(lhsArgument) == fromBack(rhsArgument);
    auto lhsResult = cast<OpResult>(lhs), rhsResult = cast<OpResult>(rhs);
    Operation *lhsOp = lhsResult.getOwner(), *rhsOp = rhsResult.getOwner();
    return lhsResult.getResultNumber() == rhsResult.getResultNumber() &&
           isSameOp(lhsOp, rhsOp) &&
           llvm::all_of(llvm::zip(lhsOp->getOperands(), rhsOp->getOperands()),
                        [&](auto pair) {
                          return areSame(std::get<0>(pair), std::get<1>(pair));
                        });
  }
  static bool isElementOp(Operation *op) {
    return isa_and_nonnull<AttentionOp, OnlineAttentionOp, BlockMapOp>(op);
  }
  static bool isSameOp(Operation *lhs, Operation *rhs) {
    return lhs->getName() == rhs->getName() &&
           lhs->getNumOperands() == rhs->getNumOperands() &&
           lhs->getResultTypes() == rhs->getResultTypes() &&
           lhs->getNumRegions() == 0 && isMemoryEffectFree(lhs) &&
           lhs->getAttrDictionary() == rhs->getAttrDictionary();
  }

  llvm::DenseMap<std::pair<Value, Value>, bool> results;
};

/// Checks that a map is made for the attention `op` and its tiles.
LogicalResult verifyBlocks(Operation *op, Value keyTiles, Value counts,
                           RankedTensorType query, RankedTensorType key,
                           std::optional<MaskAttrInterface> mask, Value lengths,
                           Region &score,
                           std::optional<ScheduleAttr> attribute) {
  if (!keyTiles && !counts)
    return success();
  auto map = keyTiles ? keyTiles.getDefiningOp<BlockMapOp>() : BlockMapOp();
  if (!map || map.getKeyTiles() != keyTiles || map.getCounts() != counts)
    return op->emitOpError("blocks are the two results of one flash.block_map "
                           "of the same function, in their order");
  auto differs = [&](const Twine &what) {
    InFlightDiagnostic error = op->emitOpError()
                               << "has blocks of another " << what;
    error.attachNote(map.getLoc()) << "the map is made here";
    return error;
  };
  if (query.getRank() != 4)
    return op->emitOpError("blocks are for operands of rank 4");
  if (map.getMaskAttr() != mask.value_or(MaskAttrInterface()))
    return differs("mask");
  if (map.getLengths() != lengths)
    return differs("number of keys: its lengths are not the attention's");
  auto getYield = [](Region &region) {
    return region.empty() ? YieldOp()
                          : cast<YieldOp>(region.front().getTerminator());
  };
  YieldOp ofScore = getYield(score), ofMap = getYield(map.getKeep());
  if (!SameValues().areSame(ofScore ? ofScore.getKeep() : Value(),
                            ofMap ? ofMap.getResult() : Value()))
    return differs("mask: what its region keeps is not what the score region "
                   "does");
  ArrayRef<int64_t> of = map.getStaticSizes();
  for (auto [name, ofMap, size, mayBeOne] :
       {std::tuple("batch size", of[0], query.getDimSize(0), true),
        {"number of heads", of[1], query.getDimSize(1), true},
        {"number of queries", of[2], query.getDimSize(2), false},
        {"number of keys", of[3], key.getDimSize(2), false}})
    if (!mayBeEqual(ofMap, size) && !(mayBeOne && ofMap == 1))
      return differs(name) << ": " << ofMap << ", not " << size;
  Schedule schedule = attribute ? attribute->getValue() : Schedule();
  if (schedule.getPackedHeads() > 1)
    return op->emitOpError("blocks are of tiles of one head, which the "
                           "schedule packs; write packed_heads = 1");
  if (schedule.splitKeys)
    return op->emitOpError("blocks are lists of tiles, of which splits take "
                           "every n-th; write num_splits for split_keys");
  if (schedule.queryTile != map.getQueryTile() ||
      schedule.keyTile != map.getKeyTile())
    return differs("tile size: the schedule must say query_tile = ")
           << map.getQueryTile() << ", key_tile = " << map.getKeyTile();
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

/// The types of the gradients, in the order of the results.
static ParseResult parseAttentionGradResults(
    OpAsmParser &parser,
    const std::optional<OpAsmParser::UnresolvedOperand> &sink, Type &query,
    Type &key, Type &value, Type &sinkGrad, SmallVectorImpl<Type> &captured) {
  if (parser.parseLParen() || parser.parseType(query) || parser.parseComma() ||
      parser.parseType(key) || parser.parseComma() || parser.parseType(value))
    return failure();
  if (sink && (parser.parseComma() || parser.parseType(sinkGrad)))
    return failure();
  while (succeeded(parser.parseOptionalComma()))
    if (parser.parseType(captured.emplace_back()))
      return failure();
  return parser.parseRParen();
}

static void printAttentionGradResults(OpAsmPrinter &printer, Operation *,
                                      Value sink, Type query, Type key,
                                      Type value, Type sinkGrad,
                                      TypeRange captured) {
  printer << "(" << query << ", " << key << ", " << value;
  if (sinkGrad)
    printer << ", " << sinkGrad;
  for (Type type : captured)
    printer << ", " << type;
  printer << ")";
}

#include "flash/Dialect/Flash/IR/FlashAttentionInterface.cpp.inc"
#include "flash/Dialect/Flash/IR/FlashStepInterface.cpp.inc"

#define GET_OP_CLASSES
#include "flash/Dialect/Flash/IR/FlashOps.cpp.inc"

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
      if (!argument || argument.getOwner() != &op.getScore().front())
        continue;
      auto [name, tensor, tensorDim] = extents[argument.getArgNumber() - 1];
      reads.push_back(
          {extract, static_cast<int64_t>(dim), name, tensor, tensorDim});
    }
  return reads;
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

/// Checks the operands and clauses that an attention and its gradients share.
static LogicalResult verifyAttention(AttentionOpInterface op) {
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

  if (op.getLengths() &&
      failed(verifySameSize(op, "batch size and number of lengths",
                            op.hasBatch() ? query.getDimSize(0) : 1,
                            op.getLengths().getType().getDimSize(0))))
    return failure();
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
             << "reads dimension " << read.dim << ", of size " << size
             << ", by the " << read.name << ", of which there are " << extent;
  }
  return success();
}

/// Checks a tensor of one row for each query, with the elements of the query
/// and as many as the value has.
static LogicalResult verifyOutput(AttentionOpInterface op, StringRef name,
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

/// Checks a tensor of one element for each query.
static LogicalResult verifyRows(AttentionOpInterface op, StringRef name,
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
                          getLengths(), getScore(), getSchedule())))
    return failure();
  if (getLse())
    return verifyRows(*this, "log-sum-exp", getLse().getType());
  return success();
}

//===----------------------------------------------------------------------===//
// AttentionGradOp
//===----------------------------------------------------------------------===//

SmallVector<Value> AttentionGradOp::getDifferentiated() {
  SmallVector<Value> values = {getQuery(), getKey(), getValue()};
  if (getSink())
    values.push_back(getSink());
  llvm::append_range(values, getCaptured());
  return values;
}

/// Checks that a gradient has the type of that of which it is the gradient, up
/// to sizes that may be known only at run time.
static LogicalResult verifyGradient(AttentionGradOp op, const Twine &what,
                                    RankedTensorType grad,
                                    RankedTensorType type) {
  bool agrees = grad.getElementType() == type.getElementType() &&
                grad.getRank() == type.getRank();
  for (int64_t d = 0; agrees && d < type.getRank(); ++d)
    agrees = mayBeEqual(grad.getDimSize(d), type.getDimSize(d));
  if (agrees)
    return success();
  return op.emitOpError() << "the gradient of " << what << " must have type "
                          << type << ", got " << grad;
}

/// Checks the tensors of `wrt`.
static LogicalResult verifyCaptured(AttentionGradOp op) {
  if (op.getCaptured().size() != op.getCapturedGrads().size())
    return op.emitOpError("has ")
           << op.getCaptured().size() << " tensors in wrt, but "
           << op.getCapturedGrads().size() << " gradients of such";
  llvm::SmallDenseSet<Value> read, seen;
  if (!op.getScore().empty())
    for (auto extract : op.getScore().front().getOps<tensor::ExtractOp>())
      read.insert(extract.getTensor());
  for (auto [number, tensor, grad] :
       llvm::enumerate(op.getCaptured(), op.getCapturedGrads())) {
    if (!read.contains(tensor))
      return op.emitOpError("tensor #")
             << number
             << " of wrt is not read by a tensor.extract of the score region, "
                "so that its gradient is 0; leave it out";
    if (!seen.insert(tensor).second)
      return op.emitOpError("tensor #")
             << number << " of wrt is named a second time";
    if (failed(verifyGradient(op, "tensor #" + Twine(number) + " of wrt",
                              cast<RankedTensorType>(grad.getType()),
                              cast<RankedTensorType>(tensor.getType()))))
      return failure();
  }
  return success();
}

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyAttention(*this)) ||
      failed(verifyOutput(*this, "output", getOutput().getType())) ||
      failed(verifyRows(*this, "log-sum-exp", getLse().getType())) ||
      failed(verifyOutput(*this, "gradient of the output",
                          getOutputGrad().getType())))
    return failure();
  if (getLseGrad() && failed(verifyRows(*this, "gradient of the log-sum-exp",
                                        getLseGrad().getType())))
    return failure();
  for (auto [name, grad, operand] :
       {std::tuple("the query", getQueryGrad(), getQuery()),
        {"the key", getKeyGrad(), getKey()},
        {"the value", getValueGrad(), getValue()}})
    if (failed(verifyGradient(*this, name, grad.getType(), operand.getType())))
      return failure();
  if (static_cast<bool>(getSink()) != static_cast<bool>(getSinkGrad()))
    return emitOpError("a sink has a gradient, and a gradient of the sink "
                       "needs a sink");
  if (getSink() &&
      failed(verifyGradient(*this, "the sink", getSinkGrad().getType(),
                            getSink().getType())))
    return failure();
  return verifyCaptured(*this);
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

/// Checks where the first element of a step is.
template <typename Op> static LogicalResult verifyPosition(Op op) {
  if (op.getStaticPosition().size() != 4)
    return op.emitOpError("'at' takes the four indices [b, h, i, j]");
  if (op.getStaticExtents().size() != 2)
    return op.emitOpError("'of' takes the two lengths [nq, nk]");
  for (int64_t value : llvm::concat<const int64_t>(op.getStaticPosition(),
                                                   op.getStaticExtents()))
    if (!ShapedType::isDynamic(value) && value < 0)
      return op.emitOpError("'at' and 'of' must not be negative, got ")
             << value;
  auto countDynamic = [](ArrayRef<int64_t> values) {
    return static_cast<size_t>(llvm::count_if(values, ShapedType::isDynamic));
  };
  if (countDynamic(op.getStaticPosition()) != op.getPosition().size() ||
      countDynamic(op.getStaticExtents()) != op.getExtents().size())
    return op.emitOpError("'at' and 'of' need one operand per dynamic entry");
  return success();
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
  if (failed(verifyPosition(*this)))
    return failure();
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
      failed(verifyPrecision(*this, getPrecision(), query.getElementType())) ||
      failed(verifyScoreRegion(*this, getScore())))
    return failure();
  return verifyBlocks(*this, getKeyTiles(), getTileCounts(), query, key,
                      getMask(), getLengths(), getScore(), getSchedule());
}

//===----------------------------------------------------------------------===//
// Steps of the gradients
//===----------------------------------------------------------------------===//

template <typename Op> static SmallVector<OpFoldResult> positionOf(Op op) {
  Builder builder(op.getContext());
  return getMixedValues(op.getStaticPosition(), op.getPosition(), builder);
}

template <typename Op> static SmallVector<OpFoldResult> extentsOf(Op op) {
  Builder builder(op.getContext());
  return getMixedValues(op.getStaticExtents(), op.getExtents(), builder);
}

SmallVector<OpFoldResult> QueryGradStepOp::getMixedPosition() {
  return positionOf(*this);
}
SmallVector<OpFoldResult> KeyGradStepOp::getMixedPosition() {
  return positionOf(*this);
}
SmallVector<OpFoldResult> CapturedGradStepOp::getMixedPosition() {
  return positionOf(*this);
}
SmallVector<OpFoldResult> QueryGradStepOp::getMixedExtents() {
  return extentsOf(*this);
}
SmallVector<OpFoldResult> KeyGradStepOp::getMixedExtents() {
  return extentsOf(*this);
}

SmallVector<OpFoldResult> CapturedGradStepOp::getMixedExtents() {
  return extentsOf(*this);
}

MutableOperandRange QueryGradStepOp::getCountMutable() {
  return getKeysMutable();
}
MutableOperandRange KeyGradStepOp::getCountMutable() {
  return getQueriesMutable();
}

MutableOperandRange CapturedGradStepOp::getCountMutable() {
  return getOverQueries() ? getQueriesMutable() : getKeysMutable();
}

Value QueryGradStepOp::getFixedCount() { return {}; }
Value KeyGradStepOp::getFixedCount() { return getKeys(); }
Value CapturedGradStepOp::getFixedCount() {
  return getOverQueries() ? getKeys() : getQueries();
}

/// The tiles of keys, or of queries, of a step.
template <typename Op>
static SmallVector<OpOperand *> getTiles(Op op, bool ofQueries) {
  if (!ofQueries)
    return {&op.getKeyMutable(), &op.getValueMutable()};
  return {&op.getQueryMutable(), &op.getOutputGradMutable(),
          &op.getShiftMutable(), &op.getDeltaMutable()};
}

SmallVector<OpOperand *> QueryGradStepOp::getSteppedTiles() {
  return getTiles(*this, /*ofQueries=*/false);
}
SmallVector<OpOperand *> KeyGradStepOp::getSteppedTiles() {
  return getTiles(*this, /*ofQueries=*/true);
}
SmallVector<OpOperand *> CapturedGradStepOp::getSteppedTiles() {
  return getTiles(*this, getOverQueries());
}

/// Checks what all steps of the gradients have.
template <typename Op> static LogicalResult verifyGradStep(Op op) {
  RankedTensorType query = op.getQuery().getType(), key = op.getKey().getType(),
                   value = op.getValue().getType(),
                   outputGrad = op.getOutputGrad().getType();
  if (failed(verifyOperandShapes(op, query, key, value)))
    return failure();
  if (outputGrad.getElementType() != query.getElementType())
    return op.emitOpError("gradient of the output must have the operands' "
                          "element type ")
           << query.getElementType() << ", got " << outputGrad.getElementType();
  ArrayRef<int64_t> rows = query.getShape().drop_back();
  if (failed(verifyShape(op, "gradient of the output", outputGrad,
                         withLast(query.getShape(), value.getDimSize(1)),
                         /*endsInValueDim=*/true)) ||
      failed(verifyShape(op, "shift", op.getShift().getType(), rows)) ||
      failed(verifyShape(op, "delta", op.getDelta().getType(), rows)) ||
      failed(verifyPosition(op)) || failed(verifyScale(op, op.getScale())) ||
      failed(verifyPrecision(op, op.getPrecision(), query.getElementType())))
    return failure();
  return verifyScoreRegion(op, op.getScore());
}

LogicalResult QueryGradStepOp::verify() {
  if (failed(verifyShape(*this, "gradient of the query",
                         getQueryGrad().getType(),
                         getQuery().getType().getShape(),
                         /*endsInValueDim=*/true)))
    return failure();
  return verifyGradStep(*this);
}

LogicalResult KeyGradStepOp::verify() {
  if (failed(verifyShape(*this, "gradient of the key", getKeyGrad().getType(),
                         getKey().getType().getShape(),
                         /*endsInValueDim=*/true)) ||
      failed(verifyShape(*this, "gradient of the value",
                         getValueGrad().getType(),
                         getValue().getType().getShape(),
                         /*endsInValueDim=*/true)))
    return failure();
  return verifyGradStep(*this);
}

SmallVector<Operation *> CapturedGradStepOp::getAllReads() {
  SmallVector<Operation *> reads;
  if (!getScore().empty())
    for (auto read : getScore().front().getOps<tensor::ExtractOp>())
      if (read.getTensor() == getCaptured())
        reads.push_back(read);
  return reads;
}

LogicalResult CapturedGradStepOp::verify() {
  int64_t count = getAllReads().size();
  if (getReads().empty())
    return emitOpError("'reads' names no read of the tensor");
  for (int64_t read : getReads())
    if (read < 0 || read >= count)
      return emitOpError("has no read ")
             << read << ": the score region reads the tensor " << count
             << " times";
  if (failed(verifyGradStep(*this)))
    return failure();
  int64_t rows = getQuery().getType().getDimSize(0),
          columns = getKey().getType().getDimSize(0);
  if (getOverQueries())
    std::swap(rows, columns);
  RankedTensorType sum = getSum().getType();
  if (sum.getShape() == ArrayRef({rows}) ||
      sum.getShape() == ArrayRef({rows, columns}))
    return success();
  return emitOpError("the sum must have the shape ")
         << rows << " or " << rows << "x" << columns << ", got " << sum;
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

//===----------------------------------------------------------------------===//
// BlockMapOp
//===----------------------------------------------------------------------===//

SmallVector<OpFoldResult> BlockMapOp::getMixedSizes() {
  Builder builder(getContext());
  return getMixedValues(getStaticSizes(), getSizes(), builder);
}

std::pair<RankedTensorType, RankedTensorType>
BlockMapOp::getMapTypes(MLIRContext *context, ArrayRef<int64_t> sizes,
                        ArrayRef<int64_t> tiles) {
  auto countTiles = [](int64_t size, int64_t tile) {
    return ShapedType::isDynamic(size) ? size
                                       : llvm::divideCeilSigned(size, tile);
  };
  int64_t queryTiles = countTiles(sizes[2], tiles[0]),
          keyTiles = countTiles(sizes[3], tiles[1]);
  Type i32 = IntegerType::get(context, 32);
  return {
      RankedTensorType::get({sizes[0], sizes[1], queryTiles, keyTiles}, i32),
      RankedTensorType::get({sizes[0], sizes[1], queryTiles, 2}, i32)};
}

LogicalResult BlockMapOp::verify() {
  ArrayRef<int64_t> sizes = getStaticSizes();
  if (sizes.size() != 4)
    return emitOpError("'of' takes the four sizes [batches, heads, queries, "
                       "keys]");
  if (static_cast<size_t>(llvm::count_if(sizes, ShapedType::isDynamic)) !=
      getSizes().size())
    return emitOpError("'of' needs one operand per dynamic size");
  for (int64_t size : sizes)
    if (!ShapedType::isDynamic(size) && size < 0)
      return emitOpError("sizes must not be negative, got ") << size;
  if (getTiles().size() != 2 || getTiles()[0] < 1 || getTiles()[1] < 1)
    return emitOpError("tiles are two positive numbers, of queries and of "
                       "keys");
  auto [keyTiles, counts] = getMapTypes(getContext(), sizes, getTiles());
  for (auto [name, type, expected] :
       {std::tuple("key_tiles", getKeyTiles().getType(), keyTiles),
        {"counts", getCounts().getType(), counts}})
    if (type != expected)
      return emitOpError() << name << " must have type " << expected << ", got "
                           << type;
  if (getLengths() &&
      failed(verifySameSize(*this, "number of batches and number of lengths",
                            sizes[0], getLengths().getType().getDimSize(0))))
    return failure();
  if (getKeep().empty())
    return success();
  Block &block = getKeep().front();
  SmallVector<Type> expected(4, IndexType::get(getContext()));
  if (block.getArgumentTypes() != TypeRange(expected))
    return emitOpError("the region takes (batch: index, head: index, query: "
                       "index, key: index)");
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield || !yield.getResult().getType().isInteger(1) || yield.getKeep())
    return emitOpError("the region must end with flash.yield of an i1");
  return verifyElementwise(block, "the region of a block map");
}
