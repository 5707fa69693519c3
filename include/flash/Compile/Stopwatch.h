//===- Stopwatch.h - Wall-clock time ----------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_COMPILE_STOPWATCH_H
#define FLASH_COMPILE_STOPWATCH_H

#include <chrono>

namespace flash::compile {

/// Measures wall-clock time. `lap` returns the seconds since it was called
/// before or, the first time, since the stopwatch was made.
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

} // namespace flash::compile

#endif // FLASH_COMPILE_STOPWATCH_H
