//===- Patterns.h - From nvx to the LLVM dialect ----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_NVXTOLLVM_PATTERNS_H
#define FLASH_LIB_CONVERSION_NVXTOLLVM_PATTERNS_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/PatternMatch.h"

namespace flash {

/// Patterns of the operations of a warpgroup, as inline PTX.
void populateWarpgroupPatterns(mlir::LLVMTypeConverter &converter,
                               mlir::RewritePatternSet &patterns);

} // namespace flash

#endif // FLASH_LIB_CONVERSION_NVXTOLLVM_PATTERNS_H
