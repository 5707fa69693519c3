//===- Machine.h - The NVPTX code generator ---------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_TARGET_NVPTX_MACHINE_H
#define FLASH_LIB_TARGET_NVPTX_MACHINE_H

#include "flash/Target/Nvptx/Ptx.h"
#include <memory>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace flash {

/// The PTX version of `options`, times ten.
llvm::Expected<unsigned> getPtxVersion(const PtxOptions &options);

/// LLVM's code generator for this chip, with 32-bit pointers to shared memory.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createNvptxMachine(llvm::StringRef chip, unsigned ptxVersion);

/// Fails on operations that the chip does not have.
llvm::Error checkOperations(mlir::Operation *module, llvm::StringRef chip);

/// Fails on loads that are too wide and on calls that cannot be resolved.
llvm::Error checkModule(const llvm::Module &module);

/// Splits vectors into scalars and cleans up.
void optimizeForNvptx(llvm::Module &module, llvm::TargetMachine &machine);

/// Calls `function`. If LLVM gives up in it (it aborts the process where a
/// target cannot express something), returns what it said. Objects on which
/// `function` worked must then be left alone, not even destroyed.
llvm::Error runRecoverably(llvm::function_ref<void()> function);

} // namespace flash

#endif // FLASH_LIB_TARGET_NVPTX_MACHINE_H
