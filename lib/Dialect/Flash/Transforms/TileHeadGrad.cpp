//===- TileHeadGrad.cpp - All gradients of a head by one iteration --------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GradTiler.h"
#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flash;

/// Parts of the keys of a head whose sums are added up one after the other, by
/// one iteration, or by as many where there are fewer heads than this.
static constexpr int64_t partsOfKeys = 8;

SmallVector<Value> GradTiler::emitHeadProgram() {
  Location loc = op.getLoc();
  OpFoldResult zero = index(0), one = index(1);
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  auto apply = [&](AffineExpr expr, ArrayRef<OpFoldResult> operands) {
    return affine::makeComposedFoldedAffineApply(b, loc, expr, operands);
  };
  auto sizesOf = [&](Value tensor) {
    return tensor::getMixedSizes(b, loc, tensor);
  };
  SmallVector<OpFoldResult> keySizes = sizesOf(op.getKey());
  SmallVector<OpFoldResult> sumSizes = sizesOf(op.getQuery());
  // No slice of 0 rows is in bounds.
  OpFoldResult numQueries = sumSizes[2], headDim = sumSizes[3];
  OpFoldResult rowsOfSums = isZeroInteger(numQueries) ? one : numQueries;
  sumSizes[2] = rowsOfSums;

  lseLog2OfSteps = lseLog2;
  deltaOfSteps = delta;
  // The bits of a row follow from the parts, which depend on lengths alone, not
  // from who adds them up.
  Value tiles = asValue(apply(d0.ceilDiv(keys.tile), {keySizes[2]}));
  Value parts = b.createOrFold<arith::MinUIOp>(
      constant(partsOfKeys),
      b.createOrFold<arith::MaxUIOp>(tiles, constant(1)));
  Value tilesOfPart = b.createOrFold<arith::CeilDivUIOp>(tiles, parts);
  Value heads =
      b.createOrFold<arith::MulIOp>(asValue(keySizes[0]), asValue(keySizes[1]));
  Value areFew = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ult, heads,
                                               constant(partsOfKeys));
  Value iterations =
      b.createOrFold<arith::SelectOp>(areFew, parts, constant(1));
  Value partsOfIteration =
      b.createOrFold<arith::SelectOp>(areFew, constant(1), parts);
  sumSizes.insert(sumSizes.begin(), getAsOpFoldResult(iterations));
  SmallVector<Value> outputs = {
      emptyLike(op.getKey()), emptyLike(op.getValue()),
      tensor::EmptyOp::create(b, sumSizes, b.getF32Type())};

  auto body = [&](ValueRange position, ValueRange outputs) {
    Value batch = position[0], keyHead = position[1], iteration = position[2];
    Value firstPart = arith::MulIOp::create(b, iteration, partsOfIteration);
    Value endPart = arith::AddIOp::create(b, firstPart, partsOfIteration);
    auto tileOf = [&](Value part) {
      Value tile = arith::MulIOp::create(b, part, tilesOfPart);
      return arith::MinUIOp::create(b, tile, tiles).getResult();
    };
    auto startOf = [&](Value part) {
      return asValue(apply(d0 * keys.tile, {tileOf(part)}));
    };
    auto rowOf = [&](Value part) {
      return arith::MinUIOp::create(b, startOf(part), asValue(keys.end))
          .getResult();
    };
    Value firstRow = rowOf(firstPart);
    Value rows = arith::SubIOp::create(b, rowOf(endPart), firstRow);
    std::pair<OpFoldResult, OpFoldResult> queryHeads =
        groups.getQueryHeads(b, loc, keyHead);
    OpFoldResult firstHead = queryHeads.first,
                 group = apply(d0 - d1, {queryHeads.second, firstHead});
    // The iteration's slices of the results, without dimensions of size one.
    struct Share {
      SmallVector<OpFoldResult> offsets, sizes;
    };
    SmallVector<Share> shares;
    for (Value output : outputs.take_front(2))
      shares.push_back({{batch, keyHead, firstRow, zero},
                        {one, one, rows, sizesOf(output)[3]}});
    shares.push_back({{iteration, batch, firstHead, zero, zero},
                      {one, one, group, rowsOfSums, headDim}});
    SmallVector<Value> state;
    for (auto [share, output] : llvm::zip_equal(shares, outputs)) {
      SmallVector<int64_t> shape;
      SmallVector<Value> dynamic;
      dispatchIndexOpFoldResults(ArrayRef(share.sizes).drop_front(2), dynamic,
                                 shape);
      state.push_back(tensor::ExtractSliceOp::create(
          b, RankedTensorType::get(shape, getElementTypeOrSelf(output)), output,
          share.offsets, share.sizes,
          SmallVector<OpFoldResult>(share.sizes.size(), one)));
    }
    auto cleared = [&](Value sums) {
      return linalg::FillOp::create(b, emitConstant(b, 0), sums).getResult(0);
    };
    state.back() = cleared(state.back());

    auto placeOf = [&](Value head, Value at) -> SmallVector<OpFoldResult> {
      Value number = arith::SubIOp::create(b, head, asValue(firstHead));
      return {number, at, zero};
    };
    auto begin = [&](Value head, Value at, OpFoldResult existing,
                     ValueRange sums) {
      return extractSums(sums[0], placeOf(head, at), existing, querySteps);
    };
    auto end = [&](KeyGradStepOp step, Value head, VisitOp visit,
                   OpFoldResult existing, ValueRange sums,
                   Value) -> SmallVector<Value> {
      return {insertTile(step.getQueryGradOut(), sums[0],
                         placeOf(head, visit.getAt()), existing)};
    };
    auto keyTile = [&](VisitOp visit, ValueRange state) {
      Value start = visit.getAt();
      SmallVector<Value> grads =
          emitKeyTile(batch, keyHead, start, /*ofKeys=*/true,
                      /*ofValues=*/true, state.back(), {begin, end});
      OpFoldResult existing = keys.existing(b, loc, start);
      Value row = arith::SubIOp::create(b, start, firstRow);
      for (unsigned i = 0; i < 2; ++i)
        grads[i] = insertTile(grads[i], state[i], {row, zero}, existing);
      return grads;
    };
    auto add = [&](Value ofPart, Value sums) {
      auto [from, to] = queryHeads;
      return loop(
          asValue(from), asValue(to), 1, sums,
          [&](Value head, ValueRange state) {
            return visitAll(
                VisitKind::Queries, queries, constant(0), asValue(numQueries),
                state,
                [&](VisitOp visit, ValueRange state) -> SmallVector<Value> {
                  Value at = visit.getAt();
                  OpFoldResult existing = queries.existing(b, loc, at);
                  SmallVector<OpFoldResult> place = placeOf(head, at);
                  Value sum =
                      addTiles(extractSums(ofPart, place, existing, queries),
                               extractSums(state[0], place, existing, queries));
                  return {insertTile(sum, state[0], place, existing)};
                });
          })[0];
    };
    // The sums of one part after the other have the same memory.
    state.push_back(tensor::EmptyOp::create(
        b, ArrayRef<OpFoldResult>{group, rowsOfSums, headDim}, b.getF32Type()));
    state = loop(
        firstPart, endPart, 1, state,
        [&](Value part, ValueRange state) -> SmallVector<Value> {
          Value next = arith::AddIOp::create(b, part, constant(1));
          SmallVector<Value> ofPart = {state[0], state[1], cleared(state[3])};
          ofPart = visitAll(VisitKind::Keys, keys, startOf(part), startOf(next),
                            ofPart, keyTile);
          Value sums = add(ofPart[2], state[2]);
          return {ofPart[0], ofPart[1], sums, ofPart[2]};
        });
    state.pop_back();
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(KernelOp::of(outputs[0]).getStores());
    for (auto [value, output, share] : llvm::zip_equal(state, outputs, shares))
      tensor::ParallelInsertSliceOp::create(
          b, value, output, share.offsets, share.sizes,
          SmallVector<OpFoldResult>(share.sizes.size(), one));
  };
  SmallVector<Value> results =
      parallelLoop({keySizes[0], keySizes[1], sumSizes[0]}, {1, 1, 1}, outputs,
                   Schedule(), body);

  Value sumsOfUnits = results.pop_back_val();
  auto round = [&](ValueRange position, ValueRange outputs) {
    OpFoldResult rows = queries.existing(b, loc, position[2]);
    Value sum =
        loop(constant(0), iterations, 1, zeros({queries.tile, op.getHeadDim()}),
             [&](Value iteration, ValueRange state) -> SmallVector<Value> {
               SmallVector<OpFoldResult> first = {
                   iteration, position[0], position[1], position[2], zero};
               return {addTiles(extractSums(sumsOfUnits, first, rows, queries),
                                state[0])};
             })[0];
    storeRows(b, loc, finish(sum, scale, Value()), outputs[0],
              getAsOpFoldResult(position), rows);
  };
  results.insert(results.begin(),
                 parallelLoop({sumSizes[1], sumSizes[2], numQueries},
                              {1, 1, queries.tile}, emptyLike(op.getQuery()),
                              Schedule(), round)[0]);
  return results;
}

