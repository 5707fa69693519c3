//===- AttachTarget.cpp - Which machine a module is for -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Schedule/Target.h"

namespace flash {
#define GEN_PASS_DEF_ATTACHTARGET
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
struct AttachTarget : flash::impl::AttachTargetBase<AttachTarget> {
  using Base::Base;

  void runOnOperation() override {
    if (multiprocessors == 0)
      return;
    if (multiprocessors < 0 || multiprocessors > mostMultiprocessors) {
      emitError(getOperation().getLoc(), "multiprocessors must be from 1 to ")
          << mostMultiprocessors << ", got " << multiprocessors.getValue();
      return signalPassFailure();
    }
    auto *dialect = getContext().getLoadedDialect<FlashDialect>();
    dialect->getMultiprocessorsAttrHelper().setAttr(
        getOperation(),
        Builder(&getContext()).getI64IntegerAttr(multiprocessors));
  }
};
} // namespace
