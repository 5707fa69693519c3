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

/// The resources that a function needs, as ptxas reports them. Sizes are in
/// bytes, and numbers are of one thread, except for `staticShared`, which is of
/// a block.
struct KernelResources {
  std::string name;
  unsigned registers = 0;
  unsigned stack = 0, spillStores = 0, spillLoads = 0;
  unsigned staticShared = 0;
};

/// Machine code for a GPU, and what ptxas said about it.
struct Cubin {
  llvm::SmallVector<char, 0> bytes;
  std::vector<KernelResources> kernels;
  /// Warnings, and remarks with a code C75xx. With these, ptxas says that it
  /// serializes wgmma or ignores a number of registers.
  std::vector<std::string> remarks;

  /// Whether any function spills registers to memory.
  bool hasSpills() const;
};

/// Assembles PTX for a chip such as "sm_90a" with the first `ptxas` in the
/// PATH. Fails if there is none, and with the output of ptxas if it fails.
llvm::Expected<Cubin> runPtxas(llvm::StringRef ptx, llvm::StringRef chip);

} // namespace flash

#endif // FLASH_TARGET_NVPTX_PTXAS_H
