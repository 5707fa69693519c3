//===- Contract.cpp - Products and sums as one instruction ----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Nvptx/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace flash {
#define GEN_PASS_DEF_FLASHGPUCONTRACT
#include "flash/Target/Nvptx/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// Whether what the operation gives jumps where an operand changes a little.
static bool isDiscontinuous(Operation *op) {
  return isa<arith::CmpFOp, arith::FPToSIOp, arith::FPToUIOp, arith::BitcastOp,
             math::CeilOp, math::FloorOp, math::RoundOp, math::RoundEvenOp,
             math::TruncOp>(op);
}

/// The operations with which the operands of discontinuous ones are computed,
/// as far as can be seen without control flow. Maxima end it: that of a row of
/// scores is compared, too.
static DenseSet<Operation *> findExact(Operation *root) {
  DenseSet<Operation *> exact;
  SmallVector<Operation *> open;
  root->walk([&](Operation *op) {
    if (isDiscontinuous(op))
      open.push_back(op);
  });
  while (!open.empty())
    for (Value operand : open.pop_back_val()->getOperands()) {
      Operation *op = operand.getDefiningOp();
      if (op && isa<FloatType>(getElementTypeOrSelf(operand)) &&
          isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
          !isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
               arith::MinNumFOp>(op) &&
          exact.insert(op).second)
        open.push_back(op);
    }
  return exact;
}

namespace {
struct Contract : flash::impl::FlashGpuContractBase<Contract> {
  void runOnOperation() override {
    DenseSet<Operation *> exact = findExact(getOperation());
    getOperation()->walk([&](arith::ArithFastMathInterface op) {
      if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op) ||
          exact.contains(op))
        return;
      op->setAttr(op.getFastMathAttrName(),
                  arith::FastMathFlagsAttr::get(
                      &getContext(), op.getFastMathFlagsAttr().getValue() |
                                         arith::FastMathFlags::contract));
    });
  }
};
} // namespace
