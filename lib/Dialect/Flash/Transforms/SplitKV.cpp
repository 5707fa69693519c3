//===- SplitKV.cpp - The splits of the keys of a query tile ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitKV.h"
#include "flash/Dialect/Flash/IR/InitSizes.h"

#include "flash/Dialect/Flash/Transforms/GetProblem.h"
#include "flash/Dialect/Flash/Utils/TileSlices.h"
#include "flash/Schedule/SplitKV.h"
#include "flash/Schedule/ValueColumns.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

// Rows that are combined in an iteration of the parallel loop, one by each
// warp. Of few queries a warp has so many columns at most: as many as a thread
// has registers for of all splits that it reads at a time. The rows of many
// queries fill a GPU, which takes less time for whole rows
// (docs/lab/2026-11-30-combination-by-columns.md).
static constexpr int64_t rowsOfCombination = 8, columnsOfCombination = 128,
                         mostQueriesOfColumns = 16;

/// `countSplits`, at run time.
static Value emitCount(OpBuilder &b, Location loc, int64_t splitCtas,
                       ArrayRef<OpFoldResult> querySizes, OpFoldResult numKeys,
                       const Schedule &schedule, int64_t valueBlocks,
                       AddressOpInterface rows) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto value = [&](OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(b, loc, size);
  };
  // Tiles of rows that lie behind each other are of all batches.
  int64_t queries = schedule.getQueriesOfTile();
  Value tiles = rows ? rows.emitTileCount(b, loc, queries)
                     : arith::CeilDivUIOp::create(b, loc, value(querySizes[2]),
                                                  constant(queries))
                           .getResult();
  Value heads = value(querySizes[1]);
  if (schedule.getPackedHeads() > 1)
    heads = arith::DivUIOp::create(b, loc, heads,
                                   constant(schedule.getPackedHeads()));
  if (!rows)
    tiles = arith::MulIOp::create(b, loc, tiles, value(querySizes[0]));
  tiles = arith::MulIOp::create(b, loc, tiles, heads);
  if (valueBlocks > 1)
    tiles = arith::MulIOp::create(b, loc, tiles, constant(valueBlocks));
  tiles = arith::MaxUIOp::create(b, loc, tiles, constant(1));
  Value wanted = arith::DivUIOp::create(b, loc, constant(splitCtas), tiles);
  Value keyTiles = arith::CeilDivUIOp::create(b, loc, value(numKeys),
                                              constant(*schedule.keyTile));
  Value most =
      arith::DivUIOp::create(b, loc, keyTiles, constant(minKeyTilesPerSplit));
  Value count = arith::MinUIOp::create(b, loc, wanted, most);
  count = arith::MinUIOp::create(b, loc, count, constant(maxSplits));
  Value pays = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge,
                                     keyTiles, constant(minKeyTiles));
  count = arith::SelectOp::create(b, loc, pays, count, constant(1));
  return arith::MaxUIOp::create(b, loc, count, constant(1));
}

KeySplits::KeySplits(OpBuilder &b, OnlineAttentionOp online,
                     AddressOpInterface rows)
    : count(b.getIndexAttr(1)) {
  const Schedule schedule = online.getSchedule()->getValue();
  Location loc = online.getLoc();
  if (schedule.numSplits)
    count = b.getIndexAttr(*schedule.numSplits);
  if (schedule.splitKeys) {
    keys = schedule.splitKeys;
    AffineExpr splits = b.getAffineDimExpr(0).ceilDiv(*keys);
    count = affine::makeComposedFoldedAffineMax(
        b, loc,
        AffineMap::get(1, 0, {splits, b.getAffineConstantExpr(1)},
                       b.getContext()),
        {tensor::getMixedSize(b, loc, online.getKey(), 2)});
  }
  if (!schedule.splitCtas)
    return;
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, loc, online.getQuery());
  OpFoldResult numKeys = tensor::getMixedSize(b, loc, online.getKey(), 2);
  std::optional<int64_t> knownKeys = getConstantIntValue(numKeys);
  std::optional<int64_t> queryTiles =
      countQueryTiles(online.getQuery().getType(), schedule);
  int64_t columns = online.getValue().getType().getShape().back();
  int64_t valueBlocks =
      countValueBlocks(columns, schedule.valueColumns.value_or(columns));
  if (queryTiles)
    *queryTiles *= valueBlocks;
  // More query tiles than CTAs are never split, whatever the number of keys.
  if (!rows && queryTiles &&
      (knownKeys || *queryTiles > *schedule.splitCtas / 2)) {
    int64_t keyTiles =
        knownKeys ? llvm::divideCeil(*knownKeys, *schedule.keyTile) : 1;
    count =
        b.getIndexAttr(countSplits(*schedule.splitCtas, *queryTiles, keyTiles));
    return;
  }
  count = emitCount(b, loc, *schedule.splitCtas, sizes, numKeys, schedule,
                    valueBlocks, rows);
}

