//===- MakeBlockMaps.cpp - Maps of what masks leave, made at run time -----===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ListedTiles.h"
#include "flash/Analysis/MaskNodes.h"
#include "flash/Analysis/MaskTiles.h"
#include "flash/Analysis/ScoreRegion.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

namespace flash {
#define GEN_PASS_DEF_MAKEBLOCKMAPS
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// Makes `keep` what the score region says of whether elements take part.
static void cloneKeep(Region &score, Region &keep) {
  if (!masksElements(score))
    return;
  OpBuilder b(score.getContext());
  Block &from = score.front();
  auto arguments = from.getArguments().drop_front();
  SmallVector<Location> locations = llvm::map_to_vector(
      arguments, [](BlockArgument argument) { return argument.getLoc(); });
  Block *to = b.createBlock(&keep, keep.end(), TypeRange(arguments), locations);
  ScorePosition position = {to->getArgument(0),     to->getArgument(1),
                            to->getArgument(2),     to->getArgument(3),
                            /*numQueries=*/Value(), /*numKeys=*/Value()};
  auto yield = cast<YieldOp>(from.getTerminator());
  Value kept = cloneKeepWithGuards(b, score, position);
  YieldOp::create(b, yield.getLoc(), kept, /*keep=*/Value());
}

static BlockMapOp makeMap(AttentionOpInterface op, const Schedule &schedule,
                          const ListedTiles &tiles) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  MaskAttrInterface mask = op.getMaskOrFull();
  bool isOfBatch = op.getLengths() || dependsOn(mask, 0),
       isOfHead = dependsOn(mask, 1);
  Region keep;
  cloneKeep(op.getScore(), keep);
  if (!keep.empty()) {
    isOfBatch |= !keep.getArgument(0).use_empty();
    isOfHead |= !keep.getArgument(1).use_empty();
  }
  int64_t packed = isOfHead ? schedule.getPackedHeads() : 1;
  SmallVector<OpFoldResult> sizes = {
      isOfBatch ? tensor::getMixedSize(b, loc, op.getQuery(), 0)
                : b.getIndexAttr(1),
      isOfHead ? tensor::getMixedSize(b, loc, op.getQuery(), 1)
               : b.getIndexAttr(1),
      tensor::getMixedSize(b, loc, op.getQuery(), 2),
      tensor::getMixedSize(b, loc, op.getKey(), 2)};
  SmallVector<Value> dynamicSizes;
  SmallVector<int64_t> staticSizes;
  dispatchIndexOpFoldResults(sizes, dynamicSizes, staticSizes);
  const int64_t tileSizes[] = {tiles.ofQueries, tiles.ofKeys};
  BlockMapOp::MapTypes types = BlockMapOp::getMapTypes(
      b.getContext(), staticSizes, tileSizes, packed, tiles.overQueries,
      /*hasRanks=*/tiles.overQueries && schedule.addsInOrder());
  auto map = BlockMapOp::create(
      b, loc, types.tiles, types.counts, types.ranks, dynamicSizes,
      op.getLengths(), staticSizes, tileSizes,
      packed > 1 ? b.getI64IntegerAttr(packed) : IntegerAttr(),
      tiles.overQueries, op.getMask().value_or(MaskAttrInterface()),
      /*givenTiles=*/Value(), /*givenCounts=*/Value(), /*givenRanks=*/Value());
  map.getKeep().takeBody(keep);
  return map;
}

static void makeMaps(AttentionOp op, const Schedule &schedule) {
  ListedTiles tiles = {schedule.getQueriesOfTile(), *schedule.keyTile,
                       /*overQueries=*/false};
  if (op.getKeyTiles() || !needsBlockMap(op, schedule, tiles))
    return;
  BlockMapOp map = makeMap(op, schedule, tiles);
  op.getKeyTilesMutable().assign(map.getKeyTiles());
  op.getTileCountsMutable().assign(map.getCounts());
}

/// The programs over queries and over keys go over lists of their own; one
/// program is over keys.
static void makeMaps(AttentionGradOp op, const Schedule &schedule) {
  ListedTiles ofQueries = {*schedule.queryTile, schedule.getKeyStep(),
                           /*overQueries=*/false},
              ofKeys = getTilesOverKeys(schedule);
  if (!op.getKeyTiles() && !schedule.isFused() &&
      needsBlockMap(op, schedule, ofQueries)) {
    BlockMapOp map = makeMap(op, schedule, ofQueries);
    op.getKeyTilesMutable().assign(map.getKeyTiles());
    op.getKeyTileCountsMutable().assign(map.getCounts());
  }
  if (!op.getQueryTiles() && needsBlockMap(op, schedule, ofKeys)) {
    BlockMapOp map = makeMap(op, schedule, ofKeys);
    op.getQueryTilesMutable().assign(map.getKeyTiles());
    op.getQueryTileCountsMutable().assign(map.getCounts());
    if (map.getRanks())
      op.getQueryTileRanksMutable().assign(map.getRanks());
  }
}

namespace {
struct MakeBlockMaps : flash::impl::MakeBlockMapsBase<MakeBlockMaps> {
  void runOnOperation() override {
    SmallVector<AttentionOpInterface> ops;
    getOperation().walk([&](AttentionOpInterface op) { ops.push_back(op); });
    for (AttentionOpInterface op : ops) {
      if (failed(op.requireRank4()))
        return signalPassFailure();
      // An attention without uses is not computed.
      if (op->use_empty()) {
        op.erase();
        continue;
      }
      std::optional<ScheduleAttr> attribute = op.getSchedule();
      if (!attribute || !attribute->getValue().queryTile ||
          !attribute->getValue().keyTile)
        continue;
      llvm::TypeSwitch<Operation *>(op.getOperation())
          .Case<AttentionOp, AttentionGradOp>([&](auto attention) {
            makeMaps(attention, attribute->getValue());
          });
    }
  }
};
} // namespace
