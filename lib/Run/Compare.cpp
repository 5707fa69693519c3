//===- Compare.cpp - Comparison with the reference ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Compare.h"

#include "flash/Run/Float16.h"
#include <cmath>

using namespace flash::run;

Tolerance Tolerance::get(DType dtype, double scoreMagnitude, int64_t headDim) {
  // At 256 columns half of the bound of f32 is measured.
  constexpr double widestUsual = 256;
  switch (dtype) {
  case DType::F16:
    return {1e-3, /*leastMagnitude=*/0x1p-14};
  case DType::BF16:
    return {8e-3, /*leastMagnitude=*/0x1p-126};
  case DType::F32:
    return {std::max(1e-6 * std::max(1.0, headDim / widestUsual),
                     1e-7 * scoreMagnitude),
            /*leastMagnitude=*/0x1p-126};
  default:
    return {1e-12};
  }
}

Tolerance Tolerance::getOfTf32(double scoreMagnitude) {
  Tolerance tolerance = get(DType::F32, scoreMagnitude);
  tolerance.relativeRms = std::max(1e-3, 1e-4 * scoreMagnitude);
  return tolerance;
}

Tolerance Tolerance::getOfE4M3(DType dtype, double scoreMagnitude, int64_t rows,
                               bool isLogSumExp) {
  Tolerance tolerance = get(dtype, scoreMagnitude);
  double ofElements = dtype == DType::F16 ? 0x1p-12 : 0x1p-9,
         ofScores = ofElements * std::sqrt(2.0 / 3) + 0x1p-10,
         perRow = 1 / std::sqrt(std::max<int64_t>(rows, 1));
  if (isLogSumExp) {
    // Queries share a key, and keys a query: up to 64 rows count as one.
    tolerance.relativeRms = ofScores * (1 + 2 * std::min(1.0, 8 * perRow));
    return tolerance;
  }
  double mean = 1 / std::sqrt(3.0), most = mean + (1 - mean) * perRow;
  tolerance.relativeRms = 0x1p-4 * most + ofScores * scoreMagnitude;
  return tolerance;
}

Tolerance Tolerance::getOfRoundedScores(DType dtype, double scoreMagnitude) {
  Tolerance tolerance = get(dtype, scoreMagnitude);
  if (dtype == DType::F16 || dtype == DType::BF16)
    tolerance.relativeRms *= std::max(1.0, scoreMagnitude);
  return tolerance;
}

/// The value rounded to a type, which may overflow to infinity.
static double roundTo(double value, DType dtype) {
  switch (dtype) {
  case DType::F16:
    return decodeF16(encodeF16(value));
  case DType::BF16:
    return decodeBF16(encodeBF16(value));
  case DType::F32:
    return static_cast<float>(value);
  default:
    return value;
  }
}

static Comparison::Element makeElement(const HostTensor &result,
                                       const HostTensor &reference,
                                       int64_t element) {
  Comparison::Element bad;
  bad.got = result.get(element);
  bad.expected = reference.get(element);
  llvm::ArrayRef<int64_t> shape = result.getSpec().shape;
  bad.index.resize(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    bad.index[d] = element % shape[d];
    element /= shape[d];
  }
  return bad;
}

/// The row-major number of the first element for which `isBad` holds.
template <typename Predicate>
static std::optional<int64_t> findFirst(const HostTensor &result,
                                        const HostTensor &reference,
                                        Predicate isBad) {
  for (int64_t i = 0, e = result.getSpec().getNumElements(); i != e; ++i)
    if (isBad(i, result.get(i), reference.get(i)))
      return i;
  return std::nullopt;
}

double flash::run::getMagnitude(const HostTensor &tensor) {
  double squares = 0;
  int64_t count = 0;
  for (int64_t i = 0, e = tensor.getSpec().getNumElements(); i != e; ++i)
    if (double value = tensor.get(i); std::isfinite(value)) {
      squares += value * value;
      ++count;
    }
  return count ? std::sqrt(squares / count) : 0;
}

Comparison flash::run::compare(const HostTensor &result,
                               const HostTensor &reference,
                               const Tolerance &tolerance) {
  DType dtype = result.getSpec().dtype;
  Comparison report;
  report.tolerance = tolerance.relativeRms;

  // A pair with NaN or infinity either matches exactly or not at all.
  auto isSpecial = [&](double x, double r) {
    return !std::isfinite(x) || !std::isfinite(roundTo(r, dtype));
  };
  auto matches = [&](double x, double r) {
    r = roundTo(r, dtype);
    return std::isnan(x) ? std::isnan(r) : x == r;
  };

  int64_t rowSize = tolerance.ofRows.empty()
                        ? 1
                        : result.getSpec().getNumElements() /
                              static_cast<int64_t>(tolerance.ofRows.size());
  auto boundOf = [&](int64_t element) {
    return tolerance.ofRows.empty() ? tolerance.relativeRms
                                    : tolerance.ofRows[element / rowSize];
  };

  double errorSquares = 0, shareSquares = 0, squares = 0;
  int64_t count = 0;
  for (int64_t i = 0, e = result.getSpec().getNumElements(); i != e; ++i) {
    double x = result.get(i), r = reference.get(i);
    if (isSpecial(x, r))
      continue;
    double error = std::fabs(x - r);
    errorSquares += error * error;
    double share = error / boundOf(i);
    shareSquares += share * share;
    squares += r * r;
    report.maxAbs = std::max(report.maxAbs, error);
    if (error > 0)
      report.maxRel = std::max(report.maxRel, error / std::fabs(r));
    ++count;
  }
  squares = std::max(squares, count * tolerance.leastMagnitude *
                                  tolerance.leastMagnitude);
  if (errorSquares > 0)
    report.rms = std::sqrt(errorSquares / squares); // infinite for r = 0
  double magnitude = count ? std::sqrt(squares / count) : 0;

  auto bad = findFirst(result, reference, [&](int64_t i, double x, double r) {
    if (isSpecial(x, r))
      return !matches(x, r);
    return !(std::fabs(x - r) <= tolerance.elementFactor * boundOf(i) *
                                     std::max(magnitude, std::fabs(r)));
  });
  bool isFar = shareSquares > squares;
  // Where every element is within its own bound but all of them together are
  // not, some element must exceed the mean.
  if (!bad && isFar)
    bad = findFirst(result, reference, [&](int64_t i, double x, double r) {
      return !isSpecial(x, r) && std::fabs(x - r) > boundOf(i) * magnitude;
    });
  report.ok = !bad && !isFar;
  if (bad)
    report.firstBad = makeElement(result, reference, *bad);
  return report;
}
