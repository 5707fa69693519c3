//===- Check.h - Whether results are right ----------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_CHECK_H
#define FLASH_RUN_CHECK_H

#include "flash/Run/Options.h"
#include "flash/Run/Report.h"
#include "flash/Run/Session.h"
#include <map>

namespace flash::run {

/// Two runs on the same inputs.
struct CheckedRuns {
  /// Of the last one.
  std::vector<HostTensor> results;
  /// Whether both gave the same bits.
  bool repeatable = true;
};

/// Runs a function twice, with what the executor can find beside wrong results.
llvm::Expected<CheckedRuns> runChecked(Executor &executor,
                                       llvm::ArrayRef<HostTensor> inputs);

/// What is known of a result that is a gradient.
struct Gradient {
  /// It is a sum of products of probabilities and of what the output was
  /// rounded to; each of them has the error of a result.
  static constexpr double toleranceFactor = 2;
  /// The type of query, key and value.
  DType ofOperands = DType::F32;
  /// See Tolerance.
  double leastMagnitude = 0;
};

/// What results are compared with.
struct Expectation {
  std::vector<HostTensor> results;
  /// By the number of the result.
  std::map<unsigned, Gradient> gradients;
  llvm::SmallVector<unsigned> logSumExps;
  /// A lower bound of the largest |score| that is the maximum of its row.
  double scoreMagnitude = 0;
  /// Such a bound for each row of a result that is the output of an attention,
  /// by the result's number.
  std::map<unsigned, std::vector<double>> rowMagnitudes;
  /// The rows that are compared of a result, by its number, where others are
  /// undefined.
  std::map<unsigned, llvm::SmallVector<std::pair<int64_t, int64_t>>>
      rowsOfSequences;
  /// The widest rows of queries and keys; 0 without an attention.
  int64_t headDim = 0;
  /// Whether products of f32 may have been rounded to tf32.
  bool hasTf32Products = false;
  /// Why a program that is right may have other results; empty if nothing is
  /// known.
  std::string hint;
};

/// Whether a kernel rounds operands of f32 to tf32. The CPU does not.
bool hasTf32Products(Kernel &kernel);

/// Runs the fp64 reference of a program with `numResults` results.
llvm::Expected<Expectation>
runReference(Session &session, const Program &program, const Options &options,
             llvm::ArrayRef<HostTensor> inputs, size_t numResults);

/// Compares runs of a program with the reference. The naive program may round
/// the scores to the type of the inputs, which its tolerance allows for.
llvm::Expected<Report::Check> checkRuns(const CheckedRuns &runs,
                                        const Expectation &expected,
                                        Variant variant,
                                        llvm::ArrayRef<HostTensor> inputs);

} // namespace flash::run

#endif // FLASH_RUN_CHECK_H
