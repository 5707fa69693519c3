//===- Check.h - Checks of results ------------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_CHECK_H
#define FLASH_RUN_CHECK_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Run/Options.h"
#include "flash/Run/Report.h"
#include "flash/Run/Session.h"
#include <map>

namespace flash::run {

/// The outcome of two runs on the same inputs.
struct CheckedRuns {
  /// The results of the second run.
  std::vector<HostTensor> results;
  /// Whether both runs had the same bits as results.
  bool repeatable = true;
};

/// Runs a function twice in checked mode (`Executor::setChecked`). Fails if a
/// run fails.
llvm::Expected<CheckedRuns> runChecked(Executor &executor,
                                       llvm::ArrayRef<HostTensor> inputs);

/// Properties of a result that is a gradient, on which its tolerance depends.
struct Gradient {
  /// The tolerance of a gradient is this many times the tolerance of another
  /// result. A gradient is a sum of products of probabilities and of the
  /// rounded output; each of both has the error of a result.
  static constexpr double toleranceFactor = 2;
  /// The element type of query, key and value.
  DType ofOperands = DType::F32;
  /// A value for `Tolerance::leastMagnitude`.
  double leastMagnitude = 0;
};

/// What results are compared with: the results of the reference, and properties
/// on which tolerances depend.
struct Expectation {
  /// The results of the reference. The results of the program come first.
  std::vector<HostTensor> results;
  /// The results that are gradients, by their number.
  std::map<unsigned, Gradient> gradients;
  /// The numbers of the results that are log-sum-exps.
  llvm::SmallVector<unsigned> logSumExps;
  /// The largest magnitude of a maximum of a row of scores; a lower bound,
  /// computed from log-sum-exps.
  double scoreMagnitude = 0;
  /// The size of a usual score of attention with precision(fp8), whose queries
  /// and keys are arguments: the error of such a score is relative to it, also
  /// where its products cancel. 0 if there is none.
  double usualScore = 0;
  /// For each result that is the output of an attention, by its number: such a
  /// bound for each row.
  std::map<unsigned, std::vector<double>> rowMagnitudes;
  /// For results with undefined rows, by their number: the rows that are
  /// compared, as ranges from a row to before another one.
  std::map<unsigned, llvm::SmallVector<std::pair<int64_t, int64_t>>>
      rowsOfSequences;
  /// The largest head dimension of an attention; 0 if there is none.
  int64_t headDim = 0;
  /// What operands of products may have been rounded to.
  std::optional<Precision> precision;
  /// A message that says why a correct program may have other results; empty if
  /// no reason is known.
  std::string hint;
};

/// What a kernel rounds operands of products to. Nothing on the CPU.
std::optional<Precision> getPrecision(Kernel &kernel);

/// Compiles and runs the fp64 reference of a program that has `numResults`
/// results.
llvm::Expected<Expectation>
runReference(Session &session, const Program &program, const Options &options,
             llvm::ArrayRef<HostTensor> inputs, size_t numResults);

/// Compares the results of a program with the reference. The naive program may
/// round scores to the type of the inputs, for which its tolerance is larger.
/// Fails if a result has another shape than in the reference.
llvm::Expected<Report::Check> checkRuns(const CheckedRuns &runs,
                                        const Expectation &expected,
                                        Variant variant,
                                        llvm::ArrayRef<HostTensor> inputs);

} // namespace flash::run

#endif // FLASH_RUN_CHECK_H
