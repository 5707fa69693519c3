//===- Executor.h - Running a compiled function -----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_EXECUTOR_H
#define FLASH_RUN_EXECUTOR_H

#include "flash/Run/HostTensor.h"
#include "flash/Runtime/TileCounts.h"
#include <limits>

namespace flash::run {

/// How much a measurement may cost.
struct Effort {
  unsigned warmUpRuns = 3, minRuns = 5;
  /// Ends the measurement after `minRuns`.
  double seconds = 1;
  /// Ends it as soon as no run of the first few was faster.
  double hopeless = std::numeric_limits<double>::infinity();
};

/// What was measured.
struct Timing {
  unsigned runs = 0;
  double median = 0, min = 0; // seconds
  /// Half of the distance between the quartiles, relative to the median.
  double spread = 0;
  int64_t peakBytes = 0;
};

/// What the device says about a kernel and its launch.
struct KernelUse {
  std::string name;
  /// Registers of a thread, and its bytes of local memory, which are spilled
  /// registers and arrays.
  int registers = 0, localBytes = 0;
  int64_t sharedBytes = 0;
  int64_t blocks = 0, threads = 0;
  /// Blocks on one multiprocessor at a time.
  int occupancy = 0;
};

/// Where a function runs.
struct Machine {
  /// The processor or the GPU.
  std::string name;
  /// Of the CPU; 0 on a GPU.
  unsigned threads = 0;
  /// The rest is of GPUs: "sm_90", and the driver's version.
  std::string architecture, driver;
  /// While the last benchmark ran.
  std::optional<int> clockMHz, memoryClockMHz;
  std::optional<double> powerWatts;
  /// By the data sheet: FLOP/s of products of the results' type, and bytes per
  /// second. How the products are computed, for people.
  std::optional<double> peakFlops, peakBandwidth;
  std::string peakKind;
  /// Of the last run.
  std::vector<KernelUse> kernels;
};

/// A compiled function, loaded on the device that runs it.
class Executor {
public:
  virtual ~Executor();

  /// Runs the function once. A failure at run time, such as sizes that
  /// disagree or an exhausted memory, comes back as an error.
  virtual llvm::Expected<std::vector<HostTensor>>
  run(llvm::ArrayRef<HostTensor> inputs) = 0;

  /// Whether runs fill the memory they allocate with NaN and look for accesses
  /// outside of buffers, where the target can: every second run at the ends of
  /// buffers that the others leave out.
  virtual void setChecked(bool checked) = 0;

  /// Runs the function as often as a measurement needs.
  virtual llvm::Expected<Timing> benchmark(llvm::ArrayRef<HostTensor> inputs,
                                           const Effort &effort) = 0;

  virtual Machine getMachine() const = 0;

  /// Most bytes the last run held at a time beyond inputs and results.
  int64_t getPeakBytes() const { return peakBytes; }
  /// Tiles the last run visited, if the function was compiled to count them.
  runtime::TileCounts getTileCounts() const { return tileCounts; }

protected:
  int64_t peakBytes = 0;
  runtime::TileCounts tileCounts = {0, 0};
};

} // namespace flash::run

#endif // FLASH_RUN_EXECUTOR_H
