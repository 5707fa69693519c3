//===- TileGrad.cpp - The gradients of attention as loops over tiles ------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GradTiler.h"
#include "flash/Analysis/MaskTiles.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "flash/Dialect/Flash/Transforms/GetProblem.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "flash/Schedule/GradKernels.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

namespace flash {
#define GEN_PASS_DEF_TILEGRAD
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

static constexpr double infinity = std::numeric_limits<double>::infinity();

/// What is subtracted in the exponent of probabilities, given the log-sum-exp
/// in units of log2. Where its last bit is more than 1, a probability could be
/// any power of two, up to infinity, which all rows would see. Steps of f32
/// limit it to 1, so that less is subtracted by more than both roundings: the
/// maximum of the row has 1 then, and what is far below it 0. The others have
/// 0.
static Value emitShiftOfGrad(ImplicitLocOpBuilder &b, Value log2, bool isF32) {
  Value magnitude = math::AbsFOp::create(b, log2);
  auto isAbove = [&](arith::CmpFPredicate predicate, double bound) -> Value {
    return arith::CmpFOp::create(b, predicate, magnitude,
                                 emitConstant(b, bound));
  };
  Value nothing = emitConstant(b, infinity);
  if (!isF32)
    return arith::SelectOp::create(
        b, isAbove(arith::CmpFPredicate::OGT, 0x1p25), nothing, log2);
  Value less =
      math::FmaOp::create(b, magnitude, emitConstant(b, -0x1p-21), log2);
  less = arith::SelectOp::create(b, isAbove(arith::CmpFPredicate::OGT, 0x1p25),
                                 less, log2);
  return arith::SelectOp::create(
      b, isAbove(arith::CmpFPredicate::OEQ, infinity), nothing, less);
}

/// Rows of dQ whose sums an iteration rounds.
static constexpr int64_t sumRows = 16;

/// Heads whose sinks an iteration sums up, and the queries of a step.
static constexpr int64_t sinkHeads = 8, sinkQueries = 256;

GradTiler::GradTiler(AttentionGradOp op)
    : GradProgram(op), elementType(op.getQuery().getType().getElementType()),
      queries{*schedule.queryTile,
              tensor::getMixedSize(b, op.getLoc(), op.getQuery(), 2)},
      keys{*schedule.keyTile,
           tensor::getMixedSize(b, op.getLoc(), op.getKey(), 2)},
      scale(op.getScaleOrDefault()) {
  if (std::optional<ArrayRef<int64_t>> multiples = op.getMultiples()) {
    queries.multiple = multiples->front();
    keys.multiple = multiples->back();
  }
  querySteps = {schedule.getQueryStep(), queries.end, queries.multiple};
  keySteps = {schedule.getKeyStep(), keys.end, keys.multiple};
  if (std::optional<ArrayRef<int64_t>> blocks = op.getBlockSizes()) {
    querySteps.block = blocks->front();
    keySteps.block = blocks->back();
  }
  deltaRows = getRowsOfDeltas(schedule, op.getValueDim());
}

Value GradTiler::emptyLike(Value tensor) {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, b.getLoc(), tensor);
  // There are as many values as keys.
  if (tensor == op.getValue())
    sizes[2] = keys.end;
  return tensor::EmptyOp::create(b, sizes, getElementTypeOrSelf(tensor));
}

Schedule GradTiler::ofTiles(int64_t rows, std::optional<int64_t> stages) {
  Schedule ofRows = schedule;
  ofRows.stages = stages;
  ofRows.warps = getWarpsOfRows(schedule, rows);
  return ofRows;
}

OpFoldResult GradTiler::numberOf(Value start, const TiledDim &dim) {
  return affine::makeComposedFoldedAffineApply(
      b, b.getLoc(), b.getAffineDimExpr(0).floorDiv(dim.tile), {start});
}

void GradTiler::addScore(StepOpInterface step) {
  IRMapping mapping;
  op.getScore().cloneInto(&step.getScore(), mapping);
}

/// In the body of a tile's rows: `value` in the rows before `end`, else 0.
static Value emitBefore(ImplicitLocOpBuilder &b, Value end, Value value) {
  Value row = linalg::IndexOp::create(b, 0);
  Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, end);
  return arith::SelectOp::create(b, exists, value, emitConstant(b, 0));
}

Value GradTiler::finish(Value sum, double factor, Value end) {
  AffineMap tile = map(2, {0, 1});
  auto type = cast<RankedTensorType>(sum.getType());
  return generic(
      sum, empty(type.getShape(), elementType), {tile, tile},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value value = args[0];
        if (factor != 1)
          value = arith::MulFOp::create(at, value, emitConstant(at, factor));
        if (end)
          value = emitBefore(at, end, value);
        return {truncateF32(at, elementType, value)};
      })[0];
}

