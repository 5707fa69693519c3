//===- Measure.h - Timing work on a device ----------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_CUDA_MEASURE_H
#define FLASH_RUNTIME_CUDA_MEASURE_H

#include "flash/Runtime/Cuda/DeviceBuffer.h"
#include "flash/Runtime/Cuda/Stream.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <limits>
#include <vector>

namespace flash::cuda {

/// Empties the L2 cache by writing twice its size.
class L2Flush {
public:
  static llvm::Expected<L2Flush> create(const Device &device);
  /// Queues the writes, and does not wait for them.
  llvm::Error run(const Stream &stream = {}) const;

private:
  explicit L2Flush(std::shared_ptr<Context> context, DeviceBuffer buffer)
      : context(std::move(context)), buffer(std::move(buffer)) {}

  std::shared_ptr<Context> context;
  DeviceBuffer buffer;
};

/// How long a measurement lasts, and how many runs it has.
struct MeasureOptions {
  /// Runs before the measurement.
  unsigned warmUpRuns = 3;
  /// The smallest and the largest number of measured runs.
  unsigned minRuns = 5, maxRuns = 1000;
  /// After this time, the measurement ends as soon as it has `minRuns` runs.
  /// Times are wall-clock times and include flushes.
  double budgetSeconds = 1.0;
  /// After this time, the measurement ends after the current run, even if it
  /// has fewer than `minRuns` runs. It also ends the runs before the
  /// measurement.
  double patienceSeconds = 10.0;
  /// The measurement ends after three runs if none of them took less than this
  /// time.
  double hopelessSeconds = std::numeric_limits<double>::infinity();
  /// Whether each run starts with an empty L2 cache.
  bool flushL2 = true;
};

/// The seconds that each run took, in the order of the runs. There is at least
/// one run.
struct Measurement {
  std::vector<double> seconds;

  double getMedian() const;
  double getMin() const;
  /// Half of the distance between the quartiles, divided by the median.
  double getSpread() const;
};

/// Measures the time that the work takes on the device which `run` queues on
/// the stream. `run` is called once for each run, and must not wait for the
/// work.
llvm::Expected<Measurement>
measure(const Device &device,
        llvm::function_ref<llvm::Error(const Stream &)> run,
        const MeasureOptions &options = {}, const Stream &stream = {});

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_MEASURE_H
