//===- Ptxas.h - From PTX to a cubin ----------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TARGET_NVPTX_PTXAS_H
#define FLASH_TARGET_NVPTX_PTXAS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace flash {

/// What one function needs, as ptxas reports it. Sizes are in bytes, per thread
/// but for `staticShared`, which is per block.
struct KernelResources {
  std::string name;
  unsigned registers = 0;
  unsigned stack = 0, spillStores = 0, spillLoads = 0;
  unsigned staticShared = 0;
};

struct Cubin {
  llvm::SmallVector<char, 0> bytes;
  std::vector<KernelResources> kernels;
  /// Warnings, and remarks with a C75xx code, by which ptxas says that it
  /// serialises wgmma or ignores a register count.
  std::vector<std::string> remarks;

  /// True if any function spills registers to memory.
  bool hasSpills() const;
};

/// Assembles PTX with the first `ptxas` in the PATH. Fails if there is none,
/// and with its message if it fails.
llvm::Expected<Cubin> runPtxas(llvm::StringRef ptx, llvm::StringRef chip);

} // namespace flash

#endif // FLASH_TARGET_NVPTX_PTXAS_H
