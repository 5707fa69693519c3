//===- Telemetry.h - Clocks and power of a device ---------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_CUDA_TELEMETRY_H
#define FLASH_RUNTIME_CUDA_TELEMETRY_H

#include "llvm/ADT/StringRef.h"
#include <memory>
#include <optional>
#include <string>

namespace flash::cuda {

/// What NVML reports at one moment. What it does not report is absent.
struct Readings {
  std::optional<int> clockMHz, memoryClockMHz;
  std::optional<double> powerWatts;
  /// Such as "570.86.15".
  std::optional<std::string> driverVersion;
};

/// NVIDIA's management library, if there is one.
class Telemetry {
public:
  /// For the device with that PCI bus id (`DeviceInfo::pciBusId`). Never fails:
  /// without the library, all readings are absent.
  static Telemetry open(llvm::StringRef pciBusId,
                        llvm::StringRef path = "libnvidia-ml.so.1");
  Telemetry(Telemetry &&);
  Telemetry &operator=(Telemetry &&);
  ~Telemetry();

  Readings read() const;

private:
  struct Library;
  explicit Telemetry(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library;
};

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_TELEMETRY_H