OpFoldResult KeySplits::choose(OpBuilder &b, Location loc, OpFoldResult one,
                               OpFoldResult several) const {
  if (!isDynamic())
    return isOneInteger(count) ? one : several;
  Value isOne = arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::eq, cast<Value>(count),
      arith::ConstantIndexOp::create(b, loc, 1));
  return arith::SelectOp::create(
             b, loc, isOne, getValueOrCreateConstantIndexOp(b, loc, one),
             getValueOrCreateConstantIndexOp(b, loc, several))
      .getResult();
}

void flash::addValueBlocks(OpBuilder &b, int64_t all, int64_t columns,
                           SmallVectorImpl<OpFoldResult> &ends,
                           SmallVectorImpl<int64_t> &steps) {
  if (columns >= all)
    return;
  ends.insert(ends.begin(), b.getIndexAttr(all - columns + 1));
  steps.insert(steps.begin(), *getValueBlockDistance(all, columns));
}

SmallVector<Value>
flash::combineSplits(OpBuilder &b, Location loc, const KeySplits &splits,
                     Value outputs, Value lses, ValueRange inits,
                     bool alongHeads, Value rowsOfView,
                     function_ref<OpFoldResult(OpBuilder &, Value)> countOf) {
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  // Results of the kernel before that are views are used for nothing but to be
  // stored into, and what they start from is in no memory.
  Value init = inits[0];
  if (auto kernel = init.getDefiningOp<KernelOp>(); kernel && rowsOfView)
    init = kernel.getOuts()[cast<OpResult>(init).getResultNumber()];
  SmallVector<OpFoldResult> sizes = getInitSizes(b, loc, init);
  int64_t allColumns = *getConstantIntValue(sizes.pop_back_val()),
          columns = allColumns;
  std::optional<int64_t> queries = getConstantIntValue(sizes[2]);
  if (queries && *queries <= mostQueriesOfColumns)
    columns = getDefaultValueColumns(allColumns, columnsOfCombination);
  // The last loop is over rows, also where they are the rows of a view.
  unsigned rowDim = alongHeads ? 1 : 2, loopDim = rowsOfView ? rowDim : 2;
  std::swap(sizes[rowDim], sizes[loopDim]);
  TiledDim ofLoop = {rowsOfCombination, sizes[loopDim]};
  unsigned emptyDim = rowsOfView ? 1 : 2;
  sizes[emptyDim] = splits.choose(b, loc, zero, sizes[emptyDim]);
  SmallVector<int64_t> steps(3, 1);
  steps[loopDim] = rowsOfCombination;
  SmallVector<OpFoldResult> ends(sizes);
  addValueBlocks(b, allColumns, columns, ends, steps);
  auto kernel =
      KernelOp::create(b, loc, ends, steps, inits, Schedule(), rowsOfView);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(kernel.getStore());
  ValueRange ofRows = ValueRange(kernel.getPosition()).take_back(3);
  OpFoldResult firstColumn =
      columns < allColumns ? OpFoldResult(kernel.getPosition().front()) : zero;
  SmallVector<OpFoldResult> position = getAsOpFoldResult(ofRows);
  std::swap(position[rowDim], position[loopDim]);
  SmallVector<OpFoldResult> inMemory = position;
  OpFoldResult rows;
  if (rowsOfView) {
    auto view = rowsOfView.getDefiningOp<AddressOpInterface>();
    inMemory = view.emitAddress(b, loc, position);
    AffineExpr start = b.getAffineDimExpr(0), end = b.getAffineDimExpr(1);
    OpFoldResult left = affine::makeComposedFoldedAffineMax(
        b, loc,
        AffineMap::get(2, 0, {end - start, b.getAffineConstantExpr(0)},
                       b.getContext()),
        {position[2], view.emitLength(b, loc, cast<Value>(position[0]))});
    // A row that does not exist has no heads.
    AffineExpr most = b.getAffineConstantExpr(rowsOfCombination);
    rows = affine::makeComposedFoldedAffineMin(
        b, loc,
        alongHeads ? AffineMap::get(3, 0,
                                    {most, end - start,
                                     b.getAffineDimExpr(2) * rowsOfCombination},
                                    b.getContext())
                   : AffineMap::get(3, 0, {most, b.getAffineDimExpr(2)},
                                    b.getContext()),
        {position[1], sizes[1], left});
  } else {
    rows = ofLoop.existing(b, loc, ofRows[2]);
  }
  OpFoldResult count = countOf(b, cast<Value>(position[0]));
  auto sizeOf = [](OpFoldResult size) {
    return getConstantIntValue(size).value_or(ShapedType::kDynamic);
  };
  // The rows here of all splits, or of a result.
  auto getPlace = [&](bool ofSplits, bool withColumns) {
    SmallVector<OpFoldResult> offsets(ofSplits ? inMemory : position),
        extents(position.size(), one);
    extents[rowDim] = rows;
    if (ofSplits) {
      offsets.insert(offsets.begin(), zero);
      extents.insert(extents.begin(), count);
    }
    if (withColumns) {
      offsets.push_back(firstColumn);
      extents.push_back(b.getIndexAttr(columns));
    }
    return std::pair(offsets, extents);
  };
  auto ofSplits = [&](Value tensor, bool withColumns) -> Value {
    auto [offsets, extents] = getPlace(/*ofSplits=*/true, withColumns);
    SmallVector<int64_t> shape = {sizeOf(count), sizeOf(rows)};
    if (withColumns)
      shape.push_back(columns);
    return tensor::ExtractSliceOp::create(
        b, loc, RankedTensorType::get(shape, b.getF32Type()), tensor, offsets,
        extents, SmallVector<OpFoldResult>(offsets.size(), one));
  };
  SmallVector<Type> types;
  for (Value init : inits) {
    auto type = cast<RankedTensorType>(init.getType());
    SmallVector<int64_t> shape = {sizeOf(rows)};
    if (type.getRank() == 4)
      shape.push_back(columns);
    types.push_back(RankedTensorType::get(shape, type.getElementType()));
  }
  // If splits are few, one step reads all, whichever of them a batch has.
  IntegerAttr step;
  if (splits.getKeys()) {
    std::optional<int64_t> most = getConstantIntValue(splits.getCount());
    bool areFew = most && count != splits.getCount();
    step = b.getI64IntegerAttr(areFew ? std::min(mostSplitsAtOnce, *most)
                                      : mostSplitsAtOnce);
  }
  auto combine =
      CombineOp::create(b, loc, types, ofSplits(outputs, /*withColumns=*/true),
                        ofSplits(lses, /*withColumns=*/false), step);
  b.setInsertionPointToEnd(kernel.getStores());
  for (auto [result, output] :
       llvm::zip_equal(combine->getResults(), kernel.getDestinations())) {
    auto [offsets, extents] = getPlace(
        /*ofSplits=*/false,
        cast<RankedTensorType>(result.getType()).getRank() == 2);
    tensor::ParallelInsertSliceOp::create(
        b, loc, result, output, offsets, extents,
        SmallVector<OpFoldResult>(offsets.size(), one));
  }
  return SmallVector<Value>(kernel.getResults());
}
