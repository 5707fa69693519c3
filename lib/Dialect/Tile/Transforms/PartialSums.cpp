//===- PartialSums.cpp - Sums of rows that lanes add up at the end --------===//
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
#include "llvm/ADT/SetVector.h"

namespace flash::tile {
#define GEN_PASS_DEF_PARTIALSUMS
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

/// The fold that `sum` adds to the sums so far, once it is reduced; null if it
/// is no such sum.
static FoldOp getFold(arith::AddFOp sum) {
  auto reduce = sum.getRhs().getDefiningOp<ReduceOp>();
  if (!reduce || reduce.getReduction() != Reduction::Add ||
      !reduce->hasOneUse())
    return {};
  auto fold = reduce.getX().getDefiningOp<FoldOp>();
  if (!fold || fold.getReduction() != Reduction::Add || !fold->hasOneUse() ||
      !matchPattern(fold.getInit(), m_AnyZeroFloat()) ||
      !isOfRows(reduce.getResult().getType()))
    return {};
  return fold;
}

namespace {
/// Sums of rows that depend on each other: each is carried by a loop or chosen,
/// or another one times a factor or plus the sum of a tile's rows. A sum of
/// the lanes' sums is what all of them come to.
class Web {
public:
  explicit Web(Value sum) { add(sum); }

  /// Whether lanes shuffle less often with sums of their own: no loop that
  /// adds to the sums needs them whole.
  bool isWorthIt();
  void makePartial();

  const llvm::SetVector<Value> &getValues() const { return values; }

private:
  void add(Value value);
  /// Adds what is carried or chosen as result `number`.
  void addCarried(scf::ForOp loop, unsigned number);
  void addChosen(scf::IfOp choice, unsigned number);
  /// Whether the use makes a sum of another one.
  bool isStep(OpOperand &use);

  llvm::SetVector<Value> values;
};
} // namespace

bool Web::isStep(OpOperand &use) {
  Operation *op = use.getOwner();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return use.getOperandNumber() >= loop.getNumControlOperands();
  if (isa<scf::YieldOp>(op))
    return isa<scf::ForOp, scf::IfOp>(op->getParentOp());
  if (auto sum = dyn_cast<arith::AddFOp>(op))
    return use.getOperandNumber() == 0 && getFold(sum);
  // Its factor is of rows, no sum.
  auto product = dyn_cast<arith::MulFOp>(op);
  return product && values.contains(product.getResult()) &&
         values.contains(product.getLhs()) != values.contains(product.getRhs());
}

void Web::addCarried(scf::ForOp loop, unsigned number) {
  add(loop.getRegionIterArg(number));
  add(loop.getResult(number));
  add(loop.getYieldedValues()[number]);
  add(loop.getInitArgs()[number]);
}

void Web::addChosen(scf::IfOp choice, unsigned number) {
  add(choice.getResult(number));
  add(choice.thenYield().getOperand(number));
  add(choice.elseYield().getOperand(number));
}

void Web::add(Value value) {
  // What does not depend on a sum is where one starts.
  Operation *definition = value.getDefiningOp();
  bool isSum = isa<BlockArgument>(value);
  if (definition) {
    auto sum = dyn_cast<arith::AddFOp>(definition);
    isSum = isa<scf::ForOp, scf::IfOp, arith::MulFOp>(definition) ||
            (sum && getFold(sum));
  }
  auto argument = dyn_cast<BlockArgument>(value);
  auto around = argument
                    ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                    : scf::ForOp();
  if ((argument && !around) || !isSum || !values.insert(value))
    return;
  if (around)
    addCarried(around, argument.getArgNumber() - around.getNumInductionVars());
  else if (auto loop = dyn_cast<scf::ForOp>(definition))
    addCarried(loop, cast<OpResult>(value).getResultNumber());
  else if (auto choice = dyn_cast<scf::IfOp>(definition))
    addChosen(choice, cast<OpResult>(value).getResultNumber());
  else if (auto sum = dyn_cast<arith::AddFOp>(definition))
    add(sum.getLhs());
  else if (auto product = dyn_cast<arith::MulFOp>(definition))
    // The sum so far is what was carried; the other is a factor.
    add(isa<BlockArgument>(product.getLhs()) ? product.getLhs()
                                             : product.getRhs());
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto loop = dyn_cast<scf::ForOp>(user))
      addCarried(loop, use.getOperandNumber() - loop.getNumControlOperands());
    else if (auto yield = dyn_cast<scf::YieldOp>(user)) {
      if (auto loop = dyn_cast<scf::ForOp>(yield->getParentOp()))
        addCarried(loop, use.getOperandNumber());
      else if (auto choice = dyn_cast<scf::IfOp>(yield->getParentOp()))
        addChosen(choice, use.getOperandNumber());
    } else if (auto sum = dyn_cast<arith::AddFOp>(user)) {
      if (use.getOperandNumber() == 0 && getFold(sum))
        add(sum);
    } else if (isa<arith::MulFOp>(user) && around) {
      add(user->getResult(0));
    }
  }
}

