//===- CheckBlocks.cpp - Have given lists of blocks checked ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace flash {
#define GEN_PASS_DEF_CHECKBLOCKS
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// Writes the check of lists of blocks of `block` rows of `tensor`.
static void check(AttentionOpInterface op, Value list, Value counts,
                  Value tensor, int64_t block) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  OpFoldResult limit = affine::makeComposedFoldedAffineApply(
      b, loc, b.getAffineDimExpr(0).ceilDiv(block),
      {tensor::getMixedSize(b, loc, tensor, 2)});
  CheckBlocksOp::create(b, loc, list, counts,
                        getValueOrCreateConstantIndexOp(b, loc, limit));
}

namespace {
struct CheckBlocks : flash::impl::CheckBlocksBase<CheckBlocks> {
  void runOnOperation() override {
    getOperation().walk([](AttentionOpInterface op) {
      std::optional<ArrayRef<int64_t>> blocks = op.getBlockSizes();
      if (!blocks)
        return;
      if (auto attention = dyn_cast<AttentionOp>(op.getOperation()))
        return check(op, attention.getKeyTiles(), attention.getTileCounts(),
                     op.getKey(), (*blocks)[1]);
      auto grad = cast<AttentionGradOp>(op.getOperation());
      check(op, grad.getKeyTiles(), grad.getKeyTileCounts(), op.getKey(),
            (*blocks)[1]);
      check(op, grad.getQueryTiles(), grad.getQueryTileCounts(), op.getQuery(),
            (*blocks)[0]);
    });
  }
};
} // namespace
