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

/// How long a measurement may take.
struct Effort {
  /// The number of runs before the measurement on a GPU, and the smallest
  /// number of measured runs.
  unsigned warmUpRuns = 3, minRuns = 5;
  /// After so many seconds, the measurement ends as soon as it has `minRuns`
  /// runs.
  double seconds = 1;
  /// The measurement ends after the first two or three runs if none of them
  /// took less than so many seconds.
  double hopeless = std::numeric_limits<double>::infinity();
};

/// The outcome of a measurement.
struct Timing {
  unsigned runs = 0;
  /// The seconds that a run took.
  double median = 0, min = 0;
  /// Half of the distance between the quartiles, divided by the median.
  double spread = 0;
  /// The largest number of bytes that a run had allocated at a time, without
  /// inputs and results.
  int64_t peakBytes = 0;
};

/// Properties of a kernel and its launch that the device reports.
struct KernelUse {
  std::string name;
  /// The registers of a thread, and the bytes of its local memory, which has
  /// spilled registers and arrays.
  int registers = 0, localBytes = 0;
  /// The bytes of static and dynamic shared memory of a block.
  int64_t sharedBytes = 0;
  /// The number of blocks of the grid, and of threads of a block.
  int64_t blocks = 0, threads = 0;
  /// The number of blocks that one multiprocessor runs at the same time.
  int occupancy = 0;
};

/// The device on which a function runs.
struct Machine {
  /// The name of the processor or of the GPU.
  std::string name;
  /// The number of threads on the CPU; 0 on a GPU.
  unsigned threads = 0;
  /// The members from here on have values for GPUs only. The architecture, such
  /// as "sm_90", and the version of the driver.
  std::string architecture, driver;
  /// The clock rates and the power at the end of the last benchmark.
  std::optional<int> clockMHz, memoryClockMHz;
  std::optional<double> powerWatts;
  /// The peaks of the data sheet: FLOP/s of products of the type of the first
  /// result, and bytes per second. `peakKind` says for people how these
  /// products are computed.
  std::optional<double> peakFlops, peakBandwidth;
  std::string peakKind;
  /// The kernels of the last run, a launch each.
  std::vector<KernelUse> kernels;
};

/// A compiled function that is loaded on the device that runs it.
class Executor {
public:
  virtual ~Executor();

  /// Runs the function once. Returns an error if the run fails, for example
  /// because sizes do not fit each other or there is not enough memory.
  virtual llvm::Expected<std::vector<HostTensor>>
  run(llvm::ArrayRef<HostTensor> inputs) = 0;

  /// Sets whether runs are checked. A checked run fills the memory that it
  /// allocates with NaN. On a GPU it also fails if a kernel writes outside of a
  /// buffer or to an argument. If the GPU can map memory, addresses on one side
  /// of each buffer are unmapped, so that all accesses there fault; it is the
  /// start of buffers in one run and the end in the next.
  virtual void setChecked(bool checked) = 0;

  /// Measures the time of the function. Runs it as often as `effort` says.
  virtual llvm::Expected<Timing> benchmark(llvm::ArrayRef<HostTensor> inputs,
                                           const Effort &effort) = 0;

  virtual Machine getMachine() const = 0;

  /// The largest number of bytes that the last run had allocated at a time,
  /// without inputs and results.
  int64_t getPeakBytes() const { return peakBytes; }
  /// The tiles that the last run visited, if the function was compiled to count
  /// them.
  runtime::TileCounts getTileCounts() const { return tileCounts; }

protected:
  int64_t peakBytes = 0;
  runtime::TileCounts tileCounts = {0, 0};
};

} // namespace flash::run

#endif // FLASH_RUN_EXECUTOR_H
