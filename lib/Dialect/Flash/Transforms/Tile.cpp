//===- Tile.cpp - Tile the online step over queries and keys --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileSlices.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace flash {
#define GEN_PASS_DEF_TILE
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
/// Rewrites one online step and its finalize.
class Tiler {
public:
  Tiler(OnlineAttentionOp online, FinalizeOp finalize)
      : online(online), finalize(finalize), b(finalize), loc(online.getLoc()) {}

  void run();

private:
  OpFoldResult index(int64_t value) { return b.getIndexAttr(value); }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }

  /// The tile of a state's initial value.
  Value initialTile(Value init, Value batch, Value head, Value start,
                    OpFoldResult rows, int64_t tile);
  /// One past the last key that exists for `batch`.
  OpFoldResult keyEnd(Value batch);
  /// The loop over key tiles; returns the final state.
  SmallVector<Value> keyLoop(Value query, Value batch, Value head, Value start,
                             ArrayRef<Value> state);
  /// Computes one query tile and writes it into `outputs`.
  void queryTileBody(Value batch, Value head, Value start, ValueRange outputs);

  OnlineAttentionOp online;
  FinalizeOp finalize;
  OpBuilder b;
  Location loc;
  TiledDim queries = {0, {}};
  int64_t keyTile = 0;
  HeadGroups groups;
};
} // namespace

Value Tiler::initialTile(Value init, Value batch, Value head, Value start,
                         OpFoldResult rows, int64_t tile) {
  auto fill = init.getDefiningOp<linalg::FillOp>();
  if (!fill)
    return extractRows(b, loc, init, {batch, head, start}, rows, tile);
  auto type = cast<RankedTensorType>(init.getType());
  SmallVector<int64_t> shape = {tile};
  if (type.getRank() == 4)
    shape.push_back(type.getShape().back());
  Value empty = tensor::EmptyOp::create(b, loc, shape, type.getElementType());
  return linalg::FillOp::create(b, loc, fill.value(), empty).getResult(0);
}

OpFoldResult Tiler::keyEnd(Value batch) {
  OpFoldResult length = tensor::getMixedSize(b, loc, online.getKey(), 2);
  if (!online.getLengths())
    return length;
  Value written = tensor::ExtractOp::create(b, loc, online.getLengths(), batch);
  Value asIndex = arith::IndexCastOp::create(b, loc, b.getIndexType(), written);
  Value notNegative =
      arith::MaxSIOp::create(b, loc, asIndex, constant(0)).getResult();
  return arith::MinSIOp::create(b, loc, notNegative,
                                getValueOrCreateConstantIndexOp(b, loc, length))
      .getResult();
}

SmallVector<Value> Tiler::keyLoop(Value query, Value batch, Value head,
                                  Value start, ArrayRef<Value> state) {
  TiledDim keys = {keyTile, keyEnd(batch)};
  OpFoldResult headOfKeys = groups.getKeyHead(b, loc, head);
  Value end = getValueOrCreateConstantIndexOp(b, loc, keys.end);
  auto loop =
      scf::ForOp::create(b, loc, constant(0), end, constant(keyTile), state);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value at = loop.getInductionVar();
  ValueRange carried = loop.getRegionIterArgs();
  OpFoldResult existing = keys.existing(b, loc, at);
  SmallVector<OpFoldResult> first = {batch, headOfKeys, at};
  Value key = extractRows(b, loc, online.getKey(), first, existing, keyTile);
  Value value =
      extractRows(b, loc, online.getValue(), first, existing, keyTile);
  SmallVector<int64_t> staticPosition(4, ShapedType::kDynamic);
  auto step = OnlineAttentionOp::create(
      b, loc, carried.getTypes(), query, key, value, carried[0], carried[1],
      carried[2], ValueRange{batch, head, start, at}, online.getExtents(),
      keys.isRagged() ? cast<Value>(existing) : Value(),
      /*lengths=*/Value(), staticPosition, online.getStaticExtents(),
      online.getScale(), online.getMaskAttr(), online.getScheduleAttr());
  IRMapping mapping;
  online.getScore().cloneInto(&step.getScore(), mapping);
  scf::YieldOp::create(b, loc, step.getResults());
  return SmallVector<Value>(loop.getResults());
}