//===----------------------------------------------------------------------===//
// The programs
//===----------------------------------------------------------------------===//

void GradTiler::emitRows() {
  Location loc = op.getLoc();
  TiledDim rowTiles = {deltaRows, queries.end, queries.multiple};
  int64_t columns = op.getValueDim();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, op.getLse());
  auto body = [&](ValueRange position, ValueRange outputs) {
    SmallVector<OpFoldResult> first = getAsOpFoldResult(position);
    TiledDim rowsOfBatch = ofBatch(rowTiles, op.getQueryLengths(), position[0]);
    OpFoldResult rows = rowsOfBatch.existing(b, loc, position[2]);
    Value output = extract(op.getOutput(), first, rows, rowsOfBatch);
    Value outputGrad = extract(op.getOutputGrad(), first, rows, rowsOfBatch);
    Value lse = extract(op.getLse(), first, rows, rowsOfBatch);
    AffineMap tile = map(2, {0, 1});
    // Products first: the sum of a row alone is a reduction of warps.
    Value products = generic(
        {output, outputGrad}, empty({deltaRows, columns}), {tile, tile, tile},
        [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {arith::MulFOp::create(at, extendToF32(at, args[0]),
                                        extendToF32(at, args[1]))};
        })[0];
    Value sums = generic(
        products, zeros({deltaRows}), {tile, map(2, {0})},
        [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {arith::AddFOp::create(at, args[1], args[0])};
        })[0];
    SmallVector<Value> inputs = {lse, sums};
    if (op.getLseGrad())
      inputs.push_back(extract(op.getLseGrad(), first, rows, rowsOfBatch));
    bool isF32 = op.getQuery().getType().getElementType().isF32();
    SmallVector<Value> results = this->rows(
        inputs, {empty({deltaRows}), empty({deltaRows})},
        [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          Value zero = emitConstant(at, 0);
          Value isEmpty =
              arith::CmpFOp::create(at, arith::CmpFPredicate::OEQ, args[0],
                                    emitConstant(at, -infinity));
          Value log2 = arith::MulFOp::create(
              at, args[0], emitConstant(at, llvm::numbers::log2e));
          log2 = emitShiftOfGrad(at, log2, isF32);
          Value delta = args[1];
          if (op.getLseGrad())
            delta = arith::SubFOp::create(at, delta, args[2]);
          return {arith::SelectOp::create(at, isEmpty, zero, log2),
                  arith::SelectOp::create(at, isEmpty, zero, delta)};
        });
    for (auto [tile, written] :
         llvm::zip_equal(results, outputs.take_front(results.size())))
      storeRows(b, op.getLoc(), tile, written,
                emitStatistics(position[0], position[1], position[2]),
                copiesInBulk(schedule) ? index(deltaRows) : rows);
    if (schedule.addsInOrder())
      insertZeros(outputs.back(), position);
  };
  // Bulk copies take whole multiples of 16 bytes. Tiles of keys are claimed by
  // the counts of one iteration at least, also where there are no queries.
  AffineExpr whole = b.getAffineDimExpr(0).ceilDiv(deltaRows) * deltaRows;
  if (schedule.addsInOrder())
    sizes.back() = affine::makeComposedFoldedAffineMax(
        b, loc,
        AffineMap::get(1, 0, {whole, b.getAffineConstantExpr(deltaRows)},
                       b.getContext()),
        {sizes.back()});
  else if (copiesInBulk(schedule))
    sizes.back() =
        affine::makeComposedFoldedAffineApply(b, loc, whole, {sizes.back()});
  SmallVector<OpFoldResult> ofMemory =
      getSizesOfPositions(queryAddress, rowsOfStatistics, sizes);
  SmallVector<Value> outputs;
  for (int64_t i = 0; i < 2; ++i)
    outputs.push_back(tensor::EmptyOp::create(b, ofMemory, b.getF32Type()));
  if (schedule.addsInOrder()) {
    SmallVector<OpFoldResult> countSizes = getSizesOfTiles(deltaRows);
    AffineExpr numCounts = b.getAffineDimExpr(0) * getCountsOfIteration();
    countSizes.back() = affine::makeComposedFoldedAffineMax(
        b, loc,
        AffineMap::get(
            1, 0, {numCounts, b.getAffineConstantExpr(getCountsOfIteration())},
            b.getContext()),
        {countSizes.back()});
    outputs.push_back(tensor::EmptyOp::create(b, countSizes, b.getI32Type()));
  }
  SmallVector<Value> results =
      parallelLoop(sizes, {1, 1, deltaRows}, outputs, Schedule(), body,
                   queryAddress ? Value(op.getQuery()) : Value());
  setOrderBesideGradients(results);
  lseLog2 = results[0];
  delta = results[1];
  if (schedule.addsInOrder())
    counts = results[2];
}

