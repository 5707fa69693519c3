//===- OwnResults.cpp - Every result is a buffer of its own ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Cpu/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace flash {
#define GEN_PASS_DEF_FLASHCPUOWNRESULTS
#include "flash/Target/Cpu/Passes.h.inc"
} // namespace flash

using namespace mlir;

/// The tensor of which `value` is the same or a part, seen otherwise.
static Value getViewed(Value value) {
  while (isa_and_nonnull<tensor::CastOp, tensor::CollapseShapeOp,
                         tensor::ExpandShapeOp, tensor::ExtractSliceOp>(
      value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

namespace {
struct OwnResults : flash::impl::FlashCpuOwnResultsBase<OwnResults> {
  void runOnOperation() override {
    getOperation()->walk([](func::FuncOp func) {
      if (!func.isPublic())
        return;
      for (unsigned i = 0, e = func.getNumArguments(); i != e; ++i)
        func.setArgAttr(i,
                        bufferization::BufferizationDialect::kWritableAttrName,
                        BoolAttr::get(func.getContext(), false));
    });
    getOperation()->walk([](func::ReturnOp exit) {
      OpBuilder b(exit);
      DenseSet<Value> returned;
      for (OpOperand &operand : exit->getOpOperands()) {
        auto type = dyn_cast<RankedTensorType>(operand.get().getType());
        if (!type)
          continue;
        Value viewed = getViewed(operand.get());
        if (returned.insert(viewed).second && !isa<BlockArgument>(viewed))
          continue;
        operand.set(bufferization::AllocTensorOp::create(
            b, exit.getLoc(), type, /*dynamicSizes=*/ValueRange{},
            /*copy=*/operand.get()));
      }
    });
  }
};
} // namespace
