//===- CountTiles.cpp - Count the tiles that a run visits -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/ScoreRegion.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace flash {
#define GEN_PASS_DEF_COUNTTILES
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
struct CountTiles : flash::impl::CountTilesBase<CountTiles> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    OpBuilder b(module);
    FailureOr<LLVM::LLVMFuncOp> count =
        LLVM::lookupOrCreateFn(b, module, "flash_count_tile", {b.getI1Type()},
                               LLVM::LLVMVoidType::get(&getContext()));
    if (failed(count))
      return signalPassFailure();
    module.walk([&](OnlineAttentionOp step) {
      b.setInsertionPoint(step);
      bool isMasked = step.getMask() || masksElements(step.getScore());
      Value masked =
          LLVM::ConstantOp::create(b, step.getLoc(), b.getBoolAttr(isMasked));
      LLVM::CallOp::create(b, step.getLoc(), *count, masked);
    });
  }
};
} // namespace
