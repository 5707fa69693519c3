//===- SkipRescale.cpp - No multiplication where all factors are one ------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

namespace flash::tile {
#define GEN_PASS_DEF_SKIPRESCALE
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

namespace {
/// A multiplication of a matrix by factors of its rows that are one where a
/// condition does not hold.
struct Rescale {
  arith::MulFOp product;
  Value matrix;
  BroadcastOp factors;
  arith::SelectOp factor;
};
} // namespace

static std::optional<Rescale> match(arith::MulFOp product) {
  auto type = dyn_cast<RankedTensorType>(product.getType());
  if (!type || !isa_and_nonnull<FragmentAttr>(type.getEncoding()))
    return std::nullopt;
  for (unsigned i : {0u, 1u}) {
    auto factors = product->getOperand(i).getDefiningOp<BroadcastOp>();
    auto factor = factors ? factors.getSource().getDefiningOp<arith::SelectOp>()
                          : arith::SelectOp();
    if (factor && matchPattern(factor.getFalseValue(), m_OneFloat()) &&
        factor.getCondition().getDefiningOp<arith::CmpFOp>())
      return Rescale{product, product->getOperand(1 - i), factors, factor};
  }
  return std::nullopt;
}

/// The lanes' values whose largest is that of the row `rows`, or null. To
/// multiply by a positive number changes nothing about which is the largest.
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

/// Whether the condition, which compares values of rows, holds for one of a
/// warp's. Lanes answer before they exchange anything.
static Value emitAny(OpBuilder &b, arith::CmpFOp condition) {
  Location loc = condition.getLoc();
  if (condition.getPredicate() != arith::CmpFPredicate::OGT)
    return Value();
  Value lanes = getLanes(b, condition.getLhs());
  if (!lanes)
    return Value();
  Value bound =
      BroadcastOp::create(b, loc, lanes.getType(), condition.getRhs());
  Value isAbove = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT,
                                        lanes, bound);
  return AnyOp::create(b, loc, b.getI1Type(), isAbove);
}

/// The operations of the condition's block that only the values `wanted` ask
/// for, in their order; of these, `wanted` themselves.
static SmallVector<Operation *> getOpsFor(ArrayRef<arith::SelectOp> wanted) {
  llvm::SetVector<Operation *> ops;
  for (arith::SelectOp op : wanted)
    ops.insert(op);
  for (size_t i = 0; i < ops.size(); ++i)
    for (Value operand : ops[i]->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      if (definition && definition->getBlock() == ops[0]->getBlock() &&
          isMemoryEffectFree(definition) && definition->getNumRegions() == 0 &&
          !isa<FoldOp>(definition) &&
          llvm::all_of(definition->getUsers(), [&](Operation *user) {
            return ops.contains(user);
          }))
        ops.insert(definition);
    }
  SmallVector<Operation *> ordered = ops.takeVector();
  llvm::sort(ordered,
             [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
  return ordered;
}

static void skip(Rescale rescale) {
  auto condition =
      rescale.factor.getCondition().getDefiningOp<arith::CmpFOp>();
  OpBuilder b(condition);
  Value any = emitAny(b, condition);
  if (!any)
    return;
  // All that the condition decides is decided for the warp, in its place.
  Block *block = condition->getBlock();
  SmallVector<arith::SelectOp> decided;
  for (Operation *user : condition->getUsers())
    if (auto select = dyn_cast<arith::SelectOp>(user);
        select && select->getBlock() == block &&
        select.getCondition() == condition)
      decided.push_back(select);
  llvm::sort(decided, [](arith::SelectOp x, arith::SelectOp y) {
    return x->isBeforeInBlock(y);
  });
  Location loc = condition.getLoc();
  SmallVector<Type> types;
  for (arith::SelectOp select : decided)
    types.push_back(select.getType());
  b.setInsertionPointAfter(decided.back());
  auto choice = scf::IfOp::create(b, loc, types, any, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  SmallVector<Value> then, otherwise;
  for (auto [select, result] :
       llvm::zip_equal(decided, choice.getResults())) {
    then.push_back(select.getResult());
    otherwise.push_back(select.getFalseValue());
  }
  // What they need must be known to the branches.
  SmallVector<Operation *> ops = getOpsFor(decided);
  for (auto [select, result] : llvm::zip_equal(decided, choice.getResults()))
    select.getResult().replaceUsesWithIf(result, [&](OpOperand &use) {
      return !llvm::is_contained(ops, use.getOwner());
    });
  for (Operation *op : ops)
    if (!llvm::is_contained(otherwise, op->getResult(0)))
      op->moveBefore(choice.thenBlock(), choice.thenBlock()->end());
  b.setInsertionPointToEnd(choice.thenBlock());
  scf::YieldOp::create(b, loc, then);
  b.setInsertionPointToEnd(choice.elseBlock());
  scf::YieldOp::create(b, loc, otherwise);
  // Then the multiplication. Where products run meanwhile it is better in front
  // of the exponentials: no branch divides these from the rounding of
  // probabilities, and ptxas can mix them.
  b.setInsertionPointAfter(choice);
  auto scaled = scf::IfOp::create(b, loc, rescale.product.getType(), any,
                                  /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  BroadcastOp factors = rescale.factors;
  arith::MulFOp product = rescale.product;
  product.getResult().replaceAllUsesWith(scaled.getResult(0));
  b.setInsertionPointToEnd(scaled.thenBlock());
  Operation *inside = b.clone(*factors);
  product->moveBefore(scaled.thenBlock(), scaled.thenBlock()->end());
  product->replaceUsesOfWith(factors.getResult(), inside->getResult(0));
  scf::YieldOp::create(b, loc, product.getResult());
  b.setInsertionPointToEnd(scaled.elseBlock());
  scf::YieldOp::create(b, loc, rescale.matrix);
  if (factors->use_empty())
    factors.erase();
}

namespace {
struct SkipRescale : flash::tile::impl::SkipRescaleBase<SkipRescale> {
  void runOnOperation() override {
    SmallVector<Rescale> all;
    getOperation().walk([&](arith::MulFOp product) {
      if (std::optional<Rescale> rescale = match(product))
        all.push_back(*rescale);
    });
    for (const Rescale &rescale : all)
      skip(rescale);
  }
};
} // namespace
