//===- Report.h - The report of a run ---------------------------*- C++ -*-===//
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

/// All results of a run, for people and for programs.
struct Report {
  std::string file, function, target;
  Machine machine;
  uint64_t seed = 0;
  std::vector<TensorSpec> inputs, results;
  StageTimes compileTimes;
  /// The largest number of bytes that the run had allocated at a time, without
  /// inputs and results.
  int64_t peakBytes = 0;
  /// The tiles that were visited, if they were counted.
  std::optional<runtime::TileCounts> tiles;

  /// The outcome of a check.
  struct Check {
    /// The comparison of each result with the reference.
    std::vector<Comparison> results;
    /// Whether two runs had the same bits as results.
    bool repeatable = true;
    /// If a result is wrong: a reason for which a correct program may have
    /// other results; empty if no reason is known.
    std::string hint;

    /// Whether all results are right and the runs had the same bits.
    bool isOk() const;
    /// The number of the result with the largest error in relation to its
    /// tolerance. A wrong result comes before all right ones.
    size_t getWorst() const;
  };
  std::optional<Check> check;

  std::optional<Timing> bench;

  /// The naive program, on the device on which the program ran.
  struct Baseline {
    std::optional<Check> check;
    std::optional<Timing> timing;
    std::vector<KernelUse> kernels;
    /// Why it was not timed; empty if it was.
    std::string skipped;
  };
  std::optional<Baseline> baseline;

  /// The outcome of a search for the fastest schedule.
  struct Tuned {
    /// The fastest schedule and the model's, as values of `--schedule`. They
    /// are equal if no schedule is faster by more than the noise of the
    /// measurement.
    std::string schedule, defaultSchedule;
    /// The seconds that a run takes with each of them, in the median, as
    /// compared at the end.
    double median = 0, defaultMedian = 0;
    /// The number of schedules that were tried, and how many of them could not
    /// be compiled or launched.
    unsigned tried = 0, failed = 0;
    /// Why the first one of these failed; empty if none did.
    std::string failure;
    /// The seconds that the search took.
    double seconds = 0;
  };
  std::optional<Tuned> tuned;

  /// The time of the naive program divided by the time of the program, if both
  /// were measured.
  std::optional<double> getSpeedUp() const;
  /// The floating-point operations of a run (`countFlops`).
  std::optional<double> flops;
  /// The bytes of the scores that a program stores which does not compute
  /// attention in tiles (`countScoreBytes`).
  std::optional<double> scoreBytes;

  /// The bytes of all inputs and results.
  int64_t getTraffic() const;
  /// The arithmetic intensity: the number of FLOP for each byte of
  /// `getTraffic`. `flops` must have a value.
  double getIntensity() const { return *flops / getTraffic(); }
  /// The roofline: the FLOP/s that the peaks of the machine allow at this
  /// intensity; nothing if a peak or `flops` is not known.
  std::optional<double> getRoofline() const;
};

/// Print the part of the report that the name says.
void printTiles(const Report &report, llvm::raw_ostream &os);
void printCheck(const Report &report, llvm::raw_ostream &os);
void printBench(const Report &report, llvm::raw_ostream &os);

/// The report as JSON, which docs/flash-run.md documents.
llvm::json::Object toJson(const Report &report);

} // namespace flash::run

#endif // FLASH_RUN_REPORT_H
