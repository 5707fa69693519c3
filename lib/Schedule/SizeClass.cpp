//===- SizeClass.cpp - Sizes that share a version -------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Schedule/SizeClass.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <optional>

using namespace flash;

/// A size in a range whose common divisor is `divisor`.
static std::optional<int64_t> findSize(int64_t first, int64_t last,
                                       int64_t divisor) {
  // Among two multiples in a row, one at most is a multiple of a larger
  // divisor.
  int64_t size = llvm::alignTo(first, divisor);
  for (int64_t candidate : {size, size + divisor})
    if (candidate <= last && getCommonDivisor(candidate) == divisor)
      return candidate;
  return std::nullopt;
}

void SizeSet::decideAbsent() {
  // One is decided as the next larger that is there; in front of the largest
  // there is, as that one. So "divisible by 64" stays that, whatever is there.
  size_t first = 0;
  while (absent >> first & 1)
    ++first;
  bool isIn = divisors >> first & 1;
  for (size_t i = 0; i < std::size(classDivisors); ++i) {
    if (!(absent >> i & 1))
      isIn = divisors >> i & 1;
    else if (isIn)
      divisors |= 1u << i;
  }
  absent = 0;
}

void flash::forEachSizeClass(
    int64_t first, int64_t last,
    llvm::function_ref<void(SizeSet sizes, int64_t size)> visit) {
  int64_t size = first;
  for (; size <= std::min(last, largestExactSize); ++size)
    visit({size, size, SizeSet::allDivisors}, size);
  while (size <= last) {
    SizeSet sizes = {getTypicalSize(size), size, /*divisors=*/0};
    // The highest bit of those that are dropped.
    int64_t step = int64_t(1) << llvm::Log2_64(sizes.first) >> 2;
    sizes.last = sizes.first + step - 1;
    sizes.first = std::max(sizes.first, largestExactSize + 1);
    for (auto [i, divisor] : llvm::enumerate(classDivisors))
      if (!findSize(sizes.first, sizes.last, divisor))
        sizes.absent |= 1u << i;
    for (auto [i, divisor] : llvm::enumerate(classDivisors))
      if (auto found = findSize(size, std::min(last, sizes.last), divisor)) {
        sizes.divisors = 1u << i;
        visit(sizes, *found);
      }
    size = sizes.last + 1;
  }
}
