//===- SeparateMasks.cpp - Masks that score regions write as -inf ---------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/ScoreRegion.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace flash {
#define GEN_PASS_DEF_SEPARATEMASKS
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

static void separate(Region &score) {
  if (score.empty())
    return;
  Block &region = score.front();
  auto yield = cast<YieldOp>(region.getTerminator());
  OpBuilder b(yield);
  MaskingChoices choices = getMaskingChoices(region);
  yield.getResultMutable().assign(choices.score);
  for (MaskingChoice choice : choices.outermostFirst) {
    Value keep = emitKeep(b, choice);
    if (yield.getKeep())
      keep = arith::AndIOp::create(b, yield.getLoc(), keep, yield.getKeep());
    yield.getKeepMutable().assign(keep);
  }
  eraseDeadOps(region);
}

/// Whether an attention has a map of what its mask leaves, or lists of blocks
/// that may leave some of them whole. They know nothing of what would be moved
/// into the mask.
static bool hasMap(AttentionOpInterface op) {
  return op.getBlockSizes() ||
         llvm::any_of(op->getOperands(), [](Value operand) {
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
