//===- Device.h - A GPU and its primary context -----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_CUDA_DEVICE_H
#define FLASH_RUNTIME_CUDA_DEVICE_H

#include "flash/Machine/Machine.h"
#include "flash/Runtime/Cuda/Driver.h"
#include <array>
#include <optional>

namespace flash::cuda {

class Context;
class Stream;

/// What the driver says about a device.
struct DeviceInfo {
  int ordinal = 0;
  std::string name;
  /// "0000:18:00.0", by which NVML knows the device.
  std::string pciBusId;
  /// The driver's version: 1000 * major + 10 * minor.
  int driverVersion = 0;
  /// Compute capability.
  int major = 0, minor = 0;
  int multiprocessors = 0;
  int warpSize = 0;
  int64_t l2Bytes = 0;
  int64_t totalBytes = 0;
  /// Highest clock rates; some drivers do not report them.
  std::optional<int64_t> clockKHz, memoryClockKHz;
  int memoryBusBits = 0;
  /// Whether memory can be mapped where the program wants it (cuMemMap).
  bool mapsMemory = false;
  /// Shared memory of a block without opting in, with it, and of a
  /// multiprocessor. The driver keeps `sharedReservedBytes` of each block.
  int64_t sharedBytesPerBlock = 0, sharedBytesPerBlockOptIn = 0;
  int64_t sharedBytesPerMultiprocessor = 0, sharedReservedBytes = 0;
  int registersPerBlock = 0, registersPerMultiprocessor = 0;
  int threadsPerBlock = 0, threadsPerMultiprocessor = 0;
  std::array<int64_t, 3> maxBlock = {}, maxGrid = {};

  /// "sm_90".
  std::string getArchitecture() const;
  /// Ten times the major version and the minor one.
  int64_t getComputeCapability() const { return 10 * major + minor; }
  /// The description whose kernels the device runs (findNearestGpu); null if
  /// it runs none, and then why.
  const Machine *getTarget() const;
  std::string getReasonForNone() const;
  /// Whether the description is of other cards.
  bool isUndescribed() const;
  /// A sentence for the user of a device that nobody has tried, which gets the
  /// kernels for `target`. Empty for other devices, and without a target.
  std::string getWarning(const Machine *target) const;
};

/// Bytes of device memory held by `DeviceBuffer`s, red zones not counted.
struct MemoryUse {
  int64_t current = 0, peak = 0;
};

/// Bytes of device memory as the driver counts them, for all processes.
struct DeviceMemory {
  int64_t free = 0, total = 0;
};

/// A device with its primary context, which other libraries in the process
/// share. Copies refer to the same context; buffers, modules and events keep it
/// alive. Calls make the context current for the calling thread.
///
/// A kernel that faults or never ends loses the device: every later call fails
/// with `DeviceLost` and destructors leave the driver alone. End such a process
/// with `exitProcess`.
class Device {
public:
  static llvm::Expected<Device> open(std::shared_ptr<Driver> driver,
                                     int ordinal = 0);
  /// With the driver of the system.
  static llvm::Expected<Device> open(int ordinal = 0);

  const DeviceInfo &getInfo() const;
  llvm::Expected<DeviceMemory> getMemory() const;

  MemoryUse getMemoryUse() const;
  /// Makes the peak start again from the current use.
  void resetPeakMemory();

  /// How long whatever waits for kernels does so, in seconds; 60 at first.
  /// Copies and the release of memory wait too, before they call the driver.
  void setTimeout(double seconds);

  /// Waits for all work of the default stream and of created streams. Work on
  /// borrowed streams is their owner's to wait for.
  llvm::Error synchronize() const;

  bool isLost() const;

  const std::shared_ptr<Context> &getContext() const { return context; }

private:
  explicit Device(std::shared_ptr<Context> context)
      : context(std::move(context)) {}

  std::shared_ptr<Context> context;
};

/// Whether any device of this process is lost.
bool isAnyDeviceLost();

/// Ends the process. With a lost device the driver's own handlers at exit could
/// wait forever for the kernel, so they are skipped: streams are flushed and
/// the process ends at once.
[[noreturn]] void exitProcess(int status);

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_DEVICE_H
