//===- WidenCompares.h - Comparisons of bf16 as such of f32 -----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_TARGET_NVPTX_WIDENCOMPARES_H
#define FLASH_LIB_TARGET_NVPTX_WIDENCOMPARES_H

#include "llvm/IR/PassManager.h"

namespace flash {

/// Compares numbers of bf16 in f32, which is the same. instcombine narrows
/// comparisons of widened numbers, for which LLVM 22 then emits
/// `setp.ftz.bf16` where denormals are flushed: ptxas has no such instruction.
struct WidenComparesPass : llvm::PassInfoMixin<WidenComparesPass> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &);
};

} // namespace flash

#endif // FLASH_LIB_TARGET_NVPTX_WIDENCOMPARES_H
