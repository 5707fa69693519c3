//===- SinkOffsets.h - Constant offsets where they are used -----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_TARGET_NVPTX_SINKOFFSETS_H
#define FLASH_LIB_TARGET_NVPTX_SINKOFFSETS_H

#include "llvm/IR/PassManager.h"

namespace flash {

/// Copies an address at a constant distance from another to the blocks that use
/// it, so that the distance becomes part of the instructions: `[%r7+1536]`.
/// Loop-invariant code motion takes it out of loops, where each distance would
/// take a register, and the code generator moves back only the offsets of plain
/// loads and stores.
struct SinkOffsetsPass : llvm::PassInfoMixin<SinkOffsetsPass> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &);
};

} // namespace flash

#endif // FLASH_LIB_TARGET_NVPTX_SINKOFFSETS_H
