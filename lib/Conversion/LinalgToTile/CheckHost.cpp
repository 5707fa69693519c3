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
#include "mlir/Interfaces/CallInterfaces.h"

namespace flash {
#define GEN_PASS_DEF_CHECKHOST
#include "flash/Conversion/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// Whether the op computes elements of tensors or depends on them, rather than
/// sizes or views.
static bool computesTensor(Operation *op) {
  // What it chooses between is looked at by itself.
  if (isa<scf::IfOp, scf::YieldOp>(op))
    return false;
  if (isa<linalg::LinalgDialect, FlashDialect, scf::SCFDialect>(
          op->getDialect()) ||
      isa<tensor::ExtractOp, CallOpInterface>(op))
    return true;
  // What holds the values of a constant is in the kernels.
  if (op->hasTrait<OpTrait::ConstantLike>())
    return isa<TensorType>(op->getResult(0).getType()) && !op->use_empty();
  if (llvm::none_of(op->getResultTypes(), llvm::IsaPred<TensorType>))
    return false;
  if (OpTrait::hasElementwiseMappableTraits(op))
    return true;
  return isa<tensor::TensorDialect>(op->getDialect()) &&
         !isa<tensor::EmptyOp, tensor::CastOp, tensor::ExtractSliceOp,
              tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
}

/// Where the program has the op. What folding has made is nowhere: then where
/// the first of those is that take it, or the function.
static Location getLocation(Operation *op) {
  llvm::SetVector<Operation *> ops;
  ops.insert(op);
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!isa<UnknownLoc>(ops[i]->getLoc()))
      return ops[i]->getLoc();
    ops.insert_range(ops[i]->getUsers());
  }
  return op->getParentOfType<func::FuncOp>().getLoc();
}

/// The argument of the function whose memory the tensor is or may be, or null.
static BlockArgument getArgument(Value tensor) {
  while (Operation *op = tensor.getDefiningOp()) {
    if (auto choice = dyn_cast<scf::IfOp>(op)) {
      unsigned number = cast<OpResult>(tensor).getResultNumber();
      if (BlockArgument argument =
              getArgument(choice.thenYield().getOperand(number)))
        return argument;
      tensor = choice.elseYield().getOperand(number);
      continue;
    }
    if (!isa<tensor::CastOp, tensor::ExtractSliceOp, tensor::ExpandShapeOp,
             tensor::CollapseShapeOp>(op))
      return BlockArgument();
    tensor = op->getOperand(0);
  }
  return cast<BlockArgument>(tensor);
}

/// A kernel writes to memory of its own, which is returned as it is.
static LogicalResult verifyReturn(func::ReturnOp op) {
  for (auto [i, value] : llvm::enumerate(op.getOperands()))
    if (!isa<RankedTensorType>(value.getType()))
      continue;
    else if (BlockArgument argument = getArgument(value))
      return op.emitOpError("cannot return result ")
             << i << " on a GPU: it is memory of argument "
             << argument.getArgNumber()
             << "; leave it out, or use --target=cpu";
  return success();
}

/// Kernels take rows whose elements lie behind each other. Where that is known
/// when a call is made only, the call checks it, and emulations do not.
static LogicalResult verifySlice(tensor::ExtractSliceOp op, bool emulated) {
  int64_t last = op.getSourceType().getRank() - 1;
  if (op->use_empty() || op.getType().getRank() == 0)
    return success();
  bool isKnown, hasGaps;
  if (op.getDroppedDims().test(last)) {
    int64_t columns = op.getSourceType().getDimSize(last);
    isKnown = !ShapedType::isDynamic(columns);
    hasGaps = columns != 1;
  } else {
    std::optional<int64_t> step =
        getConstantIntValue(op.getMixedStrides().back());
    isKnown = step.has_value();
    hasGaps = step != 1;
  }
  if (!hasGaps || (!isKnown && !emulated))
    return success();
  return op.emitOpError(isKnown ? "leaves gaps" : "may leave gaps")
         << " between the elements of a row, and a GPU takes rows without "
            "them: copy what is sliced, or use --target=cpu";
}

namespace {
struct CheckHost : flash::impl::CheckHostBase<CheckHost> {
  using Base::Base;

  void runOnOperation() override {
    if (!getOperation().isExternal() &&
        !getOperation().getBody().hasOneBlock()) {
      getOperation().emitOpError("branches, which runs on the CPU only");
      return signalPassFailure();
    }
    WalkResult walk = getOperation().walk<WalkOrder::PreOrder>([&](Operation
                                                                       *op) {
      if (auto exit = dyn_cast<func::ReturnOp>(op))
        return WalkResult(verifyReturn(exit));
      if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
        return WalkResult(verifySlice(slice, emulated));
      if (!computesTensor(op) || (emulated && isa<CheckBlocksOp>(op)))
        return WalkResult::advance();
      emitError(getLocation(op))
          << "'" << op->getName()
          << "' op runs on the CPU only: of a program, attention, softmaxes "
             "along the last dimension and parallel loops over tiles run on "
             "a GPU; use --target=cpu";
      return WalkResult::interrupt();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