SmallVector<Value> GradTiler::emitTile(Value batch, Value head, Value row,
                                       int64_t rows) {
  OpFoldResult first = index(0);
  if (queryAddress) {
    first = emitFirstTile(b, b.getLoc(), queryAddress, batch, rows);
    batch = constant(0);
  }
  AffineExpr number =
      b.getAffineDimExpr(0) + b.getAffineDimExpr(1).floorDiv(rows);
  return {batch, head,
          asValue(affine::makeComposedFoldedAffineApply(b, b.getLoc(), number,
                                                        {first, row}))};
}

SmallVector<OpFoldResult> GradTiler::getSizesOfTiles(int64_t rows) {
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, op.getLse());
  if (queryAddress) {
    sizes[0] = index(1);
    sizes[2] = queryAddress.emitTileCount(b, loc, rows);
  } else {
    sizes[2] = countTiles({rows, queries.end});
  }
  return sizes;
}

void GradTiler::insertZeros(Value counts, ValueRange position) {
  Location loc = b.getLoc();
  SmallVector<Value> tile =
      emitTile(position[0], position[1], position[2], deltaRows);
  for (int64_t number = 0; number < getCountsOfIteration(); ++number) {
    SmallVector<OpFoldResult> offsets = getAsOpFoldResult(tile),
                              ones(3, index(1));
    offsets.back() = affine::makeComposedFoldedAffineApply(
        b, loc, b.getAffineDimExpr(0) * getCountsOfIteration() + number,
        {offsets.back()});
    auto type = RankedTensorType::get({1, 1, 1}, b.getI32Type());
    Value part =
        tensor::ExtractSliceOp::create(b, type, counts, offsets, ones, ones);
    Value zero = arith::ConstantIntOp::create(b, 0, 32);
    part = tensor::InsertOp::create(b, zero, part,
                                    SmallVector<Value>(3, constant(0)));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(KernelOp::of(counts).getStores());
    tensor::ParallelInsertSliceOp::create(b, part, counts, offsets, ones, ones);
  }
}

/// Rows that have a list together: of a tile, or of the blocks of the steps.
static int64_t rowsOfList(int64_t tile, const TiledDim &steps) {
  return steps.block ? steps.block : tile;
}

Value GradTiler::emitQueryGrad() {
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> ends = tensor::getMixedSizes(b, loc, op.getQuery());
  ends.pop_back();
  auto body = [&](ValueRange position, ValueRange outputs) {
    Value batch = position[0], head = position[1];
    SmallVector<OpFoldResult> first = getAsOpFoldResult(position);
    TiledDim queriesOfBatch = ofBatch(queries, op.getQueryLengths(), batch);
    OpFoldResult rows = queriesOfBatch.existing(b, loc, position[2]);
    Value query = extract(op.getQuery(), first, rows, queriesOfBatch);
    Value outputGrad = extract(op.getOutputGrad(), first, rows, queriesOfBatch);
    SmallVector<OpFoldResult> ofStatistics =
        emitStatistics(batch, head, position[2]);
    Value lseLog2Tile = extract(lseLog2, ofStatistics, rows, queriesOfBatch);
    Value deltaTile = extract(delta, ofStatistics, rows, queriesOfBatch);
    TiledDim allKeys = ofBatch(keySteps, op.getKeyLengths(), batch),
             keysOfBatch = ofBatch(allKeys, op.getLengths(), batch);
    if (op.getQueryLengths())
      keysOfBatch.end = endUnlessEmpty(b, loc, rows, keysOfBatch.end);
    OpFoldResult keyHead = groups.getKeyHead(b, loc, head);
    auto step = [&](VisitOp visit, ValueRange state) -> SmallVector<Value> {
      Value at = visit.getAt(), count = countRows(visit, keysOfBatch);
      OpFoldResult existing = orAll(count, keysOfBatch);
      SmallVector<OpFoldResult> firstKey = {batch, keyHead, at};
      Value key = extract(op.getKey(), firstKey, existing, keysOfBatch);
      Value value = extract(op.getValue(), firstKey, existing, keysOfBatch);
      SmallVector<int64_t> open(4, ShapedType::kDynamic), lengths;
      SmallVector<Value> extents;
      dispatchIndexOpFoldResults({queriesOfBatch.end, allKeys.end}, extents,
                                 lengths);
      auto step = QueryGradStepOp::create(
          b, state[0].getType(), query, key, value, outputGrad, lseLog2Tile,
          deltaTile, state[0], count, ValueRange{batch, head, position[2], at},
          extents, open, lengths, APFloat(scale), op.getMaskAttr(),
          op.getPrecisionAttr(), op.getScheduleAttr());
      addScore(step);
      return {step.getResult()};
    };
    Value sum = visitTiles(
        VisitKind::Keys, keysOfBatch, asValue(keysOfBatch.end),
        {op.getKeyTiles(), op.getKeyTileCounts()}, {batch, head, position[2]},
        rowsOfList(queries.tile, querySteps),
        zeros({queries.tile, op.getHeadDim()}), step)[0];
    bool clears = clearsQueryGrad();
    storeRows(b, op.getLoc(),
              finish(sum, scale, clears ? asValue(rows) : Value()), outputs[0],
              first, clears ? queries.existing(b, loc, position[2]) : rows);
  };
  return parallelLoop(ends, {1, 1, queries.tile}, emptyLike(op.getQuery()),
                      ofTiles(queries.tile, schedule.stages), body,
                      getRowsOfKernel(op.getQuery(), op.getQueryGrad(),
                                      op.getQueryLengths()))[0];
}

