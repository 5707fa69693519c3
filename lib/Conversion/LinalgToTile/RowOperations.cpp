//===- RowOperations.cpp - Operations on whole rows of memory -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockConverter.h"
#include "RowCombine.h"
#include "RowSoftmax.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace flash;

Value flash::getRowInput(Operation *op) {
  if (auto softmax = dyn_cast_or_null<SoftmaxOp>(op))
    return softmax.getScores();
  if (auto softmax = dyn_cast_or_null<linalg::SoftmaxOp>(op))
    return softmax.getInput();
  if (auto combine = dyn_cast_or_null<CombineOp>(op))
    return combine.getOuts();
  return Value();
}

/// The slice of memory that a padded or whole tile comes from.
static tensor::ExtractSliceOp getRowSlice(Value tile) {
  if (auto pad = tile.getDefiningOp<tensor::PadOp>())
    tile = pad.getSource();
  return stripCasts(tile).getDefiningOp<tensor::ExtractSliceOp>();
}

/// The dimensions of memory with those of rows, which are not dropped, behind
/// the others; the `first` ones stay.
static SmallVector<unsigned> getRowsLast(const llvm::SmallBitVector &dropped,
                                         unsigned first) {
  SmallVector<unsigned> order, rows;
  for (unsigned dim = 0; dim < dropped.size(); ++dim)
    (dim < first || dropped.test(dim) ? order : rows).push_back(dim);
  llvm::append_range(order, rows);
  return order;
}

static SmallVector<OpFoldResult> permute(ArrayRef<OpFoldResult> values,
                                         ArrayRef<unsigned> order) {
  return llvm::map_to_vector(order, [&](unsigned dim) { return values[dim]; });
}

RowBlock flash::getRowBlock(scf::ForallOp forall) {
  // A loop of one iteration may have been dropped; the number of rows is static
  // then.
  int64_t rows = getConstantIntValue(forall.getMixedStep().back()).value_or(1);
  forall.walk([&](Operation *op) {
    Value input = getRowInput(op);
    tensor::ExtractSliceOp slice =
        input ? getRowSlice(input) : tensor::ExtractSliceOp();
    if (!slice || slice.getSourceType().getRank() < 2)
      return;
    SmallVector<OpFoldResult> sizes = slice.getMixedSizes();
    unsigned rowDim = sizes.size() - 2;
    if (isa<CombineOp>(op))
      rowDim = getRowsLast(slice.getDroppedDims(), /*first=*/1)[rowDim];
    if (std::optional<int64_t> known = getConstantIntValue(sizes[rowDim]))
      rows = std::max<int64_t>(*known, 1);
  });
  // Every warp has whole rows.
  int64_t warps = std::min<int64_t>(rows, 8);
  while (rows % warps != 0)
    --warps;
  return {rows, warps};
}

SmallVector<Value> BlockConverter::lookupAll(ArrayRef<OpFoldResult> values) {
  return llvm::map_to_vector(values,
                             [&](OpFoldResult entry) { return lookup(entry); });
}

LogicalResult BlockConverter::findStores(Operation &op,
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
    // A softmax is of rows along the last dimensions but one.
    SmallVector<unsigned> order;
    if (isa<CombineOp>(op))
      order = getRowsLast(store.getDroppedDims(), /*first=*/0);
    else
      llvm::append_range(order,
                         llvm::seq<unsigned>(store.getDestType().getRank()));
    *places[result.getResultNumber()] = {
        capture(store.getDest(), order),
        lookupAll(permute(store.getMixedOffsets(), order))};
  }
  return success();
}

LogicalResult BlockConverter::convertSoftmax(Operation &op) {
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op);
      softmax && static_cast<int64_t>(softmax.getDimension()) !=
                     softmax.getInputOperandRank() - 1)
    return refuse(&op, "it is not along the last dimension");
  tensor::ExtractSliceOp input = getRowSlice(getRowInput(&op));
  if (!input || input.getSourceType().getRank() < 2)
    return refuse(&op, "its input is no slice of a matrix");
  RowSoftmax softmax;
  softmax.zeroEmptyRows = isa<SoftmaxOp>(op);
  softmax.input = {capture(input.getSource()),
                   lookupAll(input.getMixedOffsets())};
  SmallVector<OpFoldResult> sizes = input.getMixedSizes();
  softmax.rows = lookup(sizes[sizes.size() - 2]);
  softmax.columns = lookup(sizes.back());
  if (auto withSink = dyn_cast<SoftmaxOp>(op); withSink && withSink.getSink())
    softmax.sink = lookup(withSink.getSink());
  if (failed(findStores(op, {&softmax.output, &softmax.lse})))
    return failure();
  emitRowSoftmax(b, op.getLoc(), getRowBlock(forall).rows,
                 layouts.getNumWarps(), softmax);
  return success();
}

LogicalResult BlockConverter::convertCombine(CombineOp op) {
  tensor::ExtractSliceOp outs = getRowSlice(op.getOuts()),
                         lses = getRowSlice(op.getLses());
  // The rows of each part are where the parts of its memory are.
  auto isSliceOfSplits = [](tensor::ExtractSliceOp slice, int64_t rank) {
    return slice && slice.getSourceType().getRank() == rank &&
           slice.getType().getRank() == rank - 2;
  };
  if (!isSliceOfSplits(outs, 5) || !isSliceOfSplits(lses, 4))
    return refuse(op, "its inputs are no slices of splits of batches of heads");
  RowCombine combine;
  // The splits are the first dimension, rows any other.
  auto getPlace = [&](tensor::ExtractSliceOp slice) -> MemoryPlace {
    SmallVector<unsigned> order =
        getRowsLast(slice.getDroppedDims(), /*first=*/1);
    return {capture(slice.getSource(), order),
            lookupAll(permute(slice.getMixedOffsets(), order))};
  };
  combine.outs = getPlace(outs);
  combine.lses = getPlace(lses);
  SmallVector<OpFoldResult> sizes = outs.getMixedSizes();
  combine.splits = lookup(sizes[0]);
  unsigned rowDim = getRowsLast(outs.getDroppedDims(), /*first=*/1)[3];
  combine.rows = lookup(sizes[rowDim]);
  combine.valueDim = op.getOuts().getType().getShape().back();
  if (failed(findStores(*op, {&combine.output, &combine.lse})))
    return failure();
  emitRowCombine(b, op.getLoc(), getRowBlock(forall).rows,
                 layouts.getNumWarps(), combine);
  return success();
}
