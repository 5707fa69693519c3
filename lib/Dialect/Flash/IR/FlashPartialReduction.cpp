//===- FlashPartialReduction.cpp - Splitting the keys of the online step --===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The keys are cut into splits that run in parallel. Each computes a state of
// its own from the identity (0, -inf, 0); split s owns the slice s of partial
// tensors, which are the state tensors with one more, leading, dimension: so
// that a split writes whole rows. The merge then adds every split, once, to the
// state that the op itself starts from.
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace flash;

static constexpr double minusInfinity =
    -std::numeric_limits<double>::infinity();

FailureOr<SmallVector<Value>>
OnlineAttentionOp::generateInitialTensorForPartialReduction(
    OpBuilder &builder, Location loc, ArrayRef<OpFoldResult> sizes,
    const SetVector<unsigned> &reductionDims) {
  ImplicitLocOpBuilder b(loc, builder);
  unsigned keyLoop = getQuery().getType().getRank() - 1;
  if (reductionDims.size() != 1 || reductionDims.front() != keyLoop)
    return emitOpError("has one loop to split, its last, that over the keys");
  SmallVector<Value> partials;
  const double identities[] = {0.0, minusInfinity, 0.0};
  for (auto [init, identity] : llvm::zip_equal(getDpsInits(), identities)) {
    SmallVector<OpFoldResult> shape = tensor::getMixedSizes(b, loc, init);
    shape.insert(shape.begin(), sizes[keyLoop]);
    Value empty = tensor::EmptyOp::create(b, shape, b.getF32Type());
    partials.push_back(
        linalg::FillOp::create(b, emitConstant(b, identity), empty)
            .getResult(0));
  }
  return partials;
}

// The driver calls this and the next method on a copy of the op whose state
// operands are the partial tensors, so neither looks at these operands.
LogicalResult OnlineAttentionOp::getPartialResultTilePosition(
    OpBuilder &b, unsigned resultNumber, ReductionTilingStrategy strategy,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
    const SetVector<unsigned> &reductionDims, ArrayRef<OpFoldResult> splits,
    SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  if (strategy != ReductionTilingStrategy::PartialReductionOuterParallel)
    return failure();
  resultOffsets.assign({splits.front()});
  resultSizes.assign({b.getIndexAttr(1)});
  llvm::append_range(resultOffsets, offsets.drop_back());
  llvm::append_range(resultSizes, sizes.drop_back());
  if (resultNumber == 0) {
    resultOffsets.push_back(b.getIndexAttr(0));
    resultSizes.push_back(
        b.getIndexAttr(getValue().getType().getShape().back()));
  }
  return success();
}

FailureOr<TilingResult> OnlineAttentionOp::tileToPartialReduction(
    OpBuilder &b, Location loc, ReductionTilingStrategy strategy,
    ValueRange partials, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, const SetVector<unsigned> &reductionDims,
    ArrayRef<OpFoldResult> splits) {
  if (strategy != ReductionTilingStrategy::PartialReductionOuterParallel)
    return emitOpError(
        "can be split only by a parallel loop over its keys: it "
        "has a state for each query, not for each key of a tile");
  SmallVector<Value> state;
  SmallVector<Operation *> slices;
  for (auto [number, partial] : llvm::enumerate(partials)) {
    SmallVector<OpFoldResult> sliceOffsets, sliceSizes;
    if (failed(getPartialResultTilePosition(b, number, strategy, offsets, sizes,
                                            reductionDims, splits, sliceOffsets,
                                            sliceSizes)))
      return failure();
    SmallVector<int64_t> shape;
    SmallVector<Value> dynamicSizes;
    dispatchIndexOpFoldResults(ArrayRef(sliceSizes).drop_front(), dynamicSizes,
                               shape);
    SmallVector<OpFoldResult> strides(sliceSizes.size(), b.getIndexAttr(1));
    slices.push_back(tensor::ExtractSliceOp::create(
        b, loc, RankedTensorType::get(shape, b.getF32Type()), partial,
        sliceOffsets, sliceSizes, strides));
    state.push_back(slices.back()->getResult(0));
  }
  FailureOr<TilingResult> tiled = tileFrom(b, state, offsets, sizes);
  if (succeeded(tiled))
    llvm::append_range(tiled->generatedSlices, slices);
  return tiled;
}

