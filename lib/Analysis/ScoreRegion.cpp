//===- ScoreRegion.cpp - What a score region does to a score --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/ScoreRegion.h"
#include "flash/Analysis/ScoreDependence.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace flash;

bool flash::hasGuards(Region &region) {
  return !region.empty() && !region.front().getOps<GuardOp>().empty();
}

bool flash::changesScore(Region &region) {
  if (region.empty())
    return false;
  Block &block = region.front();
  return cast<YieldOp>(block.getTerminator()).getResult() !=
         block.getArgument(0);
}

Value flash::getKeep(Region &region) {
  if (region.empty())
    return {};
  auto yield = cast<YieldOp>(region.front().getTerminator());
  return isa<BlockMapOp>(region.getParentOp()) ? yield.getResult()
                                               : yield.getKeep();
}

bool flash::masksElements(Region &region) {
  return static_cast<bool>(getKeep(region));
}

static bool isMinusInfinity(Value value) {
  APFloat constant(0.0f);
  return matchPattern(value, m_ConstantFloat(&constant)) &&
         constant.isInfinity() && constant.isNegative();
}

MaskingChoices flash::getMaskingChoices(Block &region) {
  MaskingChoices choices = {{},
                            cast<YieldOp>(region.getTerminator()).getResult()};
  ScoreDependences dependences(*region.getParent());
  while (auto choice = choices.score.getDefiningOp<arith::SelectOp>()) {
    bool keepsIfFalse = isMinusInfinity(choice.getTrueValue());
    if (dependences.get(choice.getCondition()).onScore ||
        !(keepsIfFalse || isMinusInfinity(choice.getFalseValue())))
      break;
    choices.outermostFirst.push_back({choice.getCondition(), keepsIfFalse});
    choices.score =
        keepsIfFalse ? choice.getFalseValue() : choice.getTrueValue();
  }
  return choices;
}

bool flash::readsToMask(Region &region) {
  Value keep = getKeep(region);
  if (!keep)
    return false;
  // What is computed outside is the same for all elements.
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitBlockArguments = true;
  options.filter = [&](Operation *op) {
    return region.isAncestor(op->getParentRegion());
  };
  llvm::SetVector<Operation *> slice;
  (void)getBackwardSlice(keep, &slice, options);
  return llvm::any_of(slice, llvm::IsaPred<tensor::ExtractOp>);
}
