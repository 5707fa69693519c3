//===- HoistProducts.cpp - Products out of choices ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Schedule/Schedule.h"
#include "flash/Schedule/Warpgroups.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/Debug.h"

namespace flash::tile {
#define GEN_PASS_DEF_HOISTPRODUCTS
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

#define DEBUG_TYPE "tile-hoist-products"

using namespace mlir;
using namespace flash;
using namespace flash::tile;

/// Whether the tile is read behind the choice, or may be, so that it cannot be
/// cleared there.
static bool isRead(Value tile, scf::IfOp choice) {
  auto fetch = tile.getDefiningOp<FetchOp>();
  if (!fetch || fetch->getBlock() != choice->getBlock())
    return true;
  return llvm::any_of(tile.getUsers(), [&](Operation *user) {
    return choice->isBeforeInBlock(
        choice->getBlock()->findAncestorOpInBlock(*user));
  });
}

/// Whether the value is an exponential, or one or 0.
static bool isExponential(Value value) {
  if (auto choice = value.getDefiningOp<arith::SelectOp>())
    return (isExponential(choice.getTrueValue()) &&
            matchPattern(choice.getFalseValue(), m_AnyZeroFloat())) ||
           (isExponential(choice.getFalseValue()) &&
            matchPattern(choice.getTrueValue(), m_AnyZeroFloat()));
  return isa_and_nonnull<math::Exp2Op, math::ExpOp>(value.getDefiningOp());
}

/// Whether the tile is exponentials: a row of them has no NaN or infinite one
/// unless its sum is so, too; with zeros they add nothing.
static bool areExponentials(Value tile) {
  while (isa_and_nonnull<arith::TruncFOp, arith::ExtFOp>(tile.getDefiningOp()))
    tile = tile.getDefiningOp()->getOperand(0);
  if (auto map = tile.getDefiningOp<MapOp>())
    tile = cast<YieldOp>(map.getBody().front().getTerminator()).getResult();
  return isExponential(tile);
}

/// The product that is all that the choice does where its condition holds; null
/// if it does anything else.
static MmaAsyncOp getProduct(scf::IfOp choice) {
  if (choice.getNumResults() != 1 || !choice.elseBlock())
    return {};
  auto wait = choice.thenYield().getOperand(0).getDefiningOp<MmaWaitOp>();
  auto product =
      wait ? wait.getPending().getDefiningOp<MmaAsyncOp>() : MmaAsyncOp();
  if (!product || wait->getBlock() != choice.thenBlock() ||
      product->getBlock() != choice.thenBlock() ||
      llvm::range_size(choice.thenBlock()->without_terminator()) != 2 ||
      !product.getC() || !wait->hasOneUse() || !product->hasOneUse() ||
      !isa<RankedTensorType>(product.getA().getType()))
    return {};
  return isRead(product.getB(), choice) ? MmaAsyncOp() : product;
}

/// Zeros that a choice can give: of a constant, a canonical choice is a
/// selection behind it.
static Value emitZeros(OpBuilder &b, Location loc, RankedTensorType type) {
  RankedTensorType f32 = type.clone(b.getF32Type());
  auto map = MapOp::create(b, loc, f32, ValueRange());
  {
    OpBuilder::InsertionGuard guard(b);
    SmallVector<Type> indices(type.getRank(), b.getIndexType());
    b.createBlock(&map.getBody(), {}, indices,
                  SmallVector<Location>(indices.size(), loc));
    Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
    YieldOp::create(b, loc, zero);
  }
  if (type == f32)
    return map;
  return arith::TruncFOp::create(b, loc, type, map);
}

/// Has the choice give the product's first operand as well, zeros where the
/// product is left out. Where it is not, that costs nothing.
static scf::IfOp addFirstOperand(scf::IfOp choice, MmaAsyncOp product) {
  Value operand = product.getA();
  auto type = cast<RankedTensorType>(operand.getType());
  OpBuilder b(choice);
  auto both = scf::IfOp::create(b, choice.getLoc(),
                                TypeRange{choice.getResult(0).getType(), type},
                                choice.getCondition());
  both.getThenRegion().takeBody(choice.getThenRegion());
  both.getElseRegion().takeBody(choice.getElseRegion());
  both.thenYield()->insertOperands(1, operand);
  b.setInsertionPoint(both.elseYield());
  both.elseYield()->insertOperands(1, emitZeros(b, product.getLoc(), type));
  choice.getResult(0).replaceAllUsesWith(both.getResult(0));
  choice.erase();
  return both;
}

static void hoist(scf::IfOp choice, MmaAsyncOp product) {
  auto wait = cast<MmaWaitOp>(*product->user_begin());
  int64_t warps =
      cast<FragmentAttr>(product.getResult().getType().getValue().getEncoding())
          .getWarps();
  if (!areExponentials(product.getA()))
    choice = addFirstOperand(choice, product);
  OpBuilder b(choice.elseYield());
  ClearOp::create(b, product.getLoc(), product.getB(), warps);
  choice.thenYield()->setOperand(0, product.getC());
  product->moveAfter(choice);
  wait->moveAfter(product);
  choice.getResult(0).replaceAllUsesWith(wait.getResult());
  product.getCMutable().assign(choice.getResult(0));
  if (choice.getNumResults() > 1)
    product.getAMutable().assign(choice.getResult(1));
}

namespace {
struct HoistProducts : flash::tile::impl::HoistProductsBase<HoistProducts> {
  void runOnOperation() override {
    flash::Schedule schedule = flash::getSchedule(getOperation());
    // Warps of other roles read the tile that would be cleared.
    if (!schedule.has(flash::ScheduleFeatures::SpecializeWarps) ||
        schedule.has(flash::ScheduleFeatures::DivideColumns))
      return;
    SmallVector<scf::IfOp> choices;
    getOperation().walk([&](scf::IfOp choice) { choices.push_back(choice); });
    for (scf::IfOp choice : choices)
      if (MmaAsyncOp product = getProduct(choice)) {
        LLVM_DEBUG(llvm::dbgs() << product.getLoc() << ": leaves its choice\n");
        hoist(choice, product);
      }
  }
};
} // namespace
