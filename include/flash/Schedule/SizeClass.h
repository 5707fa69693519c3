//===- SizeClass.h - Sizes that share a version -----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where sizes change from call to call, all sizes of one class have the same
// version of a program: it is scheduled for their typical size, and knows what
// they are all divisible by.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SCHEDULE_SIZECLASS_H
#define FLASH_SCHEDULE_SIZECLASS_H

#include "llvm/ADT/STLFunctionalExtras.h"
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

/// What distinguishes classes of large sizes: the first of these that divides
/// them.
constexpr int64_t classDivisors[] = {256, 128, 64, 1};

/// What all sizes of the class of `size` are divisible by.
inline int64_t getCommonDivisor(int64_t size) {
  if (size <= largestExactSize)
    return size;
  for (int64_t divisor : classDivisors)
    if (size % divisor == 0)
      return divisor;
  return 1;
}

/// A number for the class of `size`.
inline int64_t getSizeClass(int64_t size) {
  if (size <= largestExactSize)
    return size;
  // The four lowest bits of a typical size are 0, and 65 has an exact
  // typical size.
  return getTypicalSize(size) + 1 + getCommonDivisor(size) / 64;
}

/// The length that a version for CPUs is scheduled for. There are few of them:
/// tiles may be somewhat larger than a short length. It is divisible by no
/// tile, as not all lengths that it stands for are.
inline int64_t getCpuLength(int64_t length) {
  for (int64_t tile : {16, 32, 64})
    if (length <= tile)
      return tile - 1;
  return 129;
}

/// The sizes of one class, or of several with the same version, for a program
/// that finds out whether a size is one of them.
struct SizeSet {
  int64_t first, last;
  /// A bit for each of `classDivisors`: those that are the common divisor of
  /// sizes in the set, and those that are it of no size in the range.
  unsigned divisors, absent = 0;

  static constexpr unsigned allDivisors = 15;

  /// Adds divisors that are absent, or leaves them out, such that few are to be
  /// tested.
  void decideAbsent();
  bool operator==(const SizeSet &other) const {
    return first == other.first && last == other.last &&
           divisors == other.divisors && absent == other.absent;
  }
};

/// Calls `visit` with each class that has a size from `first` to `last`, in
/// their order: its sizes, which may be others, too, and one of them in this
/// range.
void forEachSizeClass(
    int64_t first, int64_t last,
    llvm::function_ref<void(SizeSet sizes, int64_t size)> visit);

} // namespace flash

#endif // FLASH_SCHEDULE_SIZECLASS_H
