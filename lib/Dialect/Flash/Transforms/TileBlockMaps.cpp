//===- TileBlockMaps.cpp - What a mask leaves, counted and listed ---------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"
#include "TileSlices.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace flash {
#define GEN_PASS_DEF_TILEBLOCKMAPS
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
class MapTiler : TileBuilder {
public:
  explicit MapTiler(BlockMapOp op)
      : TileBuilder(op), op(op), sizes(op.getMixedSizes()),
        packedHeads(op.getPackedHeads()),
        queries({op.getQueryTile(), sizes[2]}),
        numKeyTiles(countTiles(sizes[3], op.getKeyTile())),
        numQueryTiles(countTiles(sizes[2], op.getQueryTile())),
        numMaps(apply(b.getAffineDimExpr(0).floorDiv(packedHeads), sizes[1])) {}

  void run();

private:
  // Key tiles of a unit of the first loop: rows of a tile, of which warps have
  // one or several each.
  static constexpr int64_t tilesOfUnit = 8;

  OpFoldResult index(int64_t value) { return b.getIndexAttr(value); }
  Value value(OpFoldResult entry) {
    return getValueOrCreateConstantIndexOp(b, b.getLoc(), entry);
  }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  OpFoldResult apply(AffineExpr expr, OpFoldResult operand) {
    return affine::makeComposedFoldedAffineApply(b, b.getLoc(), expr,
                                                 {operand});
  }
  OpFoldResult countTiles(OpFoldResult size, int64_t tile) {
    return apply(b.getAffineDimExpr(0).ceilDiv(tile), size);
  }
  Value tileOf(Value query) {
    return value(
        apply(b.getAffineDimExpr(0).floorDiv(op.getQueryTile()), query));
  }
  Value tensorOf(ArrayRef<OpFoldResult> shape, Type element) {
    return tensor::EmptyOp::create(b, shape, element);
  }
  scf::ForallOp parallelLoop(ArrayRef<OpFoldResult> ends,
                             ArrayRef<int64_t> steps, ValueRange outputs);

  /// 1 for each element that is kept of one query and the key tiles from
  /// `firstTile` on, else 0.
  Value keptOfQuery(Value batch, Value head, Value query, Value firstTile);
  /// How many elements are kept of each pair of tiles: f32, which is exact for
  /// the largest tiles.
  Value countKept();
  /// Emits the lists and their lengths.
  SmallVector<Value> list(Value kept);

  BlockMapOp op;
  SmallVector<OpFoldResult> sizes;
  int64_t packedHeads;
  TiledDim queries;
  OpFoldResult numKeyTiles, numQueryTiles;
  /// Of each batch.
  OpFoldResult numMaps;
};
} // namespace

scf::ForallOp MapTiler::parallelLoop(ArrayRef<OpFoldResult> ends,
                                     ArrayRef<int64_t> steps,
                                     ValueRange outputs) {
  SmallVector<OpFoldResult> starts(ends.size(), index(0)),
      distances = llvm::map_to_vector(
          steps, [&](int64_t step) { return OpFoldResult(index(step)); });
  return scf::ForallOp::create(b, starts, ends, distances, outputs,
                               /*mapping=*/std::nullopt);
}

Value MapTiler::keptOfQuery(Value batch, Value head, Value query,
                            Value firstTile) {
  int64_t keyTile = op.getKeyTile();
  Value numQueries = value(sizes[2]), numKeys = value(sizes[3]);
  Value length;
  if (op.getLengths())
    length = tensor::ExtractOp::create(b, op.getLengths(), batch);
  return generic(
      {}, empty({tilesOfUnit, keyTile}), map(2, {0, 1}),
      [&](ImplicitLocOpBuilder &at, ValueRange) -> SmallVector<Value> {
        Location loc = at.getLoc();
        Value tile = arith::AddIOp::create(at, firstTile,
                                           linalg::IndexOp::create(at, 0));
        Value start = arith::MulIOp::create(
            at, tile, arith::ConstantIndexOp::create(at, keyTile));
        Value key =
            arith::AddIOp::create(at, start, linalg::IndexOp::create(at, 1));
        ScorePosition position = {batch, head, query, key, numQueries, numKeys};
        MaskAttrInterface mask = op.getMask().value_or(
            cast<MaskAttrInterface>(FullAttr::get(op.getContext())));
        Value kept = emitMaskPredicate(at, loc, mask, position);
        kept = emitLengthPredicate(at, loc, kept, length, key);
        Value exists =
            arith::CmpIOp::create(at, arith::CmpIPredicate::slt, key, numKeys);
        kept =
            kept ? arith::AndIOp::create(at, kept, exists).getResult() : exists;
        // Behind the last key a captured tensor must not be read.
        Value last = arith::SubIOp::create(
            at, numKeys, arith::ConstantIndexOp::create(at, 1));
        position.key = arith::MinSIOp::create(at, key, last);
        if (Value keep = emitKeep(at, op.getKeep(), position, kept))
          kept = arith::AndIOp::create(at, kept, keep);
        return {arith::SelectOp::create(at, kept, emitConstant(at, 1.0),
                                        emitConstant(at, 0.0))};
      })[0];
}

