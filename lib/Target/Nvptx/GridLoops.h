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

/// Computes scalars late in grid-stride loops, in which blocks take one tile
/// after the other. The loops inside take all the registers there are, and what
/// is known before them and used after them would be spilled. To compute it
/// once for each tile costs next to nothing. So
///  - what loop-invariant code motion took out of a grid-stride loop goes back
///    in, unless the loops inside use it, and
///  - what is made of the block's number and the size of the grid is computed
///    again by each of its users.
struct GridLoopsPass : llvm::PassInfoMixin<GridLoopsPass> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace flash

#endif // FLASH_LIB_TARGET_NVPTX_GRIDLOOPS_H
