//===- FakeCuda.h - Control of the fake CUDA driver -------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_UNITTESTS_FAKECUDA_H
#define FLASH_UNITTESTS_FAKECUDA_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

/// What the fake driver is told and what it has seen. Tests reach it by the
/// symbol `fakeCuda`, a `FakeCuda *()`.
struct FakeCuda {
  /// Results of calls, by name, instead of what they would do.
  std::map<std::string, int> failures;
  int version = 12080;
  int deviceCount = 2;
  /// Of the compute capability.
  int major = 9, minor = 0;
  const char *name = "Fake GPU";
  int multiprocessors = 132;
  size_t totalBytes = size_t(1) << 24;
  /// Whether the device maps memory, in multiples of so many bytes.
  bool mapsMemory = false;
  size_t granularity = 1 << 16;
  /// Most shared memory of a block.
  int sharedBytes = 232448;
  /// Most blocks on a multiprocessor, for whatever reason.
  int ctasPerSm = 32;
  /// Written to the error log of a module that fails to load.
  std::string errorLog;
  /// Kernels launched from now on never end.
  bool hang = false;
  /// How often an event that was just recorded is said not to be ready.
  int polls = 0;
  /// Kernels launched from now on fault with this result.
  int fault = 0;

  /// How often each call was made.
  std::map<std::string, unsigned> calls;
  /// The kernels that were launched as dependent ones, each with its grid,
  /// block and shared memory.
  std::vector<std::pair<std::string, std::vector<unsigned>>> dependents;
  /// Calls that a real driver would not return from while a kernel hangs.
  std::vector<std::string> blocked;
  /// Live contexts, modules, streams and events, and allocations by address.
  int contexts = 0, modules = 0, streams = 0, events = 0;
  std::map<uint64_t, size_t> allocations;
  /// Reserved addresses, and memory by handle that is not released.
  std::map<uint64_t, size_t> reservations, handles;
  /// Milliseconds: 1 for each kernel, 0.25 for each fill.
  float clock = 0;
  bool hanging = false;
  int faulted = 0;
};

/// The driver's state before the first call, in FakeSetup.cpp.
FakeCuda makeFakeCuda();

#endif // FLASH_UNITTESTS_FAKECUDA_H
