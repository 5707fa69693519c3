//===- AnyOfLanes.cpp - Vote before maxima are shuffled -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/ControlFlowSinkUtils.h"

namespace flash::tile {
#define GEN_PASS_DEF_ANYOFLANES
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

/// Values of the lanes whose maximum is the row's value, or null. A product
/// with a positive number does not change which is the largest.
static Value getLanes(OpBuilder &b, Value rows) {
  if (auto reduce = rows.getDefiningOp<ReduceOp>();
      reduce && reduce.getReduction() == Reduction::Max &&
      isa<LanesAttr>(
          cast<RankedTensorType>(reduce.getX().getType()).getEncoding()))
    return reduce.getX();
  auto product = rows.getDefiningOp<arith::MulFOp>();
  DenseElementsAttr factor;
  if (!product || !matchPattern(product.getRhs(), m_Constant(&factor)) ||
      !factor.isSplat() || !factor.getSplatValue<APFloat>().isNormal() ||
      factor.getSplatValue<APFloat>().isNegative())
    return Value();
  Value lanes = getLanes(b, product.getLhs());
  if (!lanes)
    return Value();
  auto type = cast<RankedTensorType>(lanes.getType());
  Value splat = arith::ConstantOp::create(
      b, rows.getLoc(),
      DenseElementsAttr::get(type, factor.getSplatValue<Attribute>()));
  return arith::MulFOp::create(b, rows.getLoc(), lanes, splat,
                               product.getFastmath());
}

/// Whether the row that the lanes share is above a bound is whether one of them
/// is.
static void askLanes(AnyOp any) {
  auto conditions = any.getX().getDefiningOp<BroadcastOp>();
  auto isAbove = conditions
                     ? conditions.getSource().getDefiningOp<arith::CmpFOp>()
                     : arith::CmpFOp();
  if (!isAbove || isAbove.getPredicate() != arith::CmpFPredicate::OGT)
    return;
  OpBuilder b(any);
  Location loc = isAbove.getLoc();
  Value lanes = getLanes(b, isAbove.getLhs());
  if (!lanes)
    return;
  Value bound = BroadcastOp::create(b, loc, lanes.getType(), isAbove.getRhs());
  Value ofLanes =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, lanes, bound);
  any.getXMutable().assign(ofLanes);
  if (conditions->use_empty())
    conditions.erase();
  if (isAbove->use_empty())
    isAbove.erase();
}

namespace {
struct AnyOfLanes : flash::tile::impl::AnyOfLanesBase<AnyOfLanes> {
  void runOnOperation() override {
    SmallVector<scf::IfOp> choices;
    getOperation().walk([](AnyOp any) { askLanes(any); });
    getOperation().walk([&](scf::IfOp choice) {
      if (choice.getCondition().getDefiningOp<AnyOp>())
        choices.push_back(choice);
    });
    // What only one vote needs, the shuffles among it, is left to it.
    DominanceInfo dominance(getOperation());
    for (scf::IfOp choice : choices) {
      SmallVector<Region *> regions = {&choice.getThenRegion(),
                                       &choice.getElseRegion()};
      controlFlowSink(
          regions, dominance,
          [](Operation *op, Region *) {
            return isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
                   !isa<FoldOp>(op);
          },
          [](Operation *op, Region *region) {
            op->moveBefore(&region->front(), region->front().begin());
          });
    }
  }
};
} // namespace
