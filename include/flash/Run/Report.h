//===- Report.h - What a run has shown --------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_REPORT_H
#define FLASH_RUN_REPORT_H

#include "flash/Run/Compare.h"
#include "flash/Run/Kernel.h"
#include "llvm/Support/JSON.h"

namespace flash::run {

/// Everything a run has shown, for people and for programs.
struct Report {
  std::string file, function, target;
  Machine machine;
  uint64_t seed = 0;
  std::vector<TensorSpec> inputs, results;
  StageTimes compileTimes;
  int64_t peakBytes = 0;
  std::optional<runtime::TileCounts> tiles;

  struct Check {
    /// One for each result.
    std::vector<Comparison> results;
    /// Whether a second run gave the same bits.
    bool repeatable = true;
    /// Of results that are wrong: why they may be although the program is
    /// right.
    std::string hint;

    bool isOk() const;
    /// The result that is furthest from the reference in terms of its
    /// tolerance; a failed one before any that is ok.
    size_t getWorst() const;
  };
  std::optional<Check> check;

  std::optional<Timing> bench;

  /// The naive program, where the other ran.
  struct Baseline {
    std::optional<Check> check;
    std::optional<Timing> timing;
    std::vector<KernelUse> kernels;
    /// Why it was not timed.
    std::string skipped;
  };
  std::optional<Baseline> baseline;

  /// What a search for a schedule found.
  struct Tuned {
    /// As values of `--schedule`.
    std::string schedule, defaultSchedule;
    /// Of the comparison at the end, in seconds.
    double median = 0, defaultMedian = 0;
    /// Schedules that were tried, and of these not compiled or not launched.
    unsigned tried = 0, failed = 0;
    /// Why the first of these was not; empty if all were.
    std::string failure;
    /// That the search took.
    double seconds = 0;
  };
  std::optional<Tuned> tuned;

  /// How much longer the naive program takes, if both were timed.
  std::optional<double> getSpeedUp() const;
  std::optional<double> flops;
  /// What the naive program would hold beyond inputs and results.
  std::optional<double> scoreBytes;

  /// Bytes of all inputs and results.
  int64_t getTraffic() const;
  /// FLOP for each of these bytes; only with `flops`.
  double getIntensity() const { return *flops / getTraffic(); }
  /// The FLOP/s that the machine's peaks allow at this intensity.
  std::optional<double> getRoofline() const;
};

void printTiles(const Report &report, llvm::raw_ostream &os);
void printCheck(const Report &report, llvm::raw_ostream &os);
void printBench(const Report &report, llvm::raw_ostream &os);

/// Documented in docs/flash-run.md.
llvm::json::Object toJson(const Report &report);

} // namespace flash::run

#endif // FLASH_RUN_REPORT_H