SmallVector<Value> GradTiler::emitKeyGrads() {
  if (schedule.keyPrograms.value_or(1) == 1)
    return emitKeyProgram(/*ofKeys=*/true, /*ofValues=*/true);
  SmallVector<Value> grads = emitKeyProgram(/*ofKeys=*/true,
                                            /*ofValues=*/false);
  llvm::append_range(grads, emitKeyProgram(/*ofKeys=*/false,
                                           /*ofValues=*/true));
  return grads;
}

SmallVector<Value> GradTiler::emitKeyTile(Value batch, Value keyHead,
                                          Value start, bool ofKeys,
                                          bool ofValues, ValueRange sums,
                                          const AddToOthers &add) {
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> first = {batch, keyHead, start};
  TiledDim keysOfBatch = ofBatch(keys, op.getKeyLengths(), batch),
           stepsOfBatch = ofBatch(querySteps, op.getQueryLengths(), batch);
  OpFoldResult rows = keysOfBatch.existing(b, loc, start);
  Value key = extract(op.getKey(), first, rows, keysOfBatch);
  Value value = extract(op.getValue(), first, rows, keysOfBatch);
  // The keys of the tile that take part, if some may not, and the queries if
  // there is such a key.
  Value used = keysOfBatch.isRagged() ? asValue(rows) : Value();
  Value queryEnd = asValue(stepsOfBatch.end), end = asValue(keysOfBatch.end);
  bool mayLeaveOut = op.getLengths() || op.getKeyLengths();
  if (mayLeaveOut) {
    end = asValue(getLength(b, loc, end, op.getLengths(), batch));
    Value isUsed =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, start, end);
    used = arith::SubIOp::create(b, end, start);
    queryEnd = arith::SelectOp::create(b, isUsed, queryEnd, constant(0));
  }
  // A tile of keys that went through one head after the other would wait at
  // each for the tile that adds before it, however short its list is.
  Value ranks = op.getQueryTileRanks(), numHeads;
  if (ranks && op.getGroup() != 1 &&
      cast<RankedTensorType>(ranks.getType()).getDimSize(1) == 1)
    numHeads = asValue(groups.getSize());
  auto headBody = [&](Value firstHead, ValueRange state) {
    auto step = [&](VisitOp visit, ValueRange state) -> SmallVector<Value> {
      Value head = firstHead;
      if (BlockArgument number = visit.getHeadArg())
        head = arith::AddIOp::create(b, loc, head, number);
      Value at = visit.getAt(), count = countRows(visit, stepsOfBatch);
      SmallVector<OpFoldResult> firstQuery = {batch, head, at};
      OpFoldResult existing = orAll(count, querySteps);
      auto tile = [&](Value tensor) {
        return extract(tensor, firstQuery, existing, stepsOfBatch);
      };
      SmallVector<OpFoldResult> first = emitStatistics(batch, head, at);
      auto statisticsOf = [&](Value statistics) {
        return copiesInBulk(schedule)
                   ? extractFromRowsOf8(statistics, first, existing, querySteps)
                   : extract(statistics, first, existing, stepsOfBatch);
      };
      SmallVector<int64_t> open(4, ShapedType::kDynamic), lengths;
      SmallVector<Value> extents;
      dispatchIndexOpFoldResults({stepsOfBatch.end, keysOfBatch.end}, extents,
                                 lengths);
      // Nobody uses the other, if there is one.
      Value keyGrad =
          ofKeys ? state.front() : zeros({keys.tile, op.getHeadDim()});
      Value valueGrad = ofValues ? state[ofKeys ? 1 : 0]
                                 : zeros({keys.tile, op.getValueDim()});
      ValueRange added = state.take_back(sums.size());
      Value queryGrad;
      if (!sums.empty())
        queryGrad = add.begin(head, at, existing, added);
      auto step = KeyGradStepOp::create(
          b, tile(op.getQuery()), key, value, tile(op.getOutputGrad()),
          statisticsOf(lseLog2OfSteps), statisticsOf(deltaOfSteps), keyGrad,
          valueGrad, queryGrad, count, used, sums.size() > 1,
          ValueRange{batch, head, at, start}, extents, open, lengths,
          APFloat(scale), op.getMaskAttr(), op.getPrecisionAttr(),
          op.getScheduleAttr());
      addScore(step);
      SmallVector<Value> grads;
      if (ofKeys)
        grads.push_back(step.getKeyGradOut());
      if (ofValues)
        grads.push_back(step.getValueGradOut());
      if (queryGrad)
        llvm::append_range(grads,
                           add.end(step, head, visit, existing, added, end));
      return grads;
    };
    return visitTiles(
        VisitKind::Queries, stepsOfBatch, queryEnd,
        {op.getQueryTiles(), op.getQueryTileCounts(), ranks, numHeads},
        {batch, firstHead, start}, rowsOfList(keys.tile, keySteps), state,
        step);
  };
  SmallVector<Value> state;
  if (ofKeys)
    state.push_back(zeros({keys.tile, op.getHeadDim()}));
  if (ofValues)
    state.push_back(zeros({keys.tile, op.getValueDim()}));
  llvm::append_range(state, sums);
  if (op.getGroup() == 1) {
    state = headBody(keyHead, state);
  } else {
    auto [from, to] = groups.getQueryHeads(b, loc, keyHead);
    state = numHeads ? headBody(asValue(from), state)
                     : loop(asValue(from), asValue(to), 1, state, headBody);
  }
  // Rows of keys that exist, but do not take part, are 0.
  Value usedRows = mayLeaveOut ? used : Value();
  if (ofKeys)
    state.front() = finish(state.front(), scale, usedRows);
  if (ofValues)
    state[ofKeys ? 1 : 0] = finish(state[ofKeys ? 1 : 0], 1, usedRows);
  return state;
}

