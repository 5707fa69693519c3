//===- GridLoops.h - Registers across loops over tiles ----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_TARGET_NVPTX_GRIDLOOPS_H
#define FLASH_LIB_TARGET_NVPTX_GRIDLOOPS_H

#include "llvm/IR/PassManager.h"

namespace flash {

/// Computes what is made of the block's number and the size of the grid again
/// for each tile in grid-stride loops, in which blocks take one tile after the
/// other. Where the loops inside carry many values, they take all the registers
/// there are, and what is known before them and used after them would be
/// spilled. Where threads have few registers and sizes are arguments, so is
/// what is made of the thread's number.
struct GridLoopsPass : llvm::PassInfoMixin<GridLoopsPass> {
  /// `registers` are what the threads on a multiprocessor share.
  explicit GridLoopsPass(int64_t registers) : registers(registers) {}

  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &analyses);

private:
  int64_t registers;
};

} // namespace flash

#endif // FLASH_LIB_TARGET_NVPTX_GRIDLOOPS_H
