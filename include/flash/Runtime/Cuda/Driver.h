//===- Driver.h - The CUDA driver, found at run time ------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver is loaded at run time. No tool is linked with CUDA, so all tools
// start on machines without a GPU.
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
  /// Loads and initializes the driver. Loading it again is cheap. Fails with
  /// `Unavailable` if there is no driver or it has no device, and with
  /// `DriverTooOld` if it lacks a function that is needed.
  static llvm::Expected<std::shared_ptr<Driver>>
  load(llvm::StringRef path = "libcuda.so.1");
  ~Driver();

  /// The newest CUDA version that the driver supports: 1000 * major + 10 *
  /// minor.
  int getVersion() const { return version; }
  /// The version for messages, such as "12.8".
  std::string getVersionString() const;
  /// The number of devices, at least 1.
  int getDeviceCount() const { return deviceCount; }

  /// The driver's functions, for this library and its tests.
  const DriverApi &getApi() const { return *api; }
  /// A message about a failed call of the driver's function `call`, such as
  /// "cuInit failed with CUDA_ERROR_NO_DEVICE (no device was found)". `result`
  /// is its CUresult.
  std::string describe(int result, llvm::StringRef call) const;

private:
  Driver();

  std::unique_ptr<DriverApi> api;
  int version = 0;
  int deviceCount = 0;
};

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_DRIVER_H