SmallVector<Value> GradTiler::emitKeyProgram(bool ofKeys, bool ofValues) {
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> ends = tensor::getMixedSizes(b, loc, op.getKey());
  ends.pop_back();
  bool inBulk = copiesInBulk(schedule);
  lseLog2OfSteps = inBulk ? splitIntoRowsOf8(lseLog2) : lseLog2;
  deltaOfSteps = inBulk ? splitIntoRowsOf8(delta) : delta;
  SmallVector<Value> outputs, grads;
  if (ofKeys) {
    grads.push_back(op.getKeyGrad());
    outputs.push_back(emptyLike(op.getKey()));
  }
  if (ofValues) {
    grads.push_back(op.getValueGrad());
    outputs.push_back(emptyLike(op.getValue()));
  }
  size_t numGrads = outputs.size();
  bool ofQueries = schedule.addsInOrder(),
       ofDiagonals = schedule.has(ScheduleFeatures::SumDiagonals);
  if (ofQueries)
    llvm::append_range(outputs, ValueRange{emptySums(), counts});
  if (ofDiagonals)
    outputs.push_back(emptyDiagonals());
  auto body = [&](ValueRange position, ValueRange outputs) {
    Value batch = position[0], start = position[2];
    auto begin = [&](Value, Value, OpFoldResult, ValueRange) {
      return zeros(getShapeOfSum());
    };
    OpFoldResult firstHead = groups.getQueryHeads(b, loc, position[1]).first;
    auto contribute = [&](KeyGradStepOp step, Value head, VisitOp visit,
                          OpFoldResult, ValueRange sums,
                          Value end) -> SmallVector<Value> {
      Value first, numTiles, rank = visit.getRankArg();
      if (!rank) {
        first = constant(0);
        numTiles = asValue(affine::makeComposedFoldedAffineApply(
            b, loc, b.getAffineDimExpr(0).ceilDiv(keys.tile),
            {getAsOpFoldResult(end)}));
      }
      SmallVector<Value> results = {ContributeOp::create(
          b, step.getQueryGradOut(), sums[0],
          emitTile(batch, head, visit.getAt(), querySteps.tile), first,
          numTiles, rank)};
      if (ofDiagonals) {
        Value number = asValue(numberOf(visit.getAt(), querySteps));
        Value ofGroup = arith::SubIOp::create(b, head, asValue(firstHead));
        results.push_back(InsertDiagonalsOp::create(
            b, step.getScoreGradOut(), sums[1], ValueRange{ofGroup, number}));
      }
      return results;
    };
    SmallVector<Value> sums;
    SmallVector<OpFoldResult> offsets, sizes;
    if (ofQueries)
      sums.push_back(emptySums());
    if (ofDiagonals) {
      Value all = outputs.back();
      offsets = {batch, firstHead, numberOf(start, keys), index(0), index(0)};
      sizes = tensor::getMixedSizes(b, loc, all);
      sizes[0] = sizes[2] = index(1);
      sizes[1] = groups.getSize();
      sums.push_back(extractDiagonals(all, offsets, sizes));
    }
    SmallVector<Value> results = emitKeyTile(
        batch, position[1], start, ofKeys, ofValues, sums, {begin, contribute});
    for (auto [grad, output] :
         llvm::zip(ArrayRef(results).take_front(numGrads), outputs)) {
      Value result = grads[output == outputs[0] ? 0 : 1];
      TiledDim stored = isStoredByLengths(result, op.getKeyLengths())
                            ? ofBatch(keys, op.getKeyLengths(), batch)
                            : keys;
      storeRows(b, loc, grad, output, getAsOpFoldResult(position),
                stored.existing(b, loc, start));
    }
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(KernelOp::of(outputs[0]).getStores());
    if (ofQueries)
      ParallelAddOp::create(b, results[numGrads], outputs[numGrads],
                            outputs[numGrads + 1]);
    if (ofDiagonals)
      tensor::ParallelInsertSliceOp::create(
          b, results.back(), outputs.back(), offsets, sizes,
          SmallVector<OpFoldResult>(sizes.size(), index(1)));
  };
  std::optional<int64_t> stages =
      schedule.keyProgramStages ? schedule.keyProgramStages : schedule.stages;
  SmallVector<Value> results = parallelLoop(
      ends, {1, 1, keys.tile}, outputs, ofTiles(keys.tile, stages), body,
      getRowsOfKernel(op.getKey(), grads, op.getKeyLengths()));
  if (!ofQueries)
    return results;
  setOrder(results, getOrderOfKeys());
  if (ofDiagonals)
    diagonals = results.pop_back_val();
  counts = results.pop_back_val();
  sums = results.pop_back_val();
  return results;
}

