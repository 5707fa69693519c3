//===- Compare.h - Comparison with the reference ----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_COMPARE_H
#define FLASH_RUN_COMPARE_H

#include "flash/Run/HostTensor.h"
#include <optional>
#include <vector>

namespace flash::run {

/// The largest error that a result may have against the reference.
struct Tolerance {
  /// The bound on sqrt(sum (x - r)^2 / sum r^2) over all elements x of the
  /// result and r of the reference.
  double relativeRms;

  /// If the root mean square of the reference is less than this, errors are
  /// relative to this number instead. It is the size of terms that cancel in
  /// the result, or the magnitude below which errors are absolute.
  double leastMagnitude = 0;

  /// If rows have bounds of their own: the bound of each row along the last
  /// dimension. `relativeRms` is then the largest one, and an error in a row
  /// with a smaller bound counts as if it were larger in proportion.
  std::vector<double> ofRows = {};

  /// `leastMagnitude` for log-sum-exps: a relative error of a sum is an
  /// absolute error of its logarithm, even if the logarithm is small.
  static constexpr double leastLogSumExp = 1;

  /// The largest bound of a row of the output of an attention. Rows are means
  /// of the same values with different weights, so they differ no more than
  /// that.
  static constexpr double largestOfRow = 2;

  /// The bound on the error of a single element, as a multiple of
  /// `relativeRms`. It is relative to |r| or to the root mean square of all r,
  /// whichever is larger. It is needed because one wrong element among millions
  /// hardly changes the RMS. It is large because errors of a correct kernel are
  /// spread: a row that averages few keys is larger than the tensor's RMS, up
  /// to about 10 times in causal attention, and the largest of 10^9 normally
  /// distributed errors is 6 times their RMS.
  static constexpr double elementFactor = 50;

  /// The tolerance for results of a type: 1e-6 for f32, 1e-3 for f16, 8e-3 for
  /// bf16, and 1e-12 for others. Scores of magnitude m, `scoreMagnitude`, bring
  /// an error of m units in the last digit into the exponential, so f32 has
  /// 1e-7 m if that is larger. A score is a sum of `headDim` products, and the
  /// bound of its rounding errors grows with their number, so the bound for f32
  /// grows with head dimensions above 256. Below the smallest normal number of
  /// a type, its numbers are as far apart as there, so that number is the least
  /// magnitude.
  static Tolerance get(DType dtype, double scoreMagnitude, int64_t headDim = 0);

  /// The tolerance for f32 if products round their operands to tf32. The
  /// mantissa of tf32 has 10 bits, as f16 has, so the bound is 1e-3, or 1e-4 m
  /// for scores of magnitude m if that is larger.
  static Tolerance getOfTf32(double scoreMagnitude);

  /// The tolerance for results of `dtype` if products multiply elements of
  /// f8E4M3FN. Probabilities are rounded to 3 bits of mantissa, so they have
  /// relative errors of up to 2^-4, and of 2^-4 / sqrt(3) in the root mean
  /// square where their mantissas are 1, which is the worst. These errors are
  /// independent, and so relative to a result in the same proportion. A row may
  /// have one key, so with few `rows` the root mean square may be up to 2^-4.
  /// Scores have relative errors e, which the exponential makes e m for scores
  /// of magnitude m: the reference rounds queries and keys to 16 bits, which
  /// kernels do not (two errors of up to 2^-9, or 2^-12 where `dtype` is f16),
  /// and tensor cores cut off their sums (2^-10). The exponentials of sums are
  /// not rounded, so a log-sum-exp has the error of scores, which is relative
  /// to the score that is usual (`Tolerance::leastMagnitude`), and of few rows
  /// up to three times e: their errors are independent.
  static Tolerance getOfE4M3(DType dtype, double scoreMagnitude, int64_t rows,
                             bool isLogSumExp);

  /// The tolerance if scores and probabilities are rounded to `dtype` before
  /// they are used. A rounded score of magnitude m has an error of m units in
  /// the last digit, so for f16 and bf16 the bound is m times the bound of a
  /// result if m is larger than 1.
  static Tolerance getOfRoundedScores(DType dtype, double scoreMagnitude);
};

/// The outcome of a comparison.
struct Comparison {
  bool ok = true;
  /// The largest absolute and relative error of an element, and the error of
  /// the tensor that `Tolerance::relativeRms` bounds.
  double maxAbs = 0, maxRel = 0, rms = 0;
  /// `Tolerance::relativeRms`.
  double tolerance = 0;

  struct Element {
    llvm::SmallVector<int64_t, 4> index;
    double got, expected;
  };
  /// The first element whose error is too large; none if `ok`.
  std::optional<Element> firstBad;
};

/// The root mean square of the finite elements; 0 if there are none.
double getMagnitude(const HostTensor &tensor);

/// Compares a result with the reference, which must have the same shape. The
/// result must have a NaN where the reference has one, and the same infinities;
/// these elements do not count in maxima and sums. A value of the reference
/// that is too large for the type of the result counts as infinite.
Comparison compare(const HostTensor &result, const HostTensor &reference,
                   const Tolerance &tolerance);

} // namespace flash::run

#endif // FLASH_RUN_COMPARE_H
