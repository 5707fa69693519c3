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
  /// The number of the result of the function, and of the result of the op.
  unsigned number, ofOp;
};

/// The results of the function that are gradients which an op in the function's
/// only block computes. Empty if the function has several blocks.
llvm::SmallVector<GradientResult> getGradientResults(mlir::func::FuncOp func);

/// The numbers of the results that are log-sum-exps of attentions in the
/// function's only block.
llvm::SmallVector<unsigned> getLogSumExpResults(mlir::func::FuncOp func);

/// The numbers of the results that are outputs of attentions in the function's
/// only block. With each comes the index of the log-sum-exp of the same
/// attention among the log-sum-exps that `addReferenceResults` adds.
llvm::SmallVector<std::pair<unsigned, unsigned>>
getOutputResults(mlir::func::FuncOp func);

/// How many results a reference has behind the results of the function.
struct ReferenceResults {
  /// The log-sum-exps of all attentions, then the log-sum-exps that ops of
  /// gradients take. They are bounds for the magnitude of the scores, on which
  /// the tolerance for f32 depends.
  unsigned logSumExps = 0;
  /// A result for each of `getGradientResults`. It has the same op's gradients
  /// for several random signs of the output's gradient, one after the other
  /// along a dimension in front, and packed as the result is. They are as large
  /// as the terms that cancel in the gradient; there are several, since one may
  /// be small by chance.
  unsigned terms = 0;
};

/// The numbers of results that `addReferenceResults` adds to the function.
ReferenceResults getReferenceResults(mlir::func::FuncOp func);

/// Adds the results of a reference to the function. Adds none if the function
/// has several blocks or if it is called.
void addReferenceResults(mlir::func::FuncOp func);

} // namespace flash::compile

#endif // FLASH_COMPILE_REFERENCE_H