void GradTiler::setOrder(ValueRange results, TileOrder order) {
  results.front().getDefiningOp<KernelOp>().setOrderAttr(
      OrderAttr::get(b.getContext(), order));
}

void GradTiler::setOrderBesideGradients(ValueRange results) {
  if (std::optional<TileOrder> order = getOrderBesideGradients(schedule))
    setOrder(results, *order);
}

TileOrder GradTiler::getOrderOfKeys() {
  if (op.getQueryTiles())
    return TileOrder::Reverse;
  // In memory the tiles of all batches belong to one head, and some depend on
  // each other.
  bool arePacked = bool(op.getKey().getDefiningOp<AddressOpInterface>());
  if (!op.getMask())
    return arePacked ? TileOrder::HeadsFastest : TileOrder::Interleaved;
  // Under a mask each tile of keys begins with the queries that no later one
  // has: if these come first, and all begin together, none waits. Forwards each
  // waits a step longer than the one before, which later ones of a causal mask
  // have time for.
  bool endsWithQueries = flash::endsWithQueries(
      *op.getMask(), querySteps.tile, keys.tile,
      getConstantIntValue(queries.end), getConstantIntValue(keys.end));
  return endsWithQueries && !arePacked ? TileOrder::BothWays
                                       : TileOrder::Reverse;
}

OpFoldResult GradTiler::countTiles(const TiledDim &dim) {
  return affine::makeComposedFoldedAffineApply(
      b, op.getLoc(), b.getAffineDimExpr(0).ceilDiv(dim.tile), {dim.end});
}

Value GradTiler::emptySums() {
  SmallVector<OpFoldResult> sizes = getSizesOfTiles(querySteps.tile);
  for (int64_t size : getShapeOfSum())
    sizes.push_back(index(size));
  return tensor::EmptyOp::create(b, sizes, b.getF32Type());
}

