//===- SizeClassTest.cpp - Which sizes share a version --------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Versions are chosen by the number of a size's class in Python, and by bounds
// and divisors in programs: both must say the same of each size.
//
//===----------------------------------------------------------------------===//

#include "Expect.h"

#include "flash/Schedule/SizeClass.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

using namespace flash;

static bool contains(const SizeSet &sizes, int64_t size) {
  if (size < sizes.first || size > sizes.last)
    return false;
  for (auto [i, divisor] : llvm::enumerate(classDivisors))
    if (size % divisor == 0)
      return sizes.divisors >> i & 1;
  return false;
}

static void testRange(int64_t first, int64_t last) {
  struct Class {
    SizeSet sizes;
    int64_t member;
  };
  llvm::SmallVector<Class> classes;
  forEachSizeClass(first, last, [&](SizeSet sizes, int64_t member) {
    classes.push_back({sizes, member});
  });
  llvm::DenseSet<int64_t> numbers;
  for (const Class &each : classes) {
    expect(each.member >= first && each.member <= last,
           llvm::Twine(each.member) + " is not in the range");
    expect(numbers.insert(getSizeClass(each.member)).second,
           llvm::Twine(each.member) + " is of a class that was there before");
    // Sizes in the range, and behind its ends.
    SizeSet decided = each.sizes;
    decided.decideAbsent();
    expect(decided.absent == 0, "absent divisors are left");
    for (int64_t size = std::max<int64_t>(first / 2, 1); size <= 2 * last;
         ++size) {
      bool isOfClass = getSizeClass(size) == getSizeClass(each.member);
      expect(contains(each.sizes, size) == isOfClass &&
                 contains(decided, size) == isOfClass,
             llvm::Twine(size) + (isOfClass ? " is" : " is not") +
                 " of the class of " + llvm::Twine(each.member));
    }
  }
  for (int64_t size = first; size <= last; ++size)
    expect(numbers.contains(getSizeClass(size)),
           llvm::Twine(size) + " is of no class");
}

int main() {
  testRange(1, 1);
  testRange(1, 1500);
  testRange(60, 70);
  testRange(64, 64);
  testRange(65, 65);
  testRange(79, 80);
  testRange(127, 129);
  testRange(255, 257);
  testRange(700, 701);
  testRange(4000, 5200);
  if (numFailures == 0)
    llvm::outs() << "size classes: ok\n";
  return numFailures != 0;
}
