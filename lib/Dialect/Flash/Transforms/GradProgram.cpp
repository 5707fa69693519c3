//===- GradProgram.cpp - Programs of the gradients ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GradProgram.h"

#include "flash/Analysis/ScoreRegion.h"
#include "flash/Dialect/Flash/Utils/TileSlices.h"
#include "flash/Schedule/GradKernels.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace flash;

/// Statistics that are copied in a row: 32 bytes.
static constexpr int64_t eight = 8;

GradProgram::GradProgram(AttentionGradOp op)
    : TileBuilder(op), op(op),
      queryAddress(op.getQuery().getDefiningOp<AddressOpInterface>()),
      schedule(op.getSchedule()->getValue()),
      groups(b, op.getLoc(), op.getQuery(), op.getKey()) {}

Value GradProgram::asValue(OpFoldResult value) {
  return getValueOrCreateConstantIndexOp(b, b.getLoc(), value);
}

TiledDim GradProgram::ofBatch(TiledDim dim, Value lengths, Value batch) {
  if (!lengths)
    return dim;
  dim.end = getLength(b, b.getLoc(), dim.end, lengths, batch);
  dim.multiple = 1;
  dim.mayEndBefore = true;
  return dim;
}

Value GradProgram::emitFirstTile(OpBuilder &b, Location loc,
                                 AddressOpInterface view, Value batch,
                                 int64_t tile) {
  OpBuilder::InsertionGuard guard(b);
  Block *known = batch.getParentBlock();
  if (Block *block = b.getInsertionBlock(); block != known)
    b.setInsertionPoint(known->findAncestorOpInBlock(*block->getParentOp()));
  return view.emitFirstTile(b, loc, batch, tile);
}

SmallVector<OpFoldResult> GradProgram::emitPosition(OpBuilder &b, Location loc,
                                                    AddressOpInterface view,
                                                    int64_t tile, Value batch,
                                                    Value head, Value row) {
  if (!view)
    return {batch, head, row};
  Value first = emitFirstTile(b, loc, view, batch, tile);
  return {b.getIndexAttr(0), head,
          affine::makeComposedFoldedAffineApply(
              b, loc, b.getAffineDimExpr(0) * tile + b.getAffineDimExpr(1),
              {first, row})};
}

SmallVector<OpFoldResult>
GradProgram::getSizesOfPositions(AddressOpInterface view, int64_t tile,
                                 ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> result(sizes);
  if (!view)
    return result;
  result.front() = index(1);
  result.back() = affine::makeComposedFoldedAffineApply(
      b, b.getLoc(), b.getAffineDimExpr(0) * tile,
      {view.emitTileCount(b, b.getLoc(), tile)});
  return result;
}

Value GradProgram::splitIntoRowsOf8(Value statistics) {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, b.getLoc(), statistics);
  OpFoldResult rowsOf8 = affine::makeComposedFoldedAffineApply(
      b, b.getLoc(), b.getAffineDimExpr(0).floorDiv(eight), {sizes.back()});
  SmallVector<OpFoldResult> expanded = {sizes[0], sizes[1], rowsOf8,
                                        index(eight)};
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(expanded, dynamic, shape);
  return tensor::ExpandShapeOp::create(
      b, RankedTensorType::get(shape, b.getF32Type()), statistics,
      ArrayRef<ReassociationIndices>{{0}, {1}, {2, 3}}, expanded);
}

Value GradProgram::extractFromRowsOf8(Value rowsOf8,
                                      ArrayRef<OpFoldResult> first,
                                      OpFoldResult existing,
                                      const TiledDim &steps) {
  Location loc = b.getLoc();
  TiledDim rows = {steps.tile / eight,
                   tensor::getMixedSize(b, loc, rowsOf8, 2)};
  // What a list has behind the end starts at it, wherever that is.
  if (steps.block && steps.isRagged())
    rows.block = std::numeric_limits<int64_t>::max();
  Value at = asValue(affine::makeComposedFoldedAffineApply(
      b, loc, b.getAffineDimExpr(0).floorDiv(eight), {first[2]}));
  OpFoldResult count;
  if (queryAddress) {
    // Nobody writes what lies between the batches.
    rows.mayEndBefore = true;
    count = affine::makeComposedFoldedAffineApply(
        b, loc, b.getAffineDimExpr(0).ceilDiv(eight), {existing});
  } else {
    count = rows.existing(b, loc, at);
  }
  Value tile = extract(rowsOf8, {first[0], first[1], at}, count, rows);
  return tensor::CollapseShapeOp::create(
      b, tile, ArrayRef<ReassociationIndices>{{0, 1}});
}

SmallVector<Value> GradProgram::parallelLoop(ArrayRef<OpFoldResult> ends,
                                             ArrayRef<int64_t> steps,
                                             ArrayRef<Value> outputs,
                                             const Schedule &schedule,
                                             Body body, Value rows) {
  auto kernel = KernelOp::create(b, ends, steps, outputs, schedule, rows);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(kernel.getStore());
  body(ValueRange(kernel.getPosition()), ValueRange(kernel.getDestinations()));
  return SmallVector<Value>(kernel.getResults());
}

SmallVector<Value> GradProgram::loop(
    Value from, Value to, int64_t step, ValueRange state,
    function_ref<SmallVector<Value>(Value at, ValueRange state)> body) {
  auto loop = scf::ForOp::create(b, from, to, constant(step), state);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(b,
                       body(loop.getInductionVar(), loop.getRegionIterArgs()));
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value> GradProgram::visitAll(VisitKind kind, const TiledDim &dim,
                                         Value from, Value to, ValueRange state,
                                         Step step) {
  VisitedTiles visited = {kind, dim.tile, from, to, constant(dim.tile)};
  visited.exist = {dim.end};
  visited.multiples = getMultiplesOfBatches(op);
  return emitVisit(b, b.getLoc(), visited, state, step);
}

SmallVector<Value> GradProgram::visitTiles(VisitKind kind, const TiledDim &dim,
                                           Value end, const Lists &lists,
                                           ArrayRef<Value> position,
                                           int64_t rows, ValueRange state,
                                           Step step) {
  Location loc = b.getLoc();
  VisitedTiles visited = {kind, dim.tile};
  visited.multiples = getMultiplesOfBatches(op);
  if (lists.tiles) {
    visited.list = lists.tiles;
    visited.counts = lists.counts;
    visited.ranks = lists.ranks;
    visited.heads = lists.heads;
    visited.cut = dim.block;
    visited.row = {
        position[0], position[1],
        asValue(affine::makeComposedFoldedAffineApply(
            b, loc, b.getAffineDimExpr(0).floorDiv(rows), {position[2]}))};
    // Where one warp adds, it reads a rank a step before it waits for it. Of
    // two that alternate each has time, and what it has not read yet would hold
    // up the end of a step.
    visited.readAhead =
        lists.ranks && schedule.has(ScheduleFeatures::DeferProducts);
  } else {
    visited.from = constant(0);
    visited.to = end;
    visited.by = constant(dim.tile);
  }
  // A query of zeros has the probability 1, and adds it times an output's
  // gradient of zeros. A score region may give anything at its position, and
  // threads that copy themselves would have to count rows in each loop.
  Region &score = op.getScore();
  visited.neutralZeros = kind == VisitKind::Queries && copiesInBulk(schedule) &&
                         !changesScore(score) && !hasGuards(score);
  visited.exist = {dim.end};
  return emitVisit(b, loc, visited, state, step);
}
