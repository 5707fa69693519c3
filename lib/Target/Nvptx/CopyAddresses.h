//===- CopyAddresses.h - Addresses of copies from their loop's index -*-C++-*-//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_TARGET_NVPTX_COPYADDRESSES_H
#define FLASH_LIB_TARGET_NVPTX_COPYADDRESSES_H

#include "llvm/IR/PassManager.h"

namespace flash {

/// Keeps the addresses of `cp.async` computed from the index of the loop around
/// them, where a step copies tiles of more than two tensors. Strength reduction
/// would carry each address through the loop, two registers for every row of a
/// thread: 32 of 255 for four tiles of 64 x 128. It does not widen an index
/// that is frozen, as nothing says any more that it does not wrap.
struct CopyAddressesPass : llvm::PassInfoMixin<CopyAddressesPass> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace flash

#endif // FLASH_LIB_TARGET_NVPTX_COPYADDRESSES_H
