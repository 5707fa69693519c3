//===- GradientOps.cpp - The gradients of attention and their steps -------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpRules.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace flash;
using namespace flash::detail;

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

/// Checks that a gradient has the type of what it is the gradient of, up to
/// sizes that may be known only at run time.
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
  if (!op.getCaptured().empty() && op.getScore().empty())
    return op.emitOpError("has tensors in wrt, but no score region that could "
                          "read them; leave out wrt, their gradients are 0");
  llvm::SmallDenseSet<Value> seen;
  for (auto [number, tensor, grad] :
       llvm::enumerate(op.getCaptured(), op.getCapturedGrads())) {
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
  for (auto [tiles, counts, user] :
       {std::tuple(getKeyTiles(), getKeyTileCounts(), BlockUser::QueryGrad),
        {getQueryTiles(), getQueryTileCounts(), BlockUser::KeyGrad}})
    if (failed(verifyBlocks(*this, tiles, counts, getQuery().getType(),
                            getKey().getType(), getMask(), getLengths(),
                            getScore(), getSchedule(), getBlockSizes(), user)))
      return failure();
  if (getBlockSizes() && getQueryTileRanks())
    return emitOpError("lists of blocks that are given have no ranks");
  if (Value ranks = getQueryTileRanks();
      ranks &&
      !(getQueryTiles() &&
        getQueryTiles().getDefiningOp<BlockMapOp>().getRanks() == ranks))
    return emitOpError("query_blocks takes the ranks of its own "
                       "flash.block_map");
  return verifyCaptured(*this);
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

MutableOperandRange QueryGradStepOp::getFixedCountMutable() {
  return MutableOperandRange(*this, 0, 0);
}
MutableOperandRange KeyGradStepOp::getFixedCountMutable() {
  return getKeysMutable();
}
MutableOperandRange CapturedGradStepOp::getFixedCountMutable() {
  return getOverQueries() ? getKeysMutable() : getQueriesMutable();
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
      failed(verifyShape(op, "lse_log2", op.getLseLog2().getType(), rows)) ||
      failed(verifyShape(op, "delta", op.getDelta().getType(), rows)) ||
      failed(verifyPosition(op)) || failed(verifyScale(op, op.getScale())) ||
      failed(verifyPrecision(op, op.getPrecision(), query.getElementType())))
    return failure();
  return verifyScoreRegion(op, op.getScore());
}

/// Checks the tile that stays and the tile that the step's loop goes over.
template <typename Op> static LogicalResult verifyTiles(Op op) {
  if (!op.getSchedule())
    return success();
  const Schedule schedule = op.getSchedule()->getValue();
  bool hasQueryStep = op.stepsOverQueries() && schedule.queryStep,
       hasKeyStep = !op.stepsOverQueries() && schedule.keyStep;
  if (failed(
          verifyTile(op, "queries", op.getQuery().getType(),
                     hasQueryStep ? "query_step" : "query_tile",
                     hasQueryStep ? schedule.queryStep : schedule.queryTile)))
    return failure();
  return verifyTile(op, "keys", op.getKey().getType(),
                    hasKeyStep ? "key_step" : "key_tile",
                    hasKeyStep ? schedule.keyStep : schedule.keyTile);
}

LogicalResult QueryGradStepOp::verify() {
  if (failed(verifyShape(*this, "gradient of the query",
                         getQueryGrad().getType(),
                         getQuery().getType().getShape(),
                         /*endsInValueDim=*/true)))
    return failure();
  if (failed(verifyTiles(*this)))
    return failure();
  return verifyGradStep(*this);
}

LogicalResult KeyGradStepOp::inferReturnTypes(MLIRContext *,
                                              std::optional<Location>,
                                              Adaptor adaptor,
                                              SmallVectorImpl<Type> &types) {
  types.assign(
      {adaptor.getKeyGrad().getType(), adaptor.getValueGrad().getType()});
  if (Value queryGrad = adaptor.getQueryGrad())
    types.push_back(queryGrad.getType());
  if (adaptor.getScoreGrads()) {
    auto query = cast<RankedTensorType>(adaptor.getQuery().getType());
    auto key = cast<RankedTensorType>(adaptor.getKey().getType());
    types.push_back(key.clone({key.getDimSize(0), query.getDimSize(0)}));
  }
  return success();
}

LogicalResult KeyGradStepOp::verify() {
  if (getScoreGrads() && !getQueryGrad())
    return emitOpError("gives the gradients of scores beside that of the query "
                       "alone");
  SmallVector<int64_t> ofQuery(getQuery().getType().getShape());
  // Columns may be in parts.
  if (getQueryGrad()) {
    int64_t rows =
        cast<RankedTensorType>(getQueryGrad().getType()).getDimSize(0);
    if (rows % ofQuery[0] == 0 && ofQuery[1] % (rows / ofQuery[0]) == 0)
      ofQuery = {rows, ofQuery[1] / (rows / ofQuery[0])};
  }
  if (getQueryGrad() && failed(verifyShape(*this, "gradient of the query",
                                           getQueryGrad().getType(), ofQuery)))
    return failure();
  if (failed(verifyShape(*this, "gradient of the key", getKeyGrad().getType(),
                         getKey().getType().getShape(),
                         /*endsInValueDim=*/true)) ||
      failed(verifyShape(*this, "gradient of the value",
                         getValueGrad().getType(),
                         getValue().getType().getShape(),
                         /*endsInValueDim=*/true)))
    return failure();
  if (failed(verifyTiles(*this)))
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
