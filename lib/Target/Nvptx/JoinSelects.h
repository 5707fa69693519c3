//===- JoinSelects.h - One selection by several conditions ------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_TARGET_NVPTX_JOINSELECTS_H
#define FLASH_LIB_TARGET_NVPTX_JOINSELECTS_H

#include "llvm/IR/PassManager.h"

namespace flash {

/// Selects a float once where several conditions must hold, as for an element
/// that a mask, the end of a sequence and a score function may each leave out.
/// The code generator would take the conjunction apart into a selection for
/// each condition, and ptxas does not join these, although a comparison and
/// the conjunction with another predicate are one instruction. So `and.pred`
/// is inline assembly. What is compared with memory stays a selection of its
/// own in gradients.
struct JoinSelectsPass : llvm::PassInfoMixin<JoinSelectsPass> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &);
};

} // namespace flash

#endif // FLASH_LIB_TARGET_NVPTX_JOINSELECTS_H
