//===- SizeClass.h - Sizes that share a version -----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where sizes change from call to call, those of one class have the same
// version of a program: it is scheduled for their typical size, and knows what
// they are all divisible by.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SCHEDULE_SIZECLASS_H
#define FLASH_SCHEDULE_SIZECLASS_H

#include "llvm/ADT/bit.h"
#include <cstdint>

namespace flash {

/// Sizes up to this one are classes of their own.
constexpr int64_t largestExactSize = 64;

/// The size that schedules are chosen for. Of large sizes the three highest
/// bits count: a power of two is itself, and there are four sizes for each.
inline int64_t getTypicalSize(int64_t size) {
  constexpr int bitsKept = 3;
  if (size <= largestExactSize)
    return size;
  int dropped = llvm::bit_width(static_cast<uint64_t>(size)) - bitsKept;
  return size >> dropped << dropped;
}

/// What all sizes of the class of `size` are divisible by: of large ones the
/// largest of 256, 128 and 64, or 1.
inline int64_t getCommonDivisor(int64_t size) {
  if (size <= largestExactSize)
    return size;
  for (int64_t divisor : {256, 128, 64})
    if (size % divisor == 0)
      return divisor;
  return 1;
}

/// A number for the class of `size`.
inline int64_t getSizeClass(int64_t size) {
  if (size <= largestExactSize)
    return size;
  // The four lowest bits of a typical size are 0.
  return getTypicalSize(size) + getCommonDivisor(size) / 64;
}

} // namespace flash

#endif // FLASH_SCHEDULE_SIZECLASS_H