Value MapTiler::countKept() {
  SmallVector<OpFoldResult> shape = {sizes[0], numMaps, numQueryTiles,
                                     numKeyTiles};
  scf::ForallOp forall = parallelLoop(
      {sizes[0], numMaps, sizes[2], numKeyTiles},
      {1, 1, op.getQueryTile(), tilesOfUnit}, tensorOf(shape, b.getF32Type()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(forall.getTerminator());
  SmallVector<Value> at = forall.getInductionVars();
  Value start = at[2], firstTile = at[3];
  // As in a tile of packed heads, those of the first query come first.
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  auto applyTo = [&](AffineExpr expr, ArrayRef<OpFoldResult> operands) {
    return value(
        affine::makeComposedFoldedAffineApply(b, b.getLoc(), expr, operands));
  };
  Value rows =
      applyTo(d0 * packedHeads, {queries.existing(b, b.getLoc(), start)});
  auto loop = scf::ForOp::create(b, constant(0), rows, constant(1),
                                 filled({tilesOfUnit}, 0.0));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value row = loop.getInductionVar();
    Value head = applyTo(d0 * packedHeads + d1 % packedHeads, {at[1], row});
    Value query = applyTo(d0 + d1.floorDiv(packedHeads), {start, row});
    Value kept = keptOfQuery(at[0], head, query, firstTile);
    Value sum = generic(
        kept, loop.getRegionIterArg(0), {map(2, {0, 1}), map(2, {0})},
        [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {arith::AddFOp::create(at, args[1], args[0])};
        })[0];
    scf::YieldOp::create(b, sum);
  }
  TiledDim tiles = {tilesOfUnit, numKeyTiles};
  OpFoldResult existing = tiles.existing(b, b.getLoc(), firstTile);
  Value counts = loop.getResult(0);
  if (tiles.isRagged())
    counts = tensor::ExtractSliceOp::create(
        b, counts, ArrayRef<OpFoldResult>{index(0)}, existing, index(1));
  SmallVector<OpFoldResult> offsets = {at[0], at[1], tileOf(start), firstTile},
                            extents = {index(1), index(1), index(1), existing};
  b.setInsertionPointToEnd(forall.getTerminator().getBody());
  tensor::ParallelInsertSliceOp::create(
      b, counts, forall.getRegionIterArgs()[0], offsets, extents,
      SmallVector<OpFoldResult>(4, index(1)));
  return forall.getResult(0);
}

SmallVector<Value> MapTiler::list(Value kept) {
  Type i32 = b.getI32Type();
  SmallVector<OpFoldResult> shape = {sizes[0], numMaps, numQueryTiles,
                                     numKeyTiles},
                            countShape(shape);
  countShape[3] = index(2);
  scf::ForallOp forall =
      parallelLoop({sizes[0], numMaps, sizes[2]}, {1, 1, op.getQueryTile()},
                   {tensorOf(shape, i32), tensorOf(countShape, i32)});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(forall.getTerminator());
  SmallVector<Value> at = forall.getInductionVars();
  Value row = tileOf(at[2]);
  auto emitPlace = [&](OpFoldResult size) {
    return std::pair(
        SmallVector<OpFoldResult>{at[0], at[1], row, index(0)},
        SmallVector<OpFoldResult>{index(1), index(1), index(1), size});
  };
  auto rowOf = [&](Value output, OpFoldResult size) -> Value {
    auto [offsets, extents] = emitPlace(size);
    auto type = RankedTensorType::get(
        getConstantIntValue(size).value_or(ShapedType::kDynamic), i32);
    return tensor::ExtractSliceOp::create(
        b, type, output, offsets, extents,
        SmallVector<OpFoldResult>(4, index(1)));
  };
  auto asInt = [&](Value number) -> Value {
    return arith::IndexCastOp::create(b, i32, number);
  };

  Value all =
      arith::MulIOp::create(b, value(queries.existing(b, b.getLoc(), at[2])),
                            constant(packedHeads * op.getKeyTile()));
  all = arith::SIToFPOp::create(b, b.getF32Type(), asInt(all));
  Value none = emitConstant(b, 0.0);
  auto keptOf = [&](Value tile) -> Value {
    return tensor::ExtractOp::create(b, kept,
                                     ValueRange{at[0], at[1], row, tile});
  };
  auto compare = [&](arith::CmpFPredicate predicate, Value lhs,
                     Value rhs) -> Value {
    return arith::CmpFOp::create(b, predicate, lhs, rhs);
  };
  auto isPart = [&](Value count) -> Value {
    return arith::AndIOp::create(
        b, compare(arith::CmpFPredicate::OGT, count, none),
        compare(arith::CmpFPredicate::OLT, count, all));
  };
  // The next number where the condition holds.
  auto countIf = [&](Value condition, Value number) -> Value {
    Value next = arith::AddIOp::create(b, number, constant(1));
    return arith::SelectOp::create(b, condition, next, number);
  };

  Value zero = constant(0), one = constant(1), end = value(numKeyTiles);
  auto counting = scf::ForOp::create(b, zero, end, one, zero);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(counting.getBody());
    Value part = isPart(keptOf(counting.getInductionVar()));
    scf::YieldOp::create(b, countIf(part, counting.getRegionIterArg(0)));
  }
  Value numParts = counting.getResult(0);
  Value list = rowOf(forall.getRegionIterArgs()[0], numKeyTiles);
  auto listing =
      scf::ForOp::create(b, zero, end, one, ValueRange{zero, numParts, list});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(listing.getBody());
    Value tile = listing.getInductionVar(),
          ofParts = listing.getRegionIterArg(0),
          ofWhole = listing.getRegionIterArg(1);
    Value count = keptOf(tile);
    Value part = isPart(count);
    Value whole = compare(arith::CmpFPredicate::OEQ, count, all);
    // A tile of which nothing is left is written where the next whole one goes.
    // There is such a place: not all tiles are in the list.
    Value place = arith::SelectOp::create(b, part, ofParts, ofWhole);
    Value next = tensor::InsertOp::create(b, asInt(tile),
                                          listing.getRegionIterArg(2), place);
    scf::YieldOp::create(
        b, ValueRange{countIf(part, ofParts), countIf(whole, ofWhole), next});
  }
  Value counts = rowOf(forall.getRegionIterArgs()[1], index(2));
  counts = tensor::InsertOp::create(b, asInt(numParts), counts, zero);
  counts =
      tensor::InsertOp::create(b, asInt(listing.getResult(1)), counts, one);
  b.setInsertionPointToEnd(forall.getTerminator().getBody());
  for (auto [tensor, output, size] :
       {std::tuple(listing.getResult(2), 0, numKeyTiles),
        {counts, 1, index(2)}}) {
    auto [offsets, extents] = emitPlace(size);
    tensor::ParallelInsertSliceOp::create(
        b, tensor, forall.getRegionIterArgs()[output], offsets, extents,
        SmallVector<OpFoldResult>(4, index(1)));
  }
  return SmallVector<Value>(forall.getResults());
}

void MapTiler::run() {
  op->replaceAllUsesWith(list(countKept()));
  op.erase();
}

namespace {
struct TileBlockMaps : flash::impl::TileBlockMapsBase<TileBlockMaps> {
  void runOnOperation() override {
    SmallVector<BlockMapOp> maps;
    getOperation().walk([&](BlockMapOp map) { maps.push_back(map); });
    for (BlockMapOp map : maps)
      if (map.use_empty()) {
        map.erase();
      } else if (map.getGivenTiles()) {
        map->replaceAllUsesWith(
            ValueRange{map.getGivenTiles(), map.getGivenCounts()});
        map.erase();
      } else {
        MapTiler(map).run();
      }
  }
};
} // namespace
