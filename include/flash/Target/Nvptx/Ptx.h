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
#include <string>

namespace mlir {
class DialectRegistry;
class Operation;
} // namespace mlir

namespace flash {

/// Seconds spent in each stage.
struct PtxTimes {
  double translate = 0, optimize = 0, codegen = 0;
};

struct PtxOptions {
  /// One of `getNvptxChips()`.
  std::string chip = "sm_80";
  /// The PTX version times ten, as in LLVM's feature `ptx86`. 0 is 8.0, which
  /// the drivers of CUDA 12.0 and later assemble, or the first version that
  /// knows the chip. A driver refuses versions later than its own.
  unsigned ptxVersion = 0;
};

struct PtxText {
  std::string text;
  PtxTimes times;
};

/// The chips that `emitPtx` takes, separated by commas.
std::string getNvptxChips();

/// Makes LLVM's NVPTX target known and sets its pointers to shared memory to 32
/// bits, for which there is only a command-line flag. `emitPtx` calls it; a
/// tool that removes LLVM's flags from its command line must call it before it
/// does.
void initializeNvptx();

/// Registers the dialects of thread programs (gpu.module, llvm
/// and nvvm) and their translation to LLVM IR.
void registerNvptxDialects(mlir::DialectRegistry &registry);

/// Compiles the functions and globals of a gpu.module or builtin.module, which
/// must be in the LLVM and NVVM dialects. Vectors may be of any length: they
/// become scalars before anything else. The same input gives the same text.
///
/// Fails on an unknown chip, on operations that the chip or the PTX version
/// lacks and on those that are not in these dialects; for the latter a
/// diagnostic says where.
llvm::Expected<PtxText> emitPtx(mlir::Operation *module,
                                const PtxOptions &options = {});

} // namespace flash

#endif // FLASH_TARGET_NVPTX_PTX_H
