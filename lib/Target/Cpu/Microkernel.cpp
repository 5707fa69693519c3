//===- Microkernel.cpp - Linalg operations as register tiles --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegisterTile.h"

#include "flash/Target/Cpu/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace flash {
#define GEN_PASS_DEF_FLASHCPUMICROKERNEL
#include "flash/Target/Cpu/Passes.h.inc"
} // namespace flash

using namespace mlir;

/// The fill that gives `buffer` its contents when `op` starts: it precedes in
/// the same block, and nothing between touches the buffer, which must be an
/// allocation so that all its views are known.
static linalg::FillOp findFill(Value buffer, Operation *op) {
  if (!buffer.getDefiningOp<memref::AllocOp>())
    return {};
  llvm::SetVector<Operation *> users;
  SmallVector<Value> views = {buffer};
  while (!views.empty())
    for (Operation *user : views.pop_back_val().getUsers())
      if (users.insert(user))
        llvm::append_range(views, user->getResults());
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode()) {
    if (auto fill = dyn_cast<linalg::FillOp>(before))
      if (fill.getOutputs()[0] == buffer)
        return fill;
    bool touches = llvm::any_of(users, [&](Operation *user) {
      return before->isAncestor(user) && !isMemoryEffectFree(user);
    });
    if (touches)
      return {};
  }
  return {};
}

namespace {
struct Microkernel : flash::impl::FlashCpuMicrokernelBase<Microkernel> {
  using FlashCpuMicrokernelBase::FlashCpuMicrokernelBase;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<memref::CopyOp> copies;
    getOperation()->walk([&](memref::CopyOp copy) { copies.push_back(copy); });
    for (memref::CopyOp copy : copies) {
      // The runtime has no copy routine, and a copy may transpose.
      if (!isa<MemRefType>(copy.getSource().getType()))
        continue;
      rewriter.setInsertionPoint(copy);
      linalg::makeMemRefCopyOp(rewriter, copy.getLoc(), copy.getSource(),
                               copy.getTarget());
      rewriter.eraseOp(copy);
    }

    // Fills come last: a reduction that starts from one makes it redundant.
    SmallVector<linalg::LinalgOp> ops, rest;
    getOperation()->walk([&](linalg::LinalgOp op) {
      (isa<linalg::FillOp>(op) ? rest : ops).push_back(op);
    });
    llvm::append_range(ops, rest);
    DenseSet<Operation *> redundant;
    for (linalg::LinalgOp op : ops) {
      if (redundant.contains(op)) {
        rewriter.eraseOp(op);
        continue;
      }
      if (!op.hasPureBufferSemantics()) {
        op->emitError("is not on buffers; bufferize first");
        return signalPassFailure();
      }
      flash::RegisterTiler tiler(rewriter, op, {vectorBits, registers});
      if (succeeded(tiler.analyze())) {
        for (OpOperand &init : op.getDpsInitsMutable()) {
          if (!tiler.isReduction() || !tiler.writesAll(init))
            continue;
          if (linalg::FillOp fill = findFill(init.get(), op)) {
            tiler.setInitialValue(init, fill.getInputs()[0]);
            redundant.insert(fill);
          }
        }
        tiler.emit();
        ++numVectorized;
      } else {
        rewriter.setInsertionPoint(op);
        if (failed(linalg::linalgOpToLoops(rewriter, op))) {
          op->emitError("cannot be lowered to loops");
          return signalPassFailure();
        }
        ++numScalar;
      }
      rewriter.eraseOp(op);
    }
  }
};
} // namespace
