//===- IndexSum.h - Sums of indices with their constants --------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_TARGET_NVPTX_INDEXSUM_H
#define FLASH_LIB_TARGET_NVPTX_INDEXSUM_H

#include "mlir/IR/Value.h"

namespace flash {

/// A sum of indices, or of offsets made of them, and of a constant. A kernel's
/// sums do not overflow, so the order of summation is free.
struct IndexSum {
  /// Whether f32 holds the constant, and the sum of two of them.
  static bool isSmall(int64_t constant);

  /// Takes sums and differences apart, up to 16 terms: what is added to itself
  /// again and again has no end.
  void add(mlir::Value value, bool isSubtracted);

  /// The terms, and whether each is subtracted.
  llvm::SmallVector<std::pair<mlir::Value, bool>> terms;
  int64_t constant = 0;
};

} // namespace flash

#endif // FLASH_LIB_TARGET_NVPTX_INDEXSUM_H