Value GradTiler::emptyDiagonals() {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, op.getLoc(), op.getLse());
  sizes.back() = countTiles(keys);
  sizes.append({countTiles(querySteps), index(keys.tile + querySteps.tile)});
  return tensor::EmptyOp::create(b, sizes, b.getF32Type());
}

Value GradTiler::extractDiagonals(Value all, ArrayRef<OpFoldResult> offsets,
                                  ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults({sizes[1], sizes[3], sizes[4]}, dynamic, shape);
  return tensor::ExtractSliceOp::create(
      b, RankedTensorType::get(shape, b.getF32Type()), all, offsets, sizes,
      SmallVector<OpFoldResult>(sizes.size(), index(1)));
}

Value GradTiler::emitQueryGradOfSums() {
  Location loc = op.getLoc();
  TiledDim rowTiles = {sumRows, queries.end, queries.multiple};
  SmallVector<OpFoldResult> ends = tensor::getMixedSizes(b, loc, op.getQuery());
  ends.pop_back();
  int64_t parts = getPartsOfSum(), columns = op.getHeadDim() / parts;
  bool clears = clearsQueryGrad();
  auto body = [&](ValueRange position, ValueRange outputs) {
    SmallVector<Value> ofSums =
        emitTile(position[0], position[1], position[2], querySteps.tile);
    OpFoldResult existing = ofBatch(rowTiles, op.getQueryLengths(), position[0])
                                .existing(b, loc, position[2]);
    Value count = tensor::ExtractOp::create(b, counts, ofSums);
    Value isSum = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, count,
                                        arith::ConstantIntOp::create(b, 0, 32));
    for (int64_t part = 0; part < parts; ++part) {
      SmallVector<OpFoldResult> offsets = getAsOpFoldResult(ofSums);
      offsets.append(
          {affine::makeComposedFoldedAffineApply(
               b, loc,
               b.getAffineDimExpr(0) % querySteps.tile + part * querySteps.tile,
               {position[2]}),
           index(0)});
      // Nobody has written what no tile of keys has added to.
      Value rows =
          arith::SelectOp::create(b, isSum, constant(sumRows), constant(0));
      SmallVector<OpFoldResult> sizes = {index(1), index(1), index(1), rows,
                                         index(columns)};
      Value sum = tensor::ExtractSliceOp::create(
          b,
          RankedTensorType::get({ShapedType::kDynamic, columns},
                                b.getF32Type()),
          sums, offsets, sizes, SmallVector<OpFoldResult>(5, index(1)));
      sum = padToTile(b, loc, sum, {rows, index(columns)}, {sumRows, columns},
                      b.getF32FloatAttr(0));
      Value grad = finish(sum, scale, clears ? asValue(existing) : Value());
      storeRows(b, loc, grad, outputs[0], getAsOpFoldResult(position),
                clears ? rowTiles.existing(b, loc, position[2]) : existing,
                /*heads=*/1, parts > 1 ? constant(part * columns) : Value());
    }
  };
  SmallVector<Value> results = parallelLoop(
      ends, {1, 1, sumRows}, emptyLike(op.getQuery()), Schedule(), body,
      getRowsOfKernel(op.getQuery(), op.getQueryGrad(), op.getQueryLengths()));
  setOrderBesideGradients(results);
  return results[0];
}

