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

/// Values that NVML, NVIDIA's management library, reports at one moment. A
/// value that it does not report is absent.
struct Readings {
  std::optional<int> clockMHz, memoryClockMHz;
  std::optional<double> powerWatts;
  /// The version of the driver, such as "570.86.15".
  std::optional<std::string> driverVersion;
};

/// The sensors of a device, which NVML reads if there is such a library.
class Telemetry {
public:
  /// Opens the sensors of the device with this PCI bus id
  /// (`DeviceInfo::pciBusId`). Never fails: without the library or the device,
  /// values are absent.
  static Telemetry open(llvm::StringRef pciBusId,
                        llvm::StringRef path = "libnvidia-ml.so.1");
  Telemetry(Telemetry &&);
  Telemetry &operator=(Telemetry &&);
  ~Telemetry();

  /// Reads all values.
  Readings read() const;

private:
  struct Library;
  explicit Telemetry(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library;
};

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_TELEMETRY_H
