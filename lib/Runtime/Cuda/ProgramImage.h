//===- ProgramImage.h - A look at PTX and cubins ----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_RUNTIME_CUDA_PROGRAMIMAGE_H
#define FLASH_LIB_RUNTIME_CUDA_PROGRAMIMAGE_H

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace flash::cuda {

/// What a program is, and what it says about itself.
struct ProgramImage {
  bool isCubin = false;
  /// The ".version" and the first ".target" of PTX, such as "8.0", "sm_90a".
  llvm::StringRef version, target;
};

/// Looks at bytes that are about to be given to the driver, which takes their
/// length from the bytes themselves: PTX must not hold a zero byte, and the
/// parts of a cubin must lie in it.
llvm::Expected<ProgramImage> inspectProgram(llvm::StringRef image,
                                            llvm::StringRef name);

/// How many parameters each kernel of PTX text has. The driver would have to be
/// queried for one past the last, which tools that watch it report as an error.
llvm::StringMap<int> countParameters(llvm::StringRef ptx);

} // namespace flash::cuda

#endif // FLASH_LIB_RUNTIME_CUDA_PROGRAMIMAGE_H