Value GradTiler::emitSinkGrad() {
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, op.getLse());
  TiledDim heads = {sinkHeads, sizes[1]};
  TiledDim columns = {sinkQueries, queries.end, queries.multiple};
  AffineMap tile = map(2, {0, 1}), row = map(2, {0});
  auto body = [&](ValueRange position, ValueRange outputs) {
    Value head = position[0];
    OpFoldResult rows = heads.existing(b, loc, head);
    auto sizeOf = [](OpFoldResult size) {
      return getConstantIntValue(size).value_or(ShapedType::kDynamic);
    };
    Type sinkType = RankedTensorType::get({sizeOf(rows)}, b.getF32Type());
    Value sink = tensor::ExtractSliceOp::create(
        b, cast<RankedTensorType>(sinkType), op.getSink(),
        ArrayRef<OpFoldResult>{head}, ArrayRef<OpFoldResult>{rows},
        ArrayRef<OpFoldResult>{index(1)});
    sink = padToTile(b, loc, sink, rows, {sinkHeads}, b.getF32FloatAttr(0));
    auto addBatch = [&](Value batch, ValueRange state) {
      TiledDim columnsOfBatch = ofBatch(columns, op.getQueryLengths(), batch);
      return visitAll(
          VisitKind::Queries, columnsOfBatch, constant(0),
          asValue(columnsOfBatch.end), state,
          [&](VisitOp visit, ValueRange state) -> SmallVector<Value> {
            Value at = visit.getAt();
            OpFoldResult count = columnsOfBatch.existing(b, loc, at);
            // Columns that do not exist get an infinite denominator.
            SmallVector<OpFoldResult> first = emitStatistics(batch, head, at);
            auto take = [&](Value tensor, double padding) {
              auto type = RankedTensorType::get({sizeOf(rows), sizeOf(count)},
                                                b.getF32Type());
              Value slice = tensor::ExtractSliceOp::create(
                  b, type, tensor, first,
                  ArrayRef<OpFoldResult>{index(1), rows, count},
                  SmallVector<OpFoldResult>(3, index(1)));
              return padToTile(b, loc, slice, {rows, count},
                               {sinkHeads, sinkQueries},
                               b.getF32FloatAttr(padding));
            };
            Value lseLog2Tile = take(lseLog2, infinity),
                  deltaTile = take(delta, 0);
            Value terms = generic(
                {sink, lseLog2Tile, deltaTile}, empty({sinkHeads, sinkQueries}),
                {row, tile, tile, tile},
                [](ImplicitLocOpBuilder &at,
                   ValueRange args) -> SmallVector<Value> {
                  Value weight = emitProbability(
                      at, args[0], emitConstant(at, llvm::numbers::log2e),
                      args[1]);
                  Value term = arith::MulFOp::create(at, weight, args[2]);
                  return {arith::NegFOp::create(at, term)};
                })[0];
            return {generic(terms, state, {tile, row},
                            [](ImplicitLocOpBuilder &at,
                               ValueRange args) -> SmallVector<Value> {
                              return {
                                  arith::AddFOp::create(at, args[1], args[0])};
                            })[0]};
          });
    };
    Value sum = loop(constant(0), asValue(sizes[0]), 1, zeros({sinkHeads}),
                     addBatch)[0];
    storeRows(b, op.getLoc(), sum, outputs[0], getAsOpFoldResult(position),
              rows);
  };
  return parallelLoop(sizes[1], {sinkHeads}, emptyLike(op.getSink()),
                      Schedule(), body)[0];
}

void GradTiler::run() {
  emitRows();
  SmallVector<Value> results;
  if (schedule.addsInOrder()) {
    results = emitKeyGrads();
    results.insert(results.begin(), emitQueryGradOfSums());
  } else if (schedule.isFused()) {
    results = emitHeadProgram();
  } else {
    results.push_back(emitQueryGrad());
    llvm::append_range(results, emitKeyGrads());
  }
  if (op.getSink())
    results.push_back(emitSinkGrad());
  for (Value captured : op.getCaptured())
    results.push_back(
        emitCapturedGrad(op, captured, lseLog2, delta, diagonals));
  // A result type may be more or less static than the operands' types imply.
  for (auto [result, value] : llvm::zip_equal(op->getResults(), results)) {
    if (value.getType() != result.getType())
      value = tensor::CastOp::create(b, result.getType(), value);
    result.replaceAllUsesWith(value);
  }
  op.erase();
}

namespace {
struct TileGrad : flash::impl::TileGradBase<TileGrad> {
  void runOnOperation() override {
    SmallVector<AttentionGradOp> ops;
    getOperation().walk([&](AttentionGradOp op) { ops.push_back(op); });
    for (AttentionGradOp op : ops)
      if (failed(check(op)))
        return signalPassFailure();
    for (AttentionGradOp op : ops)
      GradTiler(op).run();
  }

  LogicalResult check(AttentionGradOp op) {
    Schedule schedule =
        op.getSchedule() ? op.getSchedule()->getValue() : Schedule();
    if (!schedule.queryTile || !schedule.keyTile)
      return op.emitOpError("has no schedule with query_tile and key_tile; run "
                            "flash-select-schedule or write them");
    if (failed(op.requireRank4()))
      return failure();
    if (std::string fault = findBlockFault(op.getBlockSizes(), schedule,
                                           /*isGradient=*/true);
        !fault.empty())
      return op.emitOpError("cannot be tiled: ") << fault;
    if (std::string fault = findFusionFault(op, schedule); !fault.empty())
      return op.emitOpError("cannot be tiled: ") << fault;
    if (op.getBlockSizes() && !op.getCaptured().empty())
      return op.emitOpError("has tensors in wrt, whose gradients are sums over "
                            "ranges of tiles, and lists of blocks that are "
                            "given; leave out wrt, or leave out the lists and "
                            "say in the score region what it keeps");
    return verifyCapturedReads(op);
  }
};
} // namespace
