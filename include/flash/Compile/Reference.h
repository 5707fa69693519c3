//===- Reference.h - What the reference adds --------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_COMPILE_REFERENCE_H
#define FLASH_COMPILE_REFERENCE_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace flash::compile {

/// A result of a function that is a gradient.
struct GradientResult {
  AttentionGradOp op;
  /// Which result of the function, and which of the op.
  unsigned number, ofOp;
};

/// The gradients that the function returns, from its own block.
llvm::SmallVector<GradientResult> getGradientResults(mlir::func::FuncOp func);

/// The numbers of the results that are log-sum-exps of attentions in the
/// function's own block.
llvm::SmallVector<unsigned> getLogSumExpResults(mlir::func::FuncOp func);

/// The numbers of the results that are outputs of attentions in the function's
/// own block, and which of the log-sum-exps that a reference adds has their
/// rows.
llvm::SmallVector<std::pair<unsigned, unsigned>>
getOutputResults(mlir::func::FuncOp func);

/// What a reference returns behind the results of the function.
struct ReferenceResults {
  /// The log-sum-exps of attentions and those that gradients are given. They
  /// give the magnitude of the scores, on which the tolerance of f32 depends.
  unsigned logSumExps = 0;
  /// For each of `getGradientResults`, tensors as large as what cancels in it,
  /// behind each other: several, since one may be small by chance.
  unsigned terms = 0;
};

/// Says what `addReferenceResults` adds to the function.
ReferenceResults getReferenceResults(mlir::func::FuncOp func);

/// Gives the function the results that a reference has in addition.
void addReferenceResults(mlir::func::FuncOp func);

} // namespace flash::compile

#endif // FLASH_COMPILE_REFERENCE_H