Value GradTiler::addTiles(Value tile, Value sum) {
  AffineMap all = map(2, {0, 1});
  return generic(
      tile, sum, {all, all},
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {arith::AddFOp::create(at, args[1], args[0])};
      })[0];
}

Value GradTiler::extractSums(Value sums, ArrayRef<OpFoldResult> first,
                             OpFoldResult rows, const TiledDim &dim) {
  SmallVector<OpFoldResult> sizes(first.size(), index(1));
  sizes.back() = index(op.getHeadDim());
  sizes[sizes.size() - 2] = rows;
  SmallVector<int64_t> shape = {
      getConstantIntValue(rows).value_or(ShapedType::kDynamic),
      op.getHeadDim()};
  Value slice = tensor::ExtractSliceOp::create(
      b, RankedTensorType::get(shape, b.getF32Type()), sums, first, sizes,
      SmallVector<OpFoldResult>(first.size(), index(1)));
  return padToTile(b, op.getLoc(), slice, ArrayRef(sizes).take_back(2),
                   {dim.tile, op.getHeadDim()}, b.getF32FloatAttr(0));
}

Value GradTiler::insertTile(Value tile, Value whole,
                            ArrayRef<OpFoldResult> first, OpFoldResult rows) {
  auto type = cast<RankedTensorType>(tile.getType());
  SmallVector<OpFoldResult> sizes = {rows, index(type.getDimSize(1))},
                            ones(2, index(1));
  if (getConstantIntValue(rows) != type.getDimSize(0))
    tile = tensor::ExtractSliceOp::create(
        b, tile, SmallVector<OpFoldResult>(2, index(0)), sizes, ones);
  sizes.insert(sizes.begin(), first.size() - 2, index(1));
  ones.assign(first.size(), index(1));
  return tensor::InsertSliceOp::create(b, tile, whole, first, sizes, ones);
}
