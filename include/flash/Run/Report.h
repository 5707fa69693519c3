//===- Report.h - What a run has shown --------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_REPORT_H
#define FLASH_RUN_REPORT_H

#include "flash/Run/Benchmark.h"
#include "flash/Run/Compare.h"
#include "flash/Run/Kernel.h"

namespace flash::run {

/// Everything a run has shown, for people and for programs.
struct Report {
  std::string file, function, target, device;
  unsigned threads = 0;
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

    bool isOk() const;
    /// The result that is furthest from the reference in terms of its
    /// tolerance; a failed one before any that is ok.
    size_t getWorst() const;
  };
  std::optional<Check> check;

  std::optional<Timing> bench, baseline;
  /// Why there is no baseline although one was wanted.
  std::string baselineSkipped;
  std::optional<double> flops;

  /// Bytes of all inputs and results.
  int64_t getTraffic() const;
};

void printTiles(const Report &report, llvm::raw_ostream &os);
void printCheck(const Report &report, llvm::raw_ostream &os);
void printBench(const Report &report, llvm::raw_ostream &os);

/// A JSON object; documented in docs/flash-run.md.
void printJson(const Report &report, llvm::raw_ostream &os);

} // namespace flash::run

#endif // FLASH_RUN_REPORT_H
