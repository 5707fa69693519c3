//===- Benchmark.cpp - Timing a kernel ------------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Benchmark.h"

#include "flash/Run/Stopwatch.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"

using namespace flash::run;

llvm::Expected<Timing>
flash::run::benchmark(Kernel &kernel, llvm::ArrayRef<HostTensor> inputs) {
  constexpr double enough = 1.0, patience = 4.0;
  Timing timing;
  std::vector<double> seconds;
  double total = 0;
  for (bool warm = false;; warm = true) {
    Stopwatch watch;
    auto results = kernel.run(inputs);
    double elapsed = watch.lap();
    if (!results)
      return results.takeError();
    timing.peakBytes = std::max(timing.peakBytes, kernel.getPeakBytes());
    if (!warm && elapsed < patience)
      continue; // Page faults and cold caches.
    seconds.push_back(elapsed);
    total += elapsed;
    size_t runs = seconds.size();
    if (runs >= 100 || (runs >= 5 && total >= enough) ||
        (runs >= 2 && total >= patience) || total >= 2 * patience)
      break;
  }
  llvm::sort(seconds);
  size_t runs = seconds.size();
  timing.runs = runs;
  timing.min = seconds.front();
  timing.median = (seconds[(runs - 1) / 2] + seconds[runs / 2]) / 2;
  timing.spread =
      (seconds[runs - 1 - runs / 4] - seconds[runs / 4]) / 2 / timing.median;
  return timing;
}

std::string flash::run::getProcessorName() {
  if (auto file = llvm::MemoryBuffer::getFileAsStream("/proc/cpuinfo"))
    for (llvm::line_iterator line(**file); !line.is_at_eof(); ++line) {
      auto [key, value] = line->split(':');
      if (key.trim() == "model name")
        return value.trim().str();
    }
  return llvm::sys::getHostCPUName().str();
}
