//===- GradProgram.cpp - Programs of the gradients ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GradProgram.h"

#include "BlockList.h"
#include "TileSlices.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace flash;

/// Statistics that are copied in a row: 32 bytes.
static constexpr int64_t eight = 8;

GradProgram::GradProgram(AttentionGradOp op)
    : TileBuilder(op), op(op), schedule(op.getSchedule()->getValue()),
      groups(b, op.getLoc(), op.getQuery(), op.getKey()) {
  if (op.getLengths() && hasRoles())
    padding = Padding::Anything;
}

Value GradProgram::asValue(OpFoldResult value) {
  return getValueOrCreateConstantIndexOp(b, b.getLoc(), value);
}

Value GradProgram::takeInEights(Value statistics) {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, b.getLoc(), statistics);
  OpFoldResult eights = affine::makeComposedFoldedAffineApply(
      b, b.getLoc(), b.getAffineDimExpr(0).floorDiv(eight), {sizes.back()});
  SmallVector<OpFoldResult> expanded = {sizes[0], sizes[1], eights,
                                        index(eight)};
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(expanded, dynamic, shape);
  return tensor::ExpandShapeOp::create(
      b, RankedTensorType::get(shape, b.getF32Type()), statistics,
      ArrayRef<ReassociationIndices>{{0}, {1}, {2, 3}}, expanded);
}

Value GradProgram::extractFromEights(Value eights, Value batch, Value head,
                                     Value start, int64_t rowsOfStep) {
  Location loc = b.getLoc();
  TiledDim rows = {rowsOfStep / eight, tensor::getMixedSize(b, loc, eights, 2)};
  OpFoldResult first = affine::makeComposedFoldedAffineApply(
      b, loc, b.getAffineDimExpr(0).floorDiv(eight), {start});
  Value at = asValue(first);
  Value tile =
      extract(eights, {batch, head, at}, rows.existing(b, loc, at), rows);
  return tensor::CollapseShapeOp::create(
      b, tile, ArrayRef<ReassociationIndices>{{0, 1}});
}

SmallVector<Value> GradProgram::parallelLoop(ArrayRef<OpFoldResult> ends,
                                             ArrayRef<int64_t> steps,
                                             ArrayRef<Value> outputs,
                                             const Schedule &schedule,
                                             Body body) {
  auto forall =
      scf::ForallOp::create(b, SmallVector<OpFoldResult>(ends.size(), index(0)),
                            ends, getAsIndexOpFoldResult(b.getContext(), steps),
                            outputs, getBlockMapping(b, ends.size()));
  setSchedule(forall, schedule);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(forall.getTerminator());
  body(forall.getInductionVars(), forall.getRegionIterArgs());
  return SmallVector<Value>(forall.getResults());
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

SmallVector<Value> GradProgram::loopOverRuns(const TiledDim &dim,
                                             const BlockList &list, Value turns,
                                             ValueRange state, Step step) {
  Location loc = b.getLoc();
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  Value numTiles = asValue(tensor::getMixedSize(b, loc, turns, 3));
  // Where one warp adds, it reads a turn a step before it waits for it. Of two
  // that alternate each has time, and what it has not read yet would hold up
  // the end of a turn.
  bool readsAhead = schedule.has(ScheduleFeatures::DeferProducts);
  auto readTurnBehind = [&](Value number) {
    Value next = asValue(affine::makeComposedFoldedAffineMin(
        b, loc, AffineMap::get(2, 0, {d0 + 1, d1 - 1}, b.getContext()),
        {number, numTiles}));
    return list.read(b, loc, turns, next);
  };
  auto over = [&](Value from, Value to, bool areWhole, ValueRange carried) {
    return loop(
        from, to, /*step=*/1, carried, [&](Value number, ValueRange carried) {
          Value start = asValue(affine::makeComposedFoldedAffineApply(
              b, loc, d0 * dim.tile, {number}));
          if (!readsAhead)
            return step({start, areWhole, list.read(b, loc, turns, number)},
                        carried);
          SmallVector<Value> results = {readTurnBehind(number)};
          llvm::append_range(results, step({start, areWhole, carried.front()},
                                           carried.drop_front()));
          return results;
        });
  };
  auto readOfRun = [&](Value run, int64_t plane) {
    Value first = arith::MulIOp::create(b, numTiles, constant(plane));
    return list.readTile(b, loc, arith::AddIOp::create(b, first, run));
  };
  auto ofRun = [&](Value run, ValueRange state) -> SmallVector<Value> {
    Value first = readOfRun(run, 0), endOfParts = readOfRun(run, 1);
    SmallVector<Value> carried(state);
    if (readsAhead)
      carried.insert(carried.begin(), list.read(b, loc, turns, first));
    carried = over(first, endOfParts, /*areWhole=*/false, carried);
    carried = over(endOfParts, readOfRun(run, 2), /*areWhole=*/true, carried);
    return SmallVector<Value>(ArrayRef(carried).take_back(state.size()));
  };
  return loop(constant(0), list.getNumRuns(), /*step=*/1, state, ofRun);
}

SmallVector<Value> GradProgram::loopOverTiles(const TiledDim &dim, Value end,
                                              const Lists &lists,
                                              ArrayRef<Value> position,
                                              int64_t rows, ValueRange state,
                                              Step step) {
  if (!lists.tiles)
    return loop(constant(0), end, dim.tile, state,
                [&](Value at, ValueRange state) {
                  return step({at, /*isWhole=*/false, /*turn=*/{}}, state);
                });
  Location loc = b.getLoc();
  Value number = asValue(affine::makeComposedFoldedAffineApply(
      b, loc, b.getAffineDimExpr(0).floorDiv(rows), {position[2]}));
  BlockList list(b, loc, lists.tiles, lists.counts, position[0], position[1],
                 number);
  if (lists.turns)
    return loopOverRuns(dim, list, lists.turns, state, step);
  auto over = [&](Value from, Value to, bool areWhole, ValueRange state) {
    return loop(from, to, /*step=*/1, state,
                [&](Value place, ValueRange state) {
                  return step({list.getStart(b, loc, place, dim.tile), areWhole,
                               /*turn=*/{}},
                              state);
                });
  };
  SmallVector<Value> parts =
      over(constant(0), list.getEndOfParts(), /*areWhole=*/false, state);
  return over(list.getEndOfParts(), list.getEnd(), /*areWhole=*/true, parts);
}
