//===- HoistProducts.cpp - Products out of choices ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/IR/Warpgroups.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace flash::tile {
#define GEN_PASS_DEF_HOISTPRODUCTS
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
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

/// Whether the tile is exponentials, of which a row has no NaN or infinite one
/// unless its sum is so, too: with zeros they add nothing.
static bool areExponentials(Value tile) {
  if (auto rounded = tile.getDefiningOp<arith::TruncFOp>())
    tile = rounded.getIn();
  return isa_and_nonnull<math::Exp2Op, math::ExpOp>(tile.getDefiningOp());
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

/// Lets the choice give the product's first operand, too, or zeros where the
/// product is left out.
static scf::IfOp addFirstOperand(scf::IfOp choice, MmaAsyncOp product) {
  OpBuilder b(choice);
  auto type = cast<RankedTensorType>(product.getA().getType());
  Value zeros = arith::ConstantOp::create(
      b, product.getLoc(),
      DenseElementsAttr::get(type, b.getZeroAttr(type.getElementType())));
  auto both = scf::IfOp::create(b, choice.getLoc(),
                                {choice.getResult(0).getType(), type},
                                choice.getCondition(), /*withElseRegion=*/true);
  Value factors[] = {product.getA(), zeros};
  for (auto [from, to, value] :
       llvm::zip_equal(choice->getRegions(), both->getRegions(), factors)) {
    to.takeBody(from);
    to.front().getTerminator()->insertOperands(1, value);
  }
  choice.getResult(0).replaceAllUsesWith(both.getResult(0));
  choice.erase();
  product.getAMutable().assign(both.getResult(1));
  return both;
}

static void hoist(scf::IfOp choice, MmaAsyncOp product) {
  auto wait = cast<MmaWaitOp>(*product->user_begin());
  int64_t warps =
      cast<FragmentAttr>(product.getResult().getType().getValue().getEncoding())
          .getWarps();
  if (!areExponentials(product.getA()))
    choice = addFirstOperand(choice, product);
  OpBuilder b(choice);
  choice.thenYield()->setOperand(0, product.getC());
  b.setInsertionPoint(choice.elseYield());
  ClearOp::create(b, product.getLoc(), product.getB(), warps);
  product->moveAfter(choice);
  wait->moveAfter(product);
  choice.getResult(0).replaceAllUsesWith(wait.getResult());
  product.getCMutable().assign(choice.getResult(0));
}

namespace {
struct HoistProducts : flash::tile::impl::HoistProductsBase<HoistProducts> {
  void runOnOperation() override {
    if (!flash::getSchedule(getOperation())
             .has(flash::ScheduleFeatures::SpecializeWarps))
      return;
    SmallVector<scf::IfOp> choices;
    getOperation().walk([&](scf::IfOp choice) { choices.push_back(choice); });
    for (scf::IfOp choice : choices)
      if (MmaAsyncOp product = getProduct(choice))
        hoist(choice, product);
  }
};
} // namespace
