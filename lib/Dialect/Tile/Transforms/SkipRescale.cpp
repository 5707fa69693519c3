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
#include "llvm/ADT/MapVector.h"

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
  unsigned matrix; ///< Which of its operands is the matrix.
  arith::CmpFOp condition;

  BroadcastOp getFactors() {
    return product->getOperand(1 - matrix).getDefiningOp<BroadcastOp>();
  }
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
    auto condition =
        factor ? factor.getCondition().getDefiningOp<arith::CmpFOp>()
               : arith::CmpFOp();
    if (condition && condition->getBlock() == factor->getBlock() &&
        matchPattern(factor.getFalseValue(), m_OneFloat()))
      return Rescale{product, 1 - i, condition};
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

/// What is chosen where the condition does not hold.
static Value getOtherwise(arith::SelectOp select) {
  Value value = select.getFalseValue();
  while (auto inner = value.getDefiningOp<arith::SelectOp>()) {
    if (inner.getCondition() != select.getCondition())
      break;
    value = inner.getFalseValue();
  }
  return value;
}

/// The operations of the condition's block that only the values `wanted` ask
/// for where it holds, in their order; of these, `wanted` themselves.
static SmallVector<Operation *> getOpsFor(ArrayRef<arith::SelectOp> wanted) {
  llvm::SetVector<Operation *> ops;
  for (arith::SelectOp op : wanted)
    ops.insert(op);
  auto isChosenOtherwise = [&](Operation *op) {
    return llvm::any_of(wanted, [&](arith::SelectOp select) {
      return getOtherwise(select).getDefiningOp() == op;
    });
  };
  for (size_t i = 0; i < ops.size(); ++i)
    for (Value operand : ops[i]->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      if (definition && definition->getBlock() == ops[0]->getBlock() &&
          isMemoryEffectFree(definition) && definition->getNumRegions() == 0 &&
          !isa<FoldOp>(definition) && !isChosenOtherwise(definition) &&
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

/// Whether what `decided` gives is used behind the last of them only, but for
/// `ops`.
static bool isUsedBehind(ArrayRef<arith::SelectOp> decided,
                         ArrayRef<Operation *> ops) {
  arith::SelectOp last = decided.back();
  for (arith::SelectOp select : decided)
    for (Operation *user : select->getUsers()) {
      Operation *at = last->getBlock()->findAncestorOpInBlock(*user);
      if (!llvm::is_contained(ops, user) && (!at || at->isBeforeInBlock(last)))
        return false;
    }
  return true;
}

/// Skips multiplications by factors that the same condition decides.
static void skip(MutableArrayRef<Rescale> rescales) {
  arith::CmpFOp condition = rescales.front().condition;
  Block *block = condition->getBlock();
  // All that the condition decides is decided for the warp, in its place.
  SmallVector<arith::SelectOp> decided;
  for (Operation *user : condition->getUsers())
    if (auto select = dyn_cast<arith::SelectOp>(user);
        select && select->getBlock() == block &&
        select.getCondition() == condition)
      decided.push_back(select);
  llvm::sort(decided, [](arith::SelectOp x, arith::SelectOp y) {
    return x->isBeforeInBlock(y);
  });
  if (!isUsedBehind(decided, getOpsFor(decided)))
    return;
  OpBuilder b(condition);
  Value any = emitAny(b, condition);
  if (!any)
    return;
  Location loc = condition.getLoc();
  SmallVector<Type> types;
  SmallVector<Value> then, otherwise;
  for (arith::SelectOp select : decided) {
    types.push_back(select.getType());
    then.push_back(select.getResult());
    otherwise.push_back(getOtherwise(select));
  }
  b.setInsertionPointAfter(decided.back());
  auto choice = scf::IfOp::create(b, loc, types, any, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  // What they need must be known to the branches.
  SmallVector<Operation *> ops = getOpsFor(decided);
  for (auto [select, result] : llvm::zip_equal(decided, choice.getResults()))
    select.getResult().replaceUsesWithIf(result, [&](OpOperand &use) {
      return !llvm::is_contained(ops, use.getOwner());
    });
  for (Operation *op : ops)
    op->moveBefore(choice.thenBlock(), choice.thenBlock()->end());
  b.setInsertionPointToEnd(choice.thenBlock());
  scf::YieldOp::create(b, loc, then);
  b.setInsertionPointToEnd(choice.elseBlock());
  scf::YieldOp::create(b, loc, otherwise);
  // Then the multiplications. Where products run meanwhile they are better in
  // front of the exponentials: no branch divides these from the rounding of
  // probabilities, and ptxas can mix them.
  Operation *place = choice;
  for (Rescale &rescale : rescales) {
    arith::MulFOp product = rescale.product;
    BroadcastOp factors = rescale.getFactors();
    Value matrix = product->getOperand(rescale.matrix);
    Operation *definition = matrix.getDefiningOp();
    bool isKnown = product->getBlock() == block &&
                   (!definition || definition->getBlock() != block ||
                    definition == place || definition->isBeforeInBlock(place));
    if (isKnown)
      b.setInsertionPointAfter(place);
    else
      b.setInsertionPoint(product);
    auto scaled =
        scf::IfOp::create(b, loc, product.getType(), any, /*addThenBlock=*/true,
                          /*addElseBlock=*/true);
    if (isKnown)
      place = scaled;
    product.getResult().replaceAllUsesWith(scaled.getResult(0));
    b.setInsertionPointToEnd(scaled.thenBlock());
    Operation *inside = b.clone(*factors);
    product->moveBefore(scaled.thenBlock(), scaled.thenBlock()->end());
    product->replaceUsesOfWith(factors.getResult(), inside->getResult(0));
    scf::YieldOp::create(b, loc, product.getResult());
    b.setInsertionPointToEnd(scaled.elseBlock());
    scf::YieldOp::create(b, loc, matrix);
    if (factors->use_empty())
      factors.erase();
  }
}

namespace {
struct SkipRescale : flash::tile::impl::SkipRescaleBase<SkipRescale> {
  void runOnOperation() override {
    llvm::MapVector<Operation *, SmallVector<Rescale>> all;
    getOperation().walk([&](arith::MulFOp product) {
      if (std::optional<Rescale> rescale = match(product))
        all[rescale->condition].push_back(*rescale);
    });
    for (auto &[condition, rescales] : all)
      skip(rescales);
  }
};
} // namespace
