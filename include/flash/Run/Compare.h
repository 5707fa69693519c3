//===- Compare.h - Comparison with the reference ----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_COMPARE_H
#define FLASH_RUN_COMPARE_H

#include "flash/Run/HostTensor.h"
#include <vector>

namespace flash::run {

/// How far a result may be from the reference.
struct Tolerance {
  /// Bound on sqrt(sum (x - r)^2 / sum r^2) over the whole tensor.
  double relativeRms;

  /// Errors are relative to this where all results together are smaller: the
  /// size of what cancels in them, or below which errors are absolute.
  double leastMagnitude = 0;

  /// The bounds of rows along the last dimension, each at most `relativeRms`,
  /// if rows have bounds of their own. Errors then count as if they were larger
  /// in proportion.
  std::vector<double> ofRows = {};

  /// That of log-sum-exps: what is relative in a sum is absolute in its
  /// logarithm, however small that is.
  static constexpr double leastLogSumExp = 1;

  /// The largest bound of a row of an attention: means of the same values with
  /// other weights are no further apart.
  static constexpr double largestOfRow = 2;

  /// A single element's error is bounded by this many times `relativeRms`,
  /// relative to the larger of |r| and the root mean square of all r. The RMS
  /// bound alone would let one wrong element hide among millions. Errors of a
  /// correct kernel spread: a row that averages few keys is larger than the
  /// tensor's RMS, up to some 10 times in causal attention, and the largest of
  /// 10^9 normal errors is 6 times their RMS.
  static constexpr double elementFactor = 50;

  /// The bound for results of a type: 1e-6 for f32, 1e-3 for f16, 8e-3 for
  /// bf16. Scores of magnitude m carry an error of m units in the last place
  /// into the exponential, so f32 gets 1e-7 m where that is larger. The bound
  /// of the rounding errors of a score, a sum of `headDim` products, grows with
  /// their number: above 256, so does the bound of f32. Below its smallest
  /// normal number, the numbers of a type are as far apart as there, which is
  /// its least magnitude.
  static Tolerance get(DType dtype, double scoreMagnitude, int64_t headDim = 0);

  /// The bound for f32 where products round their operands to tf32: its
  /// mantissa has 10 bits, as that of f16, so 1e-3, or 1e-4 m where that is
  /// larger.
  static Tolerance getOfTf32(double scoreMagnitude);

  /// The bound where scores and probabilities are rounded to `dtype` on the
  /// way: a rounded score of magnitude m has an error of m units, so that m
  /// times the bound of a result is allowed where m is larger than 1.
  static Tolerance getOfRoundedScores(DType dtype, double scoreMagnitude);
};

/// The outcome of a comparison.
struct Comparison {
  bool ok = true;
  double maxAbs = 0, maxRel = 0, rms = 0;
  double tolerance = 0;

  struct Element {
    llvm::SmallVector<int64_t, 4> index;
    double got, expected;
  };
  /// Set unless ok.
  std::optional<Element> firstBad;
};

/// The root mean square of the finite elements, 0 if there are none.
double getMagnitude(const HostTensor &tensor);

/// Compares a result with the reference, which has the same shape. NaN must
/// meet NaN and an infinity the same infinity; neither enters the maxima and
/// sums. A reference too large for the result's type counts as infinite.
Comparison compare(const HostTensor &result, const HostTensor &reference,
                   const Tolerance &tolerance);

} // namespace flash::run

#endif // FLASH_RUN_COMPARE_H