void Tiler::queryTileBody(Value batch, Value head, Value start,
                          ValueRange outputs) {
  int64_t tile = queries.tile;
  OpFoldResult rows = queries.existing(b, loc, start);
  Value query =
      extractRows(b, loc, online.getQuery(), {batch, head, start}, rows, tile);
  SmallVector<Value> state;
  for (Value init : {online.getAcc(), online.getMax(), online.getSum()})
    state.push_back(initialTile(init, batch, head, start, rows, tile));
  state = keyLoop(query, batch, head, start, state);

  SmallVector<Value> inits;
  SmallVector<Type> types;
  int64_t valueDim = online.getValue().getType().getShape().back();
  for (Value output : outputs) {
    auto type = cast<RankedTensorType>(output.getType());
    SmallVector<int64_t> shape = {tile};
    if (type.getRank() == 4)
      shape.push_back(valueDim);
    inits.push_back(
        tensor::EmptyOp::create(b, loc, shape, type.getElementType()));
    types.push_back(inits.back().getType());
  }
  auto done =
      FinalizeOp::create(b, loc, types, state[0], state[1], state[2], inits[0],
                         inits.size() > 1 ? inits[1] : Value());

  SmallVector<Value> existing(done->getResults());
  if (queries.isRagged())
    for (Value &result : existing) {
      int64_t rank = cast<RankedTensorType>(result.getType()).getRank();
      SmallVector<OpFoldResult> sizes = {rows};
      if (rank == 2)
        sizes.push_back(index(valueDim));
      result = tensor::ExtractSliceOp::create(
          b, loc, result, SmallVector<OpFoldResult>(rank, index(0)), sizes,
          SmallVector<OpFoldResult>(rank, index(1)));
    }
  auto terminator = scf::InParallelOp::create(b, loc);
  b.setInsertionPointToStart(terminator.getBody());
  for (auto [result, output] : llvm::zip_equal(existing, outputs)) {
    int64_t rank = cast<RankedTensorType>(output.getType()).getRank();
    SmallVector<OpFoldResult> offsets = {batch, head, start},
                              sizes = {index(1), index(1), rows};
    if (rank == 4) {
      offsets.push_back(index(0));
      sizes.push_back(index(valueDim));
    }
    tensor::ParallelInsertSliceOp::create(
        b, loc, result, output, offsets, sizes,
        SmallVector<OpFoldResult>(rank, index(1)));
  }
}

void Tiler::run() {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, loc, online.getQuery());
  queries = {online.getSchedule()->getQueryTile(), sizes[2]};
  keyTile = online.getSchedule()->getKeyTile();
  groups = HeadGroups(b, loc, online.getQuery(), online.getKey());

  SmallVector<Value> inits = {finalize.getOutputInit()};
  if (finalize.getLseInit())
    inits.push_back(finalize.getLseInit());
  auto forall = scf::ForallOp::create(
      b, loc, SmallVector<OpFoldResult>(3, index(0)),
      ArrayRef(sizes).drop_back(),
      SmallVector<OpFoldResult>{index(1), index(1), index(queries.tile)}, inits,
      /*mapping=*/std::nullopt);
  forall.getTerminator()->erase();
  b.setInsertionPointToStart(forall.getBody());
  queryTileBody(forall.getInductionVar(0), forall.getInductionVar(1),
                forall.getInductionVar(2), forall.getRegionIterArgs());

  finalize->replaceAllUsesWith(forall.getResults());
  finalize.erase();
  online.erase();
}

/// The finalize that is the only user of all of a step's results, or null.
static FinalizeOp getOnlyFinalize(OnlineAttentionOp online) {
  FinalizeOp finalize;
  for (Operation *user : online->getUsers()) {
    auto candidate = dyn_cast<FinalizeOp>(user);
    if (!candidate || (finalize && candidate != finalize))
      return nullptr;
    finalize = candidate;
  }
  if (finalize && finalize.getAcc() == online.getAccOut() &&
      finalize.getMax() == online.getMaxOut() &&
      finalize.getSum() == online.getSumOut())
    return finalize;
  return nullptr;
}

namespace {
struct Tile : flash::impl::TileBase<Tile> {
  void runOnOperation() override {
    SmallVector<std::pair<OnlineAttentionOp, FinalizeOp>> pairs;
    WalkResult walk = getOperation().walk([&](OnlineAttentionOp online) {
      if (online.isTile())
        return WalkResult::advance();
      if (!online.getSchedule()) {
        online.emitOpError(
            "has no schedule; run flash-select-schedule or write one");
        return WalkResult::interrupt();
      }
      if (!llvm::all_of(online.getMixedPosition(), isZeroInteger)) {
        online.emitOpError("can be tiled only from position [0, 0, 0, 0] on");
        return WalkResult::interrupt();
      }
      FinalizeOp finalize = getOnlyFinalize(online);
      if (!finalize) {
        online.emitOpError("can be tiled only if all of its results go to one "
                           "flash.finalize and nowhere else");
        return WalkResult::interrupt();
      }
      pairs.emplace_back(online, finalize);
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    for (auto [online, finalize] : pairs)
      Tiler(online, finalize).run();
  }
};
} // namespace
