//===- DecomposeCombine.h - flash.combine as linalg on tiles ----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_FLASH_TRANSFORMS_DECOMPOSECOMBINE_H
#define FLASH_LIB_DIALECT_FLASH_TRANSFORMS_DECOMPOSECOMBINE_H

#include "flash/Dialect/Flash/IR/Flash.h"

namespace flash {

/// Replaces `op` by a loop over its splits. Emits an error if it is not known
/// how many rows there are at most.
llvm::LogicalResult decomposeCombine(CombineOp op);

} // namespace flash

#endif // FLASH_LIB_DIALECT_FLASH_TRANSFORMS_DECOMPOSECOMBINE_H
