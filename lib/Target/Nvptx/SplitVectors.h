//===- SplitVectors.h - Vectors taken apart into scalars --------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_TARGET_NVPTX_SPLITVECTORS_H
#define FLASH_LIB_TARGET_NVPTX_SPLITVECTORS_H

#include "llvm/IR/PassManager.h"

namespace flash {

/// Makes scalars of the vectors that hold tiles of registers: of loop-carried
/// ones, of elementwise operations, and of the insertions and extractions in
/// between. LLVM's scalarizer could do it too, but puts the vector together
/// anew for each insertion, which for a tile of n registers takes n * n
/// instructions.
struct SplitVectorsPass : llvm::PassInfoMixin<SplitVectorsPass> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &);
};

} // namespace flash

#endif // FLASH_LIB_TARGET_NVPTX_SPLITVECTORS_H
