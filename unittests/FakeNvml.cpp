//===- FakeNvml.cpp - NVML without a GPU, for tests -----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

static int device;

EXPORT int nvmlInit_v2() { return 0; }
EXPORT int nvmlShutdown() { return 0; }

EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned length) {
  std::strncpy(version, "570.86.15", length);
  return 0;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **handle) {
  *handle = &device;
  return std::strcmp(id, "0000:18:00.0") == 0 ? 0 : 6; // NVML_ERROR_NOT_FOUND
}

EXPORT int nvmlDeviceGetClockInfo(void *handle, int kind, unsigned *megahertz) {
  *megahertz = kind == 1 ? 1830 : 3201;
  return handle == &device ? 0 : 2; // NVML_ERROR_INVALID_ARGUMENT
}

EXPORT int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts) {
  *milliwatts = 412500;
  return handle == &device ? 0 : 2;
}
