//===- SeparateMasks.cpp - Masks that score regions write as -inf ---------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

namespace flash {
#define GEN_PASS_DEF_SEPARATEMASKS
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// The values of a score region that depend on the score.
static llvm::DenseSet<Value> getValuesOfScore(Block &region) {
  llvm::DenseSet<Value> ofScore = {region.getArgument(0)};
  for (Operation &op : region.without_terminator())
    if (llvm::any_of(op.getOperands(),
                     [&](Value operand) { return ofScore.contains(operand); }))
      ofScore.insert_range(op.getResults());
  return ofScore;
}

static bool isMinusInfinity(Value value) {
  APFloat constant(0.0f);
  return matchPattern(value, m_ConstantFloat(&constant)) &&
         constant.isInfinity() && constant.isNegative();
}

static void separate(Region &score) {
  if (score.empty())
    return;
  Block &region = score.front();
  auto yield = cast<YieldOp>(region.getTerminator());
  llvm::DenseSet<Value> ofScore = getValuesOfScore(region);
  OpBuilder b(yield);
  Location loc = yield.getLoc();
  while (auto choice = yield.getResult().getDefiningOp<arith::SelectOp>()) {
    Value keep = choice.getCondition(), kept = choice.getTrueValue();
    bool keepsIfFalse = isMinusInfinity(kept);
    if (keepsIfFalse)
      kept = choice.getFalseValue();
    else if (!isMinusInfinity(choice.getFalseValue()))
      break;
    if (ofScore.contains(keep))
      break;
    if (keepsIfFalse)
      keep = arith::XOrIOp::create(b, loc, keep,
                                   arith::ConstantIntOp::create(b, loc, 1, 1));
    if (yield.getKeep())
      keep = arith::AndIOp::create(b, loc, keep, yield.getKeep());
    yield.getResultMutable().assign(kept);
    yield.getKeepMutable().assign(keep);
  }
  eraseDeadOps(region);
}

/// Whether an attention has a map of what its mask leaves. The map knows
/// nothing of what would be moved into the mask.
static bool hasMap(AttentionOpInterface op) {
  return llvm::any_of(op->getOperands(), [](Value operand) {
    return operand.getDefiningOp<BlockMapOp>() != nullptr;
  });
}

namespace {
struct SeparateMasks : flash::impl::SeparateMasksBase<SeparateMasks> {
  using SeparateMasksBase::SeparateMasksBase;
  void runOnOperation() override {
    getOperation().walk([&](AttentionOpInterface op) {
      bool isSaid = op.getMask() || masksElements(op.getScore());
      if (!hasMap(op) && !(onlyUnsaid && isSaid))
        separate(op.getScore());
    });
  }
};
} // namespace
