//===- RowOperations.cpp - Operations on whole rows of memory -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockProgram.h"

#include "RowCombine.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace flash;

Value BlockProgram::getRowInput(Operation *op) {
  if (auto softmax = dyn_cast_or_null<SoftmaxOp>(op))
    return softmax.getScores();
  if (auto softmax = dyn_cast_or_null<linalg::SoftmaxOp>(op))
    return softmax.getInput();
  if (auto combine = dyn_cast_or_null<CombineOp>(op))
    return combine.getOuts();
  return Value();
}

static LogicalResult refuse(Operation *op, const Twine &reason) {
  return op->emitOpError("has no translation to a block program: ") << reason;
}

LogicalResult BlockProgram::findStores(Operation &op,
                                       ArrayRef<MemoryPlace *> places) {
  for (OpResult result : op.getResults()) {
    Operation *user = &op;
    Value used = result;
    while (used && used.hasOneUse()) {
      user = *used.getUsers().begin();
      used = isa<tensor::CastOp>(user) ? user->getResult(0) : Value();
    }
    auto store = dyn_cast<tensor::ParallelInsertSliceOp>(user);
    if (!store)
      return refuse(&op, "its results are not stored, once");
    *places[result.getResultNumber()] = {captureTensor(store.getDest()),
                                         lookupAll(store.getMixedOffsets())};
  }
  return success();
}

LogicalResult BlockProgram::translateSoftmax(Operation &op) {
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op);
      softmax && static_cast<int64_t>(softmax.getDimension()) !=
                     softmax.getInputOperandRank() - 1)
    return refuse(&op, "it is not along the last dimension");
  tensor::ExtractSliceOp input = getSlice(getRowInput(&op));
  if (!input || input.getSourceType().getRank() < 2)
    return refuse(&op, "its input is no slice of a matrix");
  RowSoftmax softmax;
  softmax.zeroEmptyRows = isa<SoftmaxOp>(op);
  softmax.input = {captureTensor(input.getSource()),
                   lookupAll(input.getMixedOffsets())};
  SmallVector<OpFoldResult> sizes = input.getMixedSizes();
  softmax.rows = lookup(sizes[sizes.size() - 2]);
  softmax.columns = lookup(sizes.back());
  if (auto withSink = dyn_cast<SoftmaxOp>(op); withSink && withSink.getSink())
    softmax.sink = lookup(withSink.getSink());
  if (failed(findStores(op, {&softmax.output, &softmax.lse})))
    return failure();
  emitRowSoftmax(b, op.getLoc(), types.queries, types.warps, softmax);
  return success();
}

LogicalResult BlockProgram::translateCombine(CombineOp op) {
  tensor::ExtractSliceOp outs = getSlice(op.getOuts()),
                         lses = getSlice(op.getLses());
  // The rows of each part are where the parts of its memory are.
  auto isSliceOfParts = [](tensor::ExtractSliceOp slice, int64_t rank) {
    return slice && slice.getSourceType().getRank() == rank &&
           slice.getType().getRank() == rank - 2;
  };
  if (!isSliceOfParts(outs, 5) || !isSliceOfParts(lses, 4))
    return refuse(op, "its inputs are no slices of parts of batches of heads");
  RowCombine combine;
  combine.outs = {captureTensor(outs.getSource()),
                  lookupAll(outs.getMixedOffsets())};
  combine.lses = {captureTensor(lses.getSource()),
                  lookupAll(lses.getMixedOffsets())};
  combine.parts = lookup(outs.getMixedSizes()[0]);
  combine.rows = lookup(outs.getMixedSizes()[3]);
  combine.valueDim = op.getOuts().getType().getShape().back();
  if (failed(findStores(*op, {&combine.output, &combine.lse})))
    return failure();
  emitRowCombine(b, op.getLoc(), types.queries, types.warps, combine);
  return success();
}
