//===- Ptx.h - From the LLVM dialect to PTX ---------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TARGET_NVPTX_PTX_H
#define FLASH_TARGET_NVPTX_PTX_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"
#include <future>
#include <string>

namespace mlir {
class DialectRegistry;
class Operation;
} // namespace mlir

namespace flash {

/// The seconds that each stage took.
struct PtxTimes {
  double translate = 0, optimize = 0, codegen = 0;
};

/// For which GPUs and drivers `emitPtx` compiles.
struct PtxOptions {
  /// One of `getNvptxChips()`.
  std::string chip = "sm_80";
  /// Ten times the version of the PTX, as in LLVM's feature `ptx86`. 0 stands
  /// for 8.0, which the drivers of CUDA 12.0 and later assemble, or for the
  /// first version that has the chip. A driver refuses versions that are later
  /// than its own.
  unsigned ptxVersion = 0;
};

struct PtxText {
  std::string text;
  PtxTimes times;
};

/// The chips that `emitPtx` accepts, separated by commas.
std::string getNvptxChips();

/// Initializes LLVM's NVPTX target, and makes pointers to shared memory 32 bits
/// wide, for which LLVM has only a command-line flag. `emitPtx` calls this. A
/// tool that removes LLVM's flags from its command line must call it before it
/// removes them.
void initializeNvptx();

/// Registers the dialects of thread programs (gpu.module, llvm and nvvm), and
/// their translation to LLVM IR.
void registerNvptxDialects(mlir::DialectRegistry &registry);

/// Compiles the functions and globals of a gpu.module or builtin.module, which
/// must be in the LLVM and NVVM dialects, to PTX. Vectors may have any length;
/// they become scalars first. The text depends only on the input and the
/// options.
///
/// Fails if the chip is unknown, if the chip or the PTX version lacks an
/// operation, or if an operation is not in these dialects. In the last case a
/// diagnostic names the location.
llvm::Expected<PtxText> emitPtx(mlir::Operation *module,
                                const PtxOptions &options = {});

/// As `emitPtx`, but another thread does what LLVM does once the module is
/// translated. It reads nothing of MLIR, whose context this thread can use.
std::future<llvm::Expected<PtxText>> startPtx(mlir::Operation *module,
                                              const PtxOptions &options);

} // namespace flash

#endif // FLASH_TARGET_NVPTX_PTX_H
