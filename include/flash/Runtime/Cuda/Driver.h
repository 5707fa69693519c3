//===- Driver.h - The CUDA driver, found at run time ------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// No tool is linked with CUDA, so that each starts on a machine without a GPU.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_CUDA_DRIVER_H
#define FLASH_RUNTIME_CUDA_DRIVER_H

#include "flash/Runtime/Cuda/Error.h"
#include <memory>
#include <string>

namespace flash::cuda {

struct DriverApi;

/// The loaded and initialized driver. It stays loaded until the process ends.
class Driver {
public:
  /// Loads and initializes the driver. Loading it again is cheap.
  static llvm::Expected<std::shared_ptr<Driver>>
  load(llvm::StringRef path = "libcuda.so.1");
  ~Driver();

  /// The newest CUDA version the driver supports, 1000 * major + 10 * minor.
  int getVersion() const { return version; }
  /// The same for messages: "12.8".
  std::string getVersionString() const;
  /// Never 0: a driver without a device does not load.
  int getDeviceCount() const { return deviceCount; }

  /// The driver's functions, for this library and its tests.
  const DriverApi &getApi() const { return *api; }
  /// "cuInit failed with CUDA_ERROR_NO_DEVICE (no device was found)".
  std::string describe(int result, llvm::StringRef call) const;

private:
  Driver();

  std::unique_ptr<DriverApi> api;
  int version = 0;
  int deviceCount = 0;
};

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_DRIVER_H
