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
  /// Queues the writes.
  llvm::Error run(const Stream &stream = {}) const;

private:
  explicit L2Flush(std::shared_ptr<Context> context, DeviceBuffer buffer)
      : context(std::move(context)), buffer(std::move(buffer)) {}

  std::shared_ptr<Context> context;
  DeviceBuffer buffer;
};

/// How long and how often `measure` runs.
struct MeasureOptions {
  unsigned warmUpRuns = 3;
  unsigned minRuns = 5, maxRuns = 1000;
  /// Ends the measurement after `minRuns`. Wall-clock time, flushes included.
  double budgetSeconds = 1.0;
  /// Ends it after one run.
  double patienceSeconds = 10.0;
  /// Ends it after three runs, if none was faster.
  double hopelessSeconds = std::numeric_limits<double>::infinity();
  /// Whether each run starts with an empty L2 cache.
  bool flushL2 = true;
};

/// Every sample, in the order of the runs, in seconds; at least one.
struct Measurement {
  std::vector<double> seconds;

  double getMedian() const;
  double getMin() const;
  /// Half of the distance between the quartiles, relative to the median.
  double getSpread() const;
};

/// Times what `run` queues on the stream, with events around it.
llvm::Expected<Measurement>
measure(const Device &device,
        llvm::function_ref<llvm::Error(const Stream &)> run,
        const MeasureOptions &options = {}, const Stream &stream = {});

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_MEASURE_H
