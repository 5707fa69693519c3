//===- MakeBlockMaps.cpp - Maps of what masks leave, made at run time -----===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/MaskNodes.h"
#include "flash/Dialect/Flash/Utils/MaskTiles.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

namespace flash {
#define GEN_PASS_DEF_MAKEBLOCKMAPS
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// Whether a map says more than what `flash-split-mask` finds, and may be made.
static bool needsMap(AttentionOp op) {
  if (op.getKeyTiles() || !op.getSchedule())
    return false;
  const Schedule schedule = op.getSchedule()->getValue();
  int64_t queries = op.getQuery().getType().getDimSize(2),
          keys = op.getKey().getType().getDimSize(2);
  if (!schedule.queryTile || !schedule.keyTile || schedule.splitKeys ||
      schedule.blockMap == 0 ||
      (!ShapedType::isDynamic(keys) && keys <= *schedule.keyTile))
    return false;
  if (masksElements(op.getScore()))
    return true;
  auto known = [](int64_t size) {
    return ShapedType::isDynamic(size) ? std::nullopt
                                       : std::optional<int64_t>(size);
  };
  return op.getMask() &&
         computeMaskTiles(*op.getMask(), schedule.getQueriesOfTile(),
                          *schedule.keyTile, known(queries), known(keys))
             .gaveUp;
}

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

static void makeMap(AttentionOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  const Schedule schedule = op.getSchedule()->getValue();
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
  const int64_t tiles[] = {schedule.getQueriesOfTile(), *schedule.keyTile};
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
  auto [keyTiles, counts] =
      BlockMapOp::getMapTypes(b.getContext(), staticSizes, tiles, packed);
  auto map = BlockMapOp::create(
      b, loc, keyTiles, counts, dynamicSizes, op.getLengths(), staticSizes,
      tiles, packed > 1 ? b.getI64IntegerAttr(packed) : IntegerAttr(),
      op.getMaskAttr(), /*givenTiles=*/Value(), /*givenCounts=*/Value());
  map.getKeep().takeBody(keep);
  op.getKeyTilesMutable().assign(map.getKeyTiles());
  op.getTileCountsMutable().assign(map.getCounts());
}

namespace {
struct MakeBlockMaps : flash::impl::MakeBlockMapsBase<MakeBlockMaps> {
  void runOnOperation() override {
    SmallVector<AttentionOp> ops;
    getOperation().walk([&](AttentionOp op) { ops.push_back(op); });
    for (AttentionOp op : ops) {
      if (failed(op.requireRank4()))
        return signalPassFailure();
      // What nothing asks for is not computed.
      if (op->use_empty())
        op.erase();
      else if (needsMap(op))
        makeMap(op);
    }
  }
};
} // namespace
