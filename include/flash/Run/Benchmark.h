//===- Benchmark.h - Timing a kernel ----------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_BENCHMARK_H
#define FLASH_RUN_BENCHMARK_H

#include "flash/Run/Kernel.h"

namespace flash::run {

/// What was measured.
struct Timing {
  unsigned runs = 0;
  double median = 0, min = 0; // seconds
  /// Half of the distance between the quartiles, relative to the median.
  double spread = 0;
  int64_t peakBytes = 0;
};

/// Runs the kernel once to warm up and then until a second or 100 runs are
/// over, at least five times. A kernel that takes seconds gets two runs, or
/// one.
llvm::Expected<Timing> benchmark(Kernel &kernel,
                                 llvm::ArrayRef<HostTensor> inputs);

/// The processor's name, as the system gives it.
std::string getProcessorName();

} // namespace flash::run

#endif // FLASH_RUN_BENCHMARK_H
