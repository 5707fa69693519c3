//===- Dequantize.h - Rows of 8 bits as factors -----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_FLASHTOSCF_DEQUANTIZE_H
#define FLASH_LIB_CONVERSION_FLASHTOSCF_DEQUANTIZE_H

#include "flash/Dialect/Flash/IR/Flash.h"

namespace flash {

/// Makes a tile that is loaded of dequantized rows one of quantized rows, which
/// are dequantized as a tile: in one operation if kernels alone run. Returns
/// the load that replaces `load`.
LoadRowsOp loadQuantized(LoadRowsOp load, DequantizeOp op, bool onlyKernels);

/// Replaces the op where it is used as a tensor, which is an error if kernels
/// alone run, and its sizes.
llvm::LogicalResult dequantizeTensor(DequantizeOp op, bool onlyKernels);

} // namespace flash

#endif // FLASH_LIB_CONVERSION_FLASHTOSCF_DEQUANTIZE_H
