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
  /// The PCI bus id, such as "0000:18:00.0", which identifies the device for
  /// NVML.
  std::string pciBusId;
  /// The driver's version: 1000 * major + 10 * minor.
  int driverVersion = 0;
  /// Compute capability.
  int major = 0, minor = 0;
  int multiprocessors = 0;
  int warpSize = 0;
  int64_t l2Bytes = 0;
  int64_t totalBytes = 0;
  /// The highest clock rates of the multiprocessors and of the memory. Some
  /// drivers do not report them.
  std::optional<int64_t> clockKHz, memoryClockKHz;
  int memoryBusBits = 0;
  /// Whether the driver can map memory at addresses that the program chooses
  /// (cuMemMap).
  bool mapsMemory = false;
  /// The bytes of shared memory that a block can have: without a call that
  /// allows more for its kernel, and with such a call.
  int64_t sharedBytesPerBlock = 0, sharedBytesPerBlockOptIn = 0;
  /// The bytes of shared memory of a multiprocessor, and the bytes that the
  /// driver keeps of it for each block.
  int64_t sharedBytesPerMultiprocessor = 0, sharedReservedBytes = 0;
  int registersPerBlock = 0, registersPerMultiprocessor = 0;
  int threadsPerBlock = 0, threadsPerMultiprocessor = 0;
  /// The largest numbers of threads of a block and of blocks of a grid, along
  /// x, y and z.
  std::array<int64_t, 3> maxBlock = {}, maxGrid = {};

  /// The architecture, such as "sm_90".
  std::string getArchitecture() const;
  /// The compute capability as a number: ten times the major version plus the
  /// minor version.
  int64_t getComputeCapability() const { return 10 * major + minor; }
  /// The description whose kernels the device should run (`findNearestGpu`);
  /// null if there is none.
  const Machine *getTarget() const;
  /// For a device for which `getTarget` is null: a message that says why.
  std::string getReasonForNone() const;
  /// Whether `getTarget` describes other cards, of another compute capability,
  /// because no description is for this device.
  bool isUndescribed() const;
  /// A sentence for the user of a device on which flash-mlir was never tried.
  /// It says that the device runs the kernels for `target`. Empty for other
  /// devices, and if `target` or `getTarget` is null.
  std::string getWarning(const Machine *target) const;
};

/// The bytes of device memory of all `DeviceBuffer`s that are counted, without
/// red zones.
struct MemoryUse {
  int64_t current = 0, peak = 0;
};

/// The bytes of device memory that are free, and all bytes, as the driver
/// reports them; other processes use some of them.
struct DeviceMemory {
  int64_t free = 0, total = 0;
};

/// A device with its primary context, which is shared with other libraries in
/// the process. Copies refer to the same context. Buffers, modules and events
/// keep the context alive. Calls make the context current for the calling
/// thread.
///
/// The device is lost if a kernel faults or does not end in time. Every later
/// call then fails with `DeviceLost`, and destructors do not call the driver.
/// Such a process should end with `exitProcess`.
class Device {
public:
  /// Opens a device. `ordinal` is its number, from 0, among the devices that
  /// the driver lists.
  static llvm::Expected<Device> open(std::shared_ptr<Driver> driver,
                                     int ordinal = 0);
  /// Loads the driver of the system, and opens a device.
  static llvm::Expected<Device> open(int ordinal = 0);

  const DeviceInfo &getInfo() const;
  /// Waits for running kernels first, as `synchronize` does.
  llvm::Expected<DeviceMemory> getMemory() const;

  MemoryUse getMemoryUse() const;
  /// Makes the peak start again from the current use.
  void resetPeakMemory();

  /// Sets the time-out in seconds of all calls that wait for kernels; 60 at
  /// first. Calls that copy, allocate or release memory also wait for running
  /// kernels before they call the driver. A device is lost after a time-out.
  void setTimeout(double seconds);

  /// Waits for all work of the default stream and of streams that were created
  /// with `Stream::create`. It does not wait for borrowed streams, which their
  /// owners must synchronize.
  llvm::Error synchronize() const;

  /// Whether the device is lost.
  bool isLost() const;

  const std::shared_ptr<Context> &getContext() const { return context; }

private:
  explicit Device(std::shared_ptr<Context> context)
      : context(std::move(context)) {}

  std::shared_ptr<Context> context;
};

/// Whether any device of this process is lost.
bool isAnyDeviceLost();

/// Ends the process with this exit status. If a device is lost, the process
/// ends at once, after output streams are flushed: handlers that the driver
/// runs at exit could wait forever for the kernel.
[[noreturn]] void exitProcess(int status);

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_DEVICE_H
