//===- CheckHost.cpp - Refuse what has no translation to a GPU ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Conversion/Passes.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace flash {
#define GEN_PASS_DEF_CHECKHOST
#include "flash/Conversion/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// Whether the op computes elements of tensors, rather than sizes or views.
static bool computesTensor(Operation *op) {
  if (isa<linalg::LinalgDialect, FlashDialect>(op->getDialect()) ||
      isa<scf::ForallOp>(op))
    return true;
  if (llvm::none_of(op->getResultTypes(), llvm::IsaPred<TensorType>))
    return false;
  if (OpTrait::hasElementwiseMappableTraits(op))
    return true;
  return isa<tensor::TensorDialect>(op->getDialect()) &&
         !isa<tensor::EmptyOp, tensor::CastOp, tensor::ExtractSliceOp,
              tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
}

namespace {
struct CheckHost : flash::impl::CheckHostBase<CheckHost> {
  void runOnOperation() override {
    WalkResult walk =
        getOperation().walk<WalkOrder::PreOrder>([](Operation *op) {
          if (!computesTensor(op))
            return WalkResult::advance();
          op->emitOpError("runs on the CPU only: of a program, attention and "
                          "softmaxes along the last dimension run on a GPU; "
                          "use --target=cpu");
          return WalkResult::interrupt();
        });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