/// A linalg.generic whose first loop, if `overSplits`, reduces over the splits.
static linalg::GenericOp generic(
    ImplicitLocOpBuilder &b, ValueRange inputs, ValueRange inits,
    ArrayRef<AffineMap> maps, bool overSplits,
    function_ref<SmallVector<Value>(ImplicitLocOpBuilder &, ValueRange)> body) {
  SmallVector<utils::IteratorType> iterators(maps[0].getNumDims(),
                                             utils::IteratorType::parallel);
  if (overSplits)
    iterators[0] = utils::IteratorType::reduction;
  return linalg::GenericOp::create(
      b, inits.getTypes(), inputs, inits, maps, iterators,
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        ImplicitLocOpBuilder inner(loc, nested);
        linalg::YieldOp::create(inner, body(inner, args));
      });
}

FailureOr<MergeResult>
OnlineAttentionOp::mergeReductions(OpBuilder &builder, Location loc,
                                   ValueRange partials,
                                   const SetVector<unsigned> &reductionDims) {
  ImplicitLocOpBuilder b(loc, builder);
  OnlineExponential exponential(getUnit().convertToDouble(),
                                getValue().getType().getElementType());
  unsigned rows = getMax().getType().getRank();
  Value partialAcc = partials[0], partialMax = partials[1],
        partialSum = partials[2];

  // The loops are (split, rows...). One state is added after the other, as the
  // sum of a split depends on its maximum.
  AffineMap splitRows = b.getMultiDimIdentityMap(rows + 1);
  AffineMap row = splitRows.getSliceMap(1, rows);
  linalg::GenericOp maxAndSum = generic(
      b, {partialMax, partialSum}, {getMax(), getSum()},
      {splitRows, splitRows, row, row}, /*overSplits=*/true,
      [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
        // A NaN score is left to the sum, as in a step.
        Growth growth = exponential.emitGrowth(b, args[2], args[0]);
        Value added = arith::MulFOp::create(
            b, args[1], exponential.emitRescale(b, args[0], growth.max));
        Value kept = arith::MulFOp::create(b, args[3], growth.rescale);
        return {growth.max, arith::AddFOp::create(b, kept, added)};
      });
  Value max = maxAndSum.getResult(0);

  // Rows of the accumulator are long, so they are scaled once, to the final
  // maximum: first what the op starts from, in the loops (rows..., value).
  AffineMap rowValues = b.getMultiDimIdentityMap(rows + 1);
  AffineMap rowOfValues = rowValues.getSliceMap(0, rows);
  linalg::GenericOp scaled = generic(
      b, {getMax(), max}, getAcc(), {rowOfValues, rowOfValues, rowValues},
      /*overSplits=*/false,
      [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
        return {arith::MulFOp::create(
            b, args[2], exponential.emitRescale(b, args[0], args[1]))};
      });

  // Then the splits, in the loops (split, rows..., value).
  AffineMap all = b.getMultiDimIdentityMap(rows + 2);
  linalg::GenericOp acc = generic(
      b, {partialMax, max, partialAcc}, scaled.getResult(0),
      {all.getSliceMap(0, rows + 1), all.getSliceMap(1, rows), all,
       all.getSliceMap(1, rows + 1)},
      /*overSplits=*/true,
      [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
        Value added = arith::MulFOp::create(
            b, args[2], exponential.emitRescale(b, args[0], args[1]));
        return {arith::AddFOp::create(b, args[3], added)};
      });
  return MergeResult{{maxAndSum, scaled, acc},
                     {acc.getResult(0), max, maxAndSum.getResult(1)}};
}
