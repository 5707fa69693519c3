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

    SmallVector<linalg::LinalgOp> ops;
    getOperation()->walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    for (linalg::LinalgOp op : ops) {
      if (!op.hasPureBufferSemantics()) {
        op->emitError("is not on buffers; bufferize first");
        return signalPassFailure();
      }
      flash::RegisterTiler tiler(rewriter, op, {vectorBits, registers});
      if (succeeded(tiler.analyze())) {
        tiler.emit();
        ++numVectorized;
      } else {
        rewriter.setInsertionPoint(op);
        if (failed(linalg::linalgOpToLoops(rewriter, op))) {
          op->emitError("cannot be turned into loops");
          return signalPassFailure();
        }
        ++numScalar;
      }
      rewriter.eraseOp(op);
    }
  }
};
} // namespace
