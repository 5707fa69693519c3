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
/// The tensor that `value` is, or is a part of, seen through views.
static Value getViewed(Value value) {
  while (isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// How many operations may update `tensor` in its buffer.
static int64_t countUpdates(Value tensor) {
  int64_t updates = 0;
  for (OpOperand &use : tensor.getUses()) {
    Operation *user = use.getOwner();
    if (isView(user))
      updates += countUpdates(user->getResult(0));
    else if (auto destination = dyn_cast<DestinationStyleOpInterface>(user))
      updates += destination.isDpsInit(&use);
    else
      updates += isa<LoopLikeOpInterface, scf::YieldOp>(user);
  }
  return updates;
}

/// The tensors in whose buffers what gives `tensor` may put it.
static SmallVector<Value, 2> getDestinations(Value tensor) {
  auto result = dyn_cast<OpResult>(getViewed(tensor));
  if (!result)
    return {};
  Operation *op = result.getOwner();
  if (auto destination = dyn_cast<DestinationStyleOpInterface>(op))
    return {destination.getTiedOpOperand(result)->get()};
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
    if (OpOperand *init = loop.getTiedLoopInit(result))
      return {init->get()};
  if (auto choice = dyn_cast<scf::IfOp>(op))
    return {choice.thenYield().getOperand(result.getResultNumber()),
            choice.elseYield().getOperand(result.getResultNumber())};
  return {};
}

/// Whether another tensor may be in the buffer of `tensor`, made from it or,
/// beside it, from what it was made of.
static bool sharesBuffer(Value tensor) {
  SmallVector<Value> before = {getViewed(tensor)};
  for (size_t i = 0; i < before.size(); ++i) {
    // An update of what came before may be `tensor` itself.
    if (countUpdates(before[i]) > (i == 0 ? 0 : 1))
      return true;
    for (Value destination : getDestinations(before[i]))
      if (Value next = getViewed(destination);
          !next.getDefiningOp<tensor::EmptyOp>())
        before.push_back(next);
  }
  return false;
}

/// A parallel loop stores its tiles at its end, one after the other, and
/// tensors that are empty at first may be parts of what it stores to. One-shot
/// bufferization assumes that no store changes what another one stores. That is
/// not so for tiles that share a buffer: a tile that has a newer version, or
/// two that start from the same values.
static void copySharedTiles(scf::InParallelOp stores) {
  OpBuilder b(stores);
  for (auto store : stores.getOps<tensor::ParallelInsertSliceOp>()) {
    Value tile = store.getSource();
    if (sharesBuffer(tile))
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
    getOperation()->walk(copySharedTiles);
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
