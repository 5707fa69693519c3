//===- Stopwatch.h - Wall-clock time ----------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_STOPWATCH_H
#define FLASH_RUN_STOPWATCH_H

#include <chrono>

namespace flash::run {

/// Seconds since the last look at it.
class Stopwatch {
public:
  double lap() {
    auto now = Clock::now();
    std::chrono::duration<double> seconds = now - start;
    start = now;
    return seconds.count();
  }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
};

} // namespace flash::run

#endif // FLASH_RUN_STOPWATCH_H
