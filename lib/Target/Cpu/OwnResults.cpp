//===- OwnResults.cpp - Every result is a buffer of its own ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Cpu/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace flash {
#define GEN_PASS_DEF_FLASHCPUOWNRESULTS
#include "flash/Target/Cpu/Passes.h.inc"
} // namespace flash

using namespace mlir;

static bool isView(Operation *op) {
  return isa_and_nonnull<tensor::CastOp, tensor::CollapseShapeOp,
                         tensor::ExpandShapeOp, tensor::ExtractSliceOp>(op);
}
/// The tensor of which `value` is the same or a part, seen otherwise.
static Value getViewed(Value value) {
  while (isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// Whether another operation may update `tensor` in its buffer.
static bool isUpdated(Value tensor) {
  return llvm::any_of(tensor.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isView(user))
      return isUpdated(user->getResult(0));
    if (auto destination = dyn_cast<DestinationStyleOpInterface>(user))
      return destination.isDpsInit(&use);
    return isa<LoopLikeOpInterface, scf::YieldOp>(user);
  });
}

/// A parallel loop stores its tiles at its end, one after the other, and
/// tensors that are empty at first may be parts of what it stores to. One-shot
/// bufferization takes it that no store is in the way of another, but for a
/// tile of which there is a newer one: that goes to the same place.
static void copyOldTiles(scf::InParallelOp stores) {
  OpBuilder b(stores);
  for (auto store : stores.getOps<tensor::ParallelInsertSliceOp>()) {
    Value tile = store.getSource();
    if (isUpdated(getViewed(tile)))
      store.getSourceMutable().assign(bufferization::AllocTensorOp::create(
          b, store.getLoc(), store.getSourceType(),
          /*dynamicSizes=*/ValueRange{}, /*copy=*/tile));
  }
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
    getOperation()->walk(copyOldTiles);
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
