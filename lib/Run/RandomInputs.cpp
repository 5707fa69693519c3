//===- RandomInputs.cpp - Numbers for a run without files -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/RandomInputs.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Parallel.h"

#include <cmath>
#include <numeric>

using namespace flash::run;

// Contracting a multiplication and an addition into one rounding would change
// the last bit from machine to machine.
#pragma STDC FP_CONTRACT OFF

namespace {

/// SplitMix64 (Steele, Lea and Flood, 2014): a counter and a mixing function,
/// so streams are a matter of the starting point.
class Generator {
public:
  Generator(uint64_t seed, uint64_t stream)
      : state(mix(mix(seed) + stream * 0x9e3779b97f4a7c15)) {}

  uint64_t next() { return mix(state += 0x9e3779b97f4a7c15); }
  /// Leaves out numbers.
  void skip(uint64_t count) { state += count * 0x9e3779b97f4a7c15; }

  /// A number from (0, 1), on a grid that never meets the ends.
  double nextUnit() { return ((next() >> 12) + 0.5) * 0x1p-52; }

private:
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  uint64_t state;
};

constexpr double pi = 3.14159265358979323846;
constexpr double ln2 = 0.69314718055994530942;

// C libraries differ in the last bit of logarithms and sines. These series use
// IEEE additions, multiplications and divisions only.

/// The natural logarithm of x > 0.
double logarithm(double x) {
  int exponent;
  double m = std::frexp(x, &exponent); // exact; m in [1/2, 1)
  if (m < 0.70710678118654752440) {
    m *= 2;
    --exponent;
  }
  double t = (m - 1) / (m + 1), square = t * t, sum = 0;
  for (int k = 21; k >= 1; k -= 2)
    sum = sum * square + 1.0 / k;
  return 2 * t * sum + exponent * ln2;
}

/// The sine and cosine of 2 pi x, for x in [0, 1).
std::pair<double, double> sineAndCosine(double x) {
  int quadrant = static_cast<int>(std::floor(4 * x + 0.5));
  double a = (x - 0.25 * quadrant) * (2 * pi), square = a * a;
  double sine = 1, cosine = 1;
  for (int k = 16; k >= 2; k -= 2) {
    sine = 1 - sine * square / (k * (k + 1));
    cosine = 1 - cosine * square / (k * (k - 1));
  }
  sine *= a;
  switch (quadrant & 3) {
  case 0:
    return {sine, cosine};
  case 1:
    return {cosine, -sine};
  case 2:
    return {-sine, -cosine};
  default:
    return {-cosine, sine};
  }
}

} // namespace

void flash::run::fillNormal(HostTensor &tensor, uint64_t seed,
                            uint64_t stream) {
  constexpr int64_t chunk = 1 << 16;
  int64_t size = tensor.getSpec().getNumElements();
  // Box and Muller's transform makes two numbers out of two, so chunks can
  // start anywhere.
  llvm::parallelFor(0, llvm::divideCeil(size, chunk), [&](size_t index) {
    Generator generator(seed, stream);
    int64_t begin = index * chunk, end = std::min(begin + chunk, size);
    generator.skip(begin);
    for (int64_t i = begin; i < end; i += 2) {
      double radius = std::sqrt(-2 * logarithm(generator.nextUnit()));
      auto [sine, cosine] = sineAndCosine(generator.nextUnit());
      tensor.set(i, radius * cosine);
      if (i + 1 < end)
        tensor.set(i + 1, radius * sine);
    }
  });
}

void flash::run::fillUniform(HostTensor &tensor, int64_t lo, int64_t hi,
                             uint64_t seed, uint64_t stream) {
  Generator generator(seed, stream);
  double count = static_cast<double>(hi) - static_cast<double>(lo) + 1;
  for (int64_t i = 0, e = tensor.getSpec().getNumElements(); i != e; ++i)
    tensor.set(i, lo + std::floor(generator.nextUnit() * count));
}

void flash::run::fillScales(HostTensor &tensor, double unit, uint64_t seed,
                            uint64_t stream) {
  Generator generator(seed, stream);
  for (int64_t i = 0, e = tensor.getSpec().getNumElements(); i != e; ++i)
    tensor.set(i, unit * (0.5 + generator.nextUnit()));
}

void flash::run::fillOffsets(HostTensor &tensor, int64_t rows, uint64_t seed) {
  int64_t count = tensor.getSpec().getNumElements();
  Generator generator(seed, count);
  std::vector<int64_t> offsets = {0};
  for (int64_t i = 2; i < count; ++i)
    offsets.push_back(
        static_cast<int64_t>(generator.nextUnit() * (rows + 1.0)));
  offsets.push_back(rows);
  std::sort(offsets.begin(), offsets.end());
  for (int64_t i = 0; i != count; ++i)
    tensor.set(i, offsets[i]);
}

std::vector<int64_t> flash::run::permute(int64_t count, uint64_t seed,
                                         uint64_t stream) {
  Generator generator(seed, stream);
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = 0; i < count; ++i)
    std::swap(
        order[i],
        order[i + static_cast<int64_t>(generator.nextUnit() * (count - i))]);
  return order;
}

void flash::run::fillBlocks(HostTensor &list, HostTensor &counts,
                            int64_t numBlocks, uint64_t seed, uint64_t stream) {
  Generator generator(seed, stream);
  auto upTo = [&](int64_t most) {
    return static_cast<int64_t>(generator.nextUnit() * (most + 1));
  };
  int64_t length = list.getSpec().shape.back();
  std::vector<int64_t> blocks(numBlocks);
  for (int64_t row = 0, e = counts.getSpec().getNumElements() / 2; row != e;
       ++row) {
    int64_t end = upTo(std::min(length, numBlocks));
    counts.set(2 * row, upTo(end));
    counts.set(2 * row + 1, end);
    std::iota(blocks.begin(), blocks.end(), 0);
    for (int64_t i = 0; i != length; ++i) {
      if (i < end)
        std::swap(blocks[i], blocks[i + upTo(numBlocks - 1 - i)]);
      list.set(row * length + i, i < end ? blocks[i] : -1);
    }
  }
}

bool flash::run::transposeBlocks(const HostTensor &list,
                                 const HostTensor &counts, HostTensor &toList,
                                 HostTensor &toCounts) {
  const auto &from = list.getSpec().shape, &to = toList.getSpec().shape;
  if (from[0] != to[0] || from[1] != to[1])
    return false;
  for (int64_t i = 0, e = toList.getSpec().getNumElements(); i != e; ++i)
    toList.set(i, -1);
  for (int64_t i = 0, e = toCounts.getSpec().getNumElements(); i != e; ++i)
    toCounts.set(i, 0);
  // Partial blocks come first in both.
  for (bool areFull : {false, true})
    for (int64_t row = 0, e = counts.getSpec().getNumElements() / 2; row != e;
         ++row) {
      int64_t parts = counts.get(2 * row), end = counts.get(2 * row + 1);
      for (int64_t i = areFull ? parts : 0; i < (areFull ? end : parts); ++i) {
        int64_t block = list.get(row * from[3] + i);
        int64_t toRow = row / from[2] * to[2] + block;
        int64_t place = toCounts.get(2 * toRow + 1);
        if (place == to[3])
          return false;
        toList.set(toRow * to[3] + place, row % from[2]);
        toCounts.set(2 * toRow + 1, place + 1);
        if (!areFull)
          toCounts.set(2 * toRow, place + 1);
      }
    }
  return true;
}
