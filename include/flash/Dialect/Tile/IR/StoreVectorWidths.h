//===- StoreVectorWidths.h - What stores require of strides -----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_TILE_IR_STOREVECTORWIDTHS_H
#define FLASH_DIALECT_TILE_IR_STOREVECTORWIDTHS_H

#include "llvm/ADT/StringRef.h"

namespace flash::tile {

/// An attribute of a gpu.launch_func: for each operand of the kernel, how many
/// elements a thread stores to it at a time, or 0 if it stores none or requires
/// nothing. Strides other than the innermost must be multiples. Memory that the
/// host allocates has such strides, which is known and would fold assertions;
/// but callers may give results others.
constexpr llvm::StringLiteral storeVectorWidthsAttr =
    "tile.store_vector_widths";

} // namespace flash::tile

#endif // FLASH_DIALECT_TILE_IR_STOREVECTORWIDTHS_H
