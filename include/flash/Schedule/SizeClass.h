//===- SizeClass.h - Sizes that share a version -----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Classes of sizes that change from call to call. All sizes of a class have the
// same version of a program. Its schedule is chosen for their typical size, and
// it may assume that sizes are divisible by their common divisor.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SCHEDULE_SIZECLASS_H
#define FLASH_SCHEDULE_SIZECLASS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/bit.h"
#include <cstdint>

namespace flash {

/// Each size up to this one is a class of its own.
constexpr int64_t largestExactSize = 64;

/// The size for which schedules are chosen. A size up to `largestExactSize` is
/// its own typical size. The typical size of a larger one has only its three
/// highest bits, so there are four typical sizes from a power of two to before
/// the next one. `size` must not be negative.
inline int64_t getTypicalSize(int64_t size) {
  constexpr int bitsKept = 3;
  if (size <= largestExactSize)
    return size;
  int dropped = llvm::bit_width(static_cast<uint64_t>(size)) - bitsKept;
  return size >> dropped << dropped;
}

/// Sizes above `largestExactSize` belong to the same class if they have the
/// same typical size, and if the same number of this list is the first that
/// divides them.
constexpr int64_t classDivisors[] = {256, 128, 64, 1};

/// A number by which all sizes of the class of `size` are divisible: `size`
/// itself up to `largestExactSize`, else the first number of `classDivisors`
/// that divides it.
inline int64_t getCommonDivisor(int64_t size) {
  if (size <= largestExactSize)
    return size;
  for (int64_t divisor : classDivisors)
    if (size % divisor == 0)
      return divisor;
  return 1;
}

/// A number that is the same for all sizes of a class, and different for
/// different classes.
inline int64_t getSizeClass(int64_t size) {
  if (size <= largestExactSize)
    return size;
  // The four lowest bits of a typical size are 0 here. 1 is added since sizes
  // from 65 on have the typical size 64, which is the number of another class.
  return getTypicalSize(size) + 1 + getCommonDivisor(size) / 64;
}

/// The length for which the version for a CPU is scheduled that serves `length`
/// queries or keys: 15, 31, 63 or 129. There are only four versions, since
/// tiles may be somewhat larger than a short length. The length is divisible by
/// no tile, because not all lengths that the version serves are.
inline int64_t getCpuLength(int64_t length) {
  for (int64_t tile : {16, 32, 64})
    if (length <= tile)
      return tile - 1;
  return 129;
}

/// A set of sizes: one class, or several classes that have the same version. A
/// program tests whether a size belongs to it.
struct SizeSet {
  /// All sizes are in the range from `first` to `last`, both included.
  int64_t first, last;
  /// Bit i is for element i of `classDivisors`. `divisors` has the common
  /// divisors of the sizes in the set, and `absent` has the divisors that are
  /// the common divisor of no size in the range.
  unsigned divisors, absent = 0;

  static constexpr unsigned allDivisors = 15;

  /// Adds some absent divisors to `divisors`, which adds no size to the set,
  /// such that few divisions test whether a size belongs to the set. Clears
  /// `absent`.
  void decideAbsent();
  bool operator==(const SizeSet &other) const {
    return first == other.first && last == other.last &&
           divisors == other.divisors && absent == other.absent;
  }
};

/// Calls `visit` for each class that has a size from `first` to `last`, in the
/// order of their ranges. `sizes` is the whole class, which may also have sizes
/// outside of these limits, and `size` is one of its sizes within them.
void forEachSizeClass(
    int64_t first, int64_t last,
    llvm::function_ref<void(SizeSet sizes, int64_t size)> visit);

} // namespace flash

#endif // FLASH_SCHEDULE_SIZECLASS_H