bool Web::isWorthIt() {
  for (Value value : values) {
    auto sum = value.getDefiningOp<arith::AddFOp>();
    if (!sum)
      continue;
    auto loop = sum->getParentOfType<scf::ForOp>();
    if (!loop)
      return false;
    for (Value other : values)
      for (OpOperand &use : other.getUses())
        if (loop->isProperAncestor(use.getOwner()) && !isStep(use))
          return false;
  }
  return true;
}

void Web::makePartial() {
  RankedTensorType rows = cast<RankedTensorType>(values.front().getType());
  RankedTensorType lanes = getLanesType(rows);
  // Whole sums where others use them, and where sums start.
  llvm::DenseMap<Value, Value> started;
  auto start = [&](OpOperand &operand) {
    Value value = operand.get();
    Value &parts = started[value];
    if (!parts) {
      OpBuilder b(value.getContext());
      b.setInsertionPointAfterValue(value);
      // The lanes are a power of two and have a part each, which is exact.
      Location loc = value.getLoc();
      Value share = arith::ConstantOp::create(
          b, loc,
          DenseElementsAttr::get(
              rows, b.getF32FloatAttr(1.0f / lanes.getDimSize(1))));
      Value part = arith::MulFOp::create(b, loc, value, share);
      parts = BroadcastOp::create(b, loc, lanes, part);
    }
    operand.set(parts);
  };
  SmallVector<OpOperand *> exits, starts;
  llvm::SetVector<Operation *> steps;
  for (Value value : values) {
    for (OpOperand &use : value.getUses())
      if (!isStep(use))
        exits.push_back(&use);
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = cast<scf::ForOp>(argument.getOwner()->getParentOp());
      unsigned number = argument.getArgNumber() - loop.getNumInductionVars();
      starts.push_back(&loop.getInitArgsMutable()[number]);
      starts.push_back(&loop.getYieldedValuesMutable().value()[number]);
      continue;
    }
    Operation *definition = value.getDefiningOp();
    steps.insert(definition);
    if (auto choice = dyn_cast<scf::IfOp>(definition)) {
      unsigned number = cast<OpResult>(value).getResultNumber();
      for (scf::YieldOp yield : {choice.thenYield(), choice.elseYield()})
        starts.push_back(&yield->getOpOperand(number));
    } else if (isa<arith::AddFOp>(definition)) {
      starts.push_back(&definition->getOpOperand(0));
    }
  }
  for (OpOperand *operand : starts)
    if (!values.contains(operand->get()) && operand->get().getType() == rows)
      start(*operand);
  for (Value value : values)
    value.setType(lanes);
  for (Operation *step : steps) {
    OpBuilder b(step);
    if (auto product = dyn_cast<arith::MulFOp>(step)) {
      for (OpOperand &operand : product->getOpOperands())
        if (operand.get().getType() == rows)
          operand.set(
              BroadcastOp::create(b, step->getLoc(), lanes, operand.get()));
    } else if (auto sum = dyn_cast<arith::AddFOp>(step)) {
      FoldOp fold = getFold(sum);
      Operation *reduce = sum.getRhs().getDefiningOp();
      Value partial = FoldOp::create(b, step->getLoc(), lanes, Reduction::Add,
                                     fold.getX(), sum.getLhs());
      sum.replaceAllUsesWith(partial);
      sum.erase();
      reduce->erase();
      fold.erase();
    }
  }
  llvm::DenseMap<Value, Value> whole;
  for (OpOperand *exit : exits) {
    Value value = exit->get();
    Value &sum = whole[value];
    if (!sum) {
      OpBuilder b(value.getContext());
      b.setInsertionPointAfterValue(value);
      sum = ReduceOp::create(b, value.getLoc(), rows, Reduction::Add, value);
    }
    exit->set(sum);
  }
}

namespace {
struct PartialSums : flash::tile::impl::PartialSumsBase<PartialSums> {
  void runOnOperation() override {
    SmallVector<arith::AddFOp> sums;
    getOperation().walk([&](arith::AddFOp sum) {
      if (getFold(sum) && sum->getParentOfType<scf::ForOp>())
        sums.push_back(sum);
    });
    llvm::SmallPtrSet<Value, 16> done;
    SmallVector<Web> webs;
    for (arith::AddFOp sum : sums) {
      if (done.contains(sum))
        continue;
      webs.emplace_back(sum.getResult());
      for (Value value : webs.back().getValues())
        done.insert(value);
    }
    for (Web &web : webs)
      if (web.isWorthIt())
        web.makePartial();
  }
};
} // namespace
