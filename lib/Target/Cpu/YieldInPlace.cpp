//===- YieldInPlace.cpp - Loop-carried tensors keep their buffer ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Cpu/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

namespace flash {
#define GEN_PASS_DEF_FLASHCPUYIELDINPLACE
#include "flash/Target/Cpu/Passes.h.inc"
} // namespace flash

using namespace mlir;

/// True if some operation after `writer`, which updates `value`, still reads
/// it: then the update cannot be done in place.
static bool isReadAfter(Value value, Operation *writer) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    Operation *ancestor = writer->getBlock()->findAncestorOpInBlock(*user);
    return ancestor && writer->isBeforeInBlock(ancestor);
  });
}

static Value getUpdatedTensor(Value value, Block *within = nullptr);

/// The tensor from outside of a choice that both branches update in place to
/// give its result; null if there is none.
static Value getUpdatedByBoth(scf::IfOp choice, unsigned result) {
  if (!choice.elseBlock())
    return {};
  auto getUpdated = [&](Block *block) {
    return getUpdatedTensor(block->getTerminator()->getOperand(result), block);
  };
  Value updated = getUpdated(choice.thenBlock());
  return updated == getUpdated(choice.elseBlock()) ? updated : Value();
}

/// Follows destinations back from `value` to the tensor it updates in place, as
/// long as the operations are in the block `within`, if there is one; null if a
/// step is not in place.
static Value getUpdatedTensor(Value value, Block *within) {
  while (auto result = dyn_cast<OpResult>(value)) {
    Operation *op = result.getOwner();
    if (within && op->getBlock() != within)
      break;
    if (auto destination = dyn_cast<DestinationStyleOpInterface>(op))
      value = destination.getTiedOpOperand(result)->get();
    else if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
      value = loop.getTiedLoopInit(result)->get();
    else if (auto cast = dyn_cast<tensor::CastOp>(op))
      value = cast.getSource();
    else if (auto choice = dyn_cast<scf::IfOp>(op))
      value = getUpdatedByBoth(choice, result.getResultNumber());
    else
      break;
    if (!value || isReadAfter(value, op))
      return {};
  }
  return value;
}

namespace {
struct YieldInPlace : flash::impl::FlashCpuYieldInPlaceBase<YieldInPlace> {
  void runOnOperation() override {
    getOperation()->walk([&](scf::ForOp loop) {
      auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
      OpBuilder b(yield);
      for (auto [arg, operand] :
           llvm::zip(loop.getRegionIterArgs(), yield->getOpOperands())) {
        if (!isa<RankedTensorType>(arg.getType()) ||
            getUpdatedTensor(operand.get()) == arg)
          continue;
        auto copy = linalg::CopyOp::create(b, yield.getLoc(), operand.get(),
                                           Value(arg));
        operand.set(copy->getResult(0));
        ++numCopies;
      }
    });
  }
};
} // namespace
