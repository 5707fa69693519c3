//===- OnlineSoftmax.cpp - Attention as a step of the online softmax ------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/ScoreRegion.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "flash/Dialect/Flash/Transforms/GetProblem.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

namespace flash {
#define GEN_PASS_DEF_ONLINESOFTMAX
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
/// Builds the f32 tensors of the state of one attention.
struct StateBuilder {
  OpBuilder &b;
  Location loc;

  Value constant(double value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  Value empty(ArrayRef<OpFoldResult> sizes, Type elementType) {
    return tensor::EmptyOp::create(b, loc, sizes, elementType);
  }
  Value fill(ArrayRef<OpFoldResult> sizes, double value) {
    return linalg::FillOp::create(b, loc, constant(value),
                                  empty(sizes, b.getF32Type()))
        .getResult(0);
  }
  /// The maximum of a state that has seen only the sink of each head.
  Value sinkMaximum(ArrayRef<OpFoldResult> sizes, Value sink, double unit) {
    MLIRContext *context = b.getContext();
    AffineMap heads = AffineMap::get(3, 0, b.getAffineDimExpr(1));
    AffineMap rows = AffineMap::getMultiDimIdentityMap(3, context);
    Value init = empty(sizes, b.getF32Type());
    SmallVector<utils::IteratorType> parallel(3, utils::IteratorType::parallel);
    auto body = [&](OpBuilder &nested, Location loc, ValueRange args) {
      auto of = [&](double value) -> Value {
        return arith::ConstantOp::create(nested, loc,
                                         nested.getF32FloatAttr(value));
      };
      Value max = args[0];
      if (unit != 1.0) {
        max = arith::MulFOp::create(nested, loc, max, of(1.0 / unit));
        max = arith::MinimumFOp::create(nested, loc, max,
                                        of(std::numeric_limits<float>::max()));
      }
      linalg::YieldOp::create(nested, loc, max);
    };
    return linalg::GenericOp::create(b, loc, init.getType(), sink, init,
                                     ArrayRef<AffineMap>{heads, rows}, parallel,
                                     body)
        .getResult(0);
  }
};

void rewriteAttention(AttentionOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  StateBuilder state{b, loc};
  // The scale joins the subtraction of the maximum in one instruction where the
  // maximum of the products is of the same element as that of the scores.
  double scale = op.getScaleOrDefault();
  double unit = isUnit(scale) && !changesScore(op.getScore()) ? scale : 1.0;
  // What elements of 8 bits are multiplied by is known at run time only.
  if (multipliesQuantized(op.getPrecision(), op.getSchedule()))
    unit = llvm::numbers::ln2;
  SmallVector<OpFoldResult> outputSizes =
      tensor::getMixedSizes(b, loc, op.getQuery());
  SmallVector<OpFoldResult> extents = {
      outputSizes[2], tensor::getMixedSize(b, loc, op.getKey(), 2)};
  outputSizes[3] = b.getIndexAttr(op.getValueDim());
  ArrayRef<OpFoldResult> rowSizes = ArrayRef(outputSizes).drop_back();

  Value acc = state.fill(outputSizes, 0.0);
  Value max =
      op.getSink()
          ? state.sinkMaximum(rowSizes, op.getSink(), unit)
          : state.fill(rowSizes, -std::numeric_limits<double>::infinity());
  Value sum = state.fill(rowSizes, op.getSink() ? 1.0 : 0.0);

  SmallVector<Value> dynamicExtents;
  SmallVector<int64_t> staticExtents;
  dispatchIndexOpFoldResults(extents, dynamicExtents, staticExtents);
  auto online = OnlineAttentionOp::create(
      b, loc, TypeRange{acc.getType(), max.getType(), sum.getType()},
      op.getQuery(), op.getKey(), op.getValue(), acc, max, sum,
      /*position=*/ValueRange{}, dynamicExtents, /*keys=*/Value(),
      /*partial=*/Value(), /*factor=*/Value(), op.getLengths(),
      op.getQueryLengths(), op.getKeyLengths(), op.getKeyTiles(),
      op.getTileCounts(),
      /*staticPosition=*/ArrayRef<int64_t>{0, 0, 0, 0}, staticExtents,
      APFloat(scale), APFloat(unit), op.getMaskAttr(), op.getPrecisionAttr(),
      op.getBlockSizesAttr(), op.getMultiplesAttr(), op.getScheduleAttr(),
      /*packed=*/IntegerAttr());
  online.getScore().takeBody(op.getScore());

  RankedTensorType outputType = op.getOutput().getType();
  Value output = state.empty(outputSizes, outputType.getElementType());
  SmallVector<Type> types = {outputType};
  Value lse;
  if (op.getLse()) {
    lse = state.empty(rowSizes, b.getF32Type());
    types.push_back(op.getLse().getType());
  }
  // A result type may be less static than the operands' types imply.
  auto cast = [&](Value value, Type type) -> Value {
    if (value.getType() == type)
      return value;
    return tensor::CastOp::create(b, loc, type, value);
  };
  output = cast(output, outputType);
  if (lse)
    lse = cast(lse, op.getLse().getType());
  auto finalize =
      FinalizeOp::create(b, loc, types, online.getAccOut(), online.getMaxOut(),
                         online.getSumOut(), output, lse, APFloat(unit));
  op->replaceAllUsesWith(finalize->getResults());
  op.erase();
}

struct OnlineSoftmax : flash::impl::OnlineSoftmaxBase<OnlineSoftmax> {
  void runOnOperation() override {
    SmallVector<AttentionOp> ops;
    getOperation().walk([&](AttentionOp op) { ops.push_back(op); });
    for (AttentionOp op : ops)
      if (failed(op.requireRank4()))
        return signalPassFailure();
    llvm::for_each(ops, rewriteAttention);
  }
};
} // namespace
