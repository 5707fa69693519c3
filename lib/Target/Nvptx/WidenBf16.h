//===- WidenBf16.h - Numbers of bf16 as such of f32 -------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_TARGET_NVPTX_WIDENBF16_H
#define FLASH_LIB_TARGET_NVPTX_WIDENBF16_H

#include "llvm/IR/PassManager.h"

namespace flash {

/// Compares numbers of bf16 in f32, which is the same. instcombine narrows
/// comparisons of widened numbers, for which LLVM 22 then emits
/// `setp.ftz.bf16` where denormals are flushed: ptxas has no such instruction.
///
/// Makes a number of bf16 one of f32 by moving its bits to the upper half. For
/// `cvt.ftz.f32.bf16`, which LLVM 22 emits for sm_90, ptxas takes F2F, an
/// instruction of the unit that computes exponentials, for fear of denormals;
/// those that the move keeps are flushed where they are used.
struct WidenBf16Pass : llvm::PassInfoMixin<WidenBf16Pass> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &);
};

} // namespace flash

#endif // FLASH_LIB_TARGET_NVPTX_WIDENBF16_H
