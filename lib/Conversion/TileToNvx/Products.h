//===- Products.h - Matrix products by mma.sync -----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_TILETONVX_PRODUCTS_H
#define FLASH_LIB_CONVERSION_TILETONVX_PRODUCTS_H

#include "Patterns.h"

namespace flash {

/// Adds the product of two fragments, of 16 rows and of 8 columns, to the four
/// registers of `acc`, f32 or, of elements of i8, i32. `lhs` has four registers
/// and `rhs` two of an inner dimension of 32 bytes, or half as many of 16
/// bytes, as operands of i8 have.
void multiplyFragments(ThreadBuilder &t, mlir::Type element,
                       llvm::ArrayRef<mlir::Value> lhs,
                       llvm::ArrayRef<mlir::Value> rhs,
                       llvm::MutableArrayRef<mlir::Value> acc);

} // namespace flash

#endif // FLASH_LIB_CONVERSION_TILETONVX_PRODUCTS_H
