//===- Context.h - What a device's objects share ----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_RUNTIME_CUDA_CONTEXT_H
#define FLASH_LIB_RUNTIME_CUDA_CONTEXT_H

#include "Failures.h"
#include "flash/Runtime/Cuda/Stream.h"
#include <atomic>
#include <mutex>
#include <vector>

namespace flash::cuda {

/// A retained primary context, whether it is still usable, and the kernels that
/// may be running in it. Safe to use from several threads.
class Context {
public:
  static llvm::Expected<std::shared_ptr<Context>>
  create(std::shared_ptr<Driver> driver, int ordinal);
  ~Context();

  const Driver &getDriver() const { return *driver; }
  const DriverApi &getApi() const { return driver->getApi(); }
  const DeviceInfo &getInfo() const { return info; }

  /// Precedes every call of the driver: fails if the device is lost, otherwise
  /// makes the context current.
  llvm::Error enter();

  /// Precedes calls that may wait inside the driver, where no time-out helps:
  /// also waits for the running kernels.
  llvm::Error enterAndDrain();

  /// Calls the driver. An error starts with `doing`, unless it is found to be a
  /// kernel's.
  template <typename... Parameters, typename... Arguments>
  llvm::Error call(const llvm::Twine &doing, const Entry<Parameters...> &entry,
                   Arguments... arguments) {
    CUresult result = entry.function(arguments...);
    if (result == CUDA_SUCCESS)
      return llvm::Error::success();
    return failCall(result, entry.name, doing);
  }

  /// The error of a call that failed. A fault loses the device.
  llvm::Error failCall(CUresult result, llvm::StringRef call,
                       const llvm::Twine &doing);

  /// For destructors: calls the driver unless the device is lost, and does not
  /// report it if that fails.
  template <typename... Parameters, typename... Arguments>
  void release(const Entry<Parameters...> &entry, Arguments... arguments) {
    finishRelease(enter(), entry, arguments...);
  }
  /// The same for what kernels may be using.
  template <typename... Parameters, typename... Arguments>
  void releaseUnused(const Entry<Parameters...> &entry,
                     Arguments... arguments) {
    finishRelease(enterAndDrain(), entry, arguments...);
  }

  bool isLost() const { return lost; }

  /// Notes a launched kernel.
  void addLaunch(llvm::StringRef kernel, const Stream &stream);
  uint64_t getLaunchCount() const { return launchCount; }

  /// Polls an event until it is done; `stream` and `launches` say which kernels
  /// are done then.
  llvm::Error wait(CUevent event, CUstream stream, uint64_t launches,
                   double seconds);

  /// Waits for the default stream and all that are in order with it.
  llvm::Error synchronize();

  void setTimeout(double seconds) { timeout = seconds; }
  double getTimeout() const { return timeout; }

  void addMemory(int64_t bytes);
  MemoryUse getMemoryUse();
  void resetPeakMemory();

private:
  /// Kernels of the same name and stream are one entry, for the last of them.
  struct Launch {
    std::string kernel;
    CUstream stream;
    bool borrowed;
    uint64_t number;
  };

  Context(std::shared_ptr<Driver> driver) : driver(std::move(driver)) {}

  template <typename... Parameters, typename... Arguments>
  void finishRelease(llvm::Error entered, const Entry<Parameters...> &entry,
                     Arguments... arguments) {
    if (entered)
      return llvm::consumeError(std::move(entered));
    (void)entry.function(arguments...);
  }

  /// Returns the error that says the reason.
  llvm::Error lose(ErrorKind kind, const llvm::Twine &reason);
  void retire(CUstream stream, uint64_t launches);
  /// "kernel 'a'" or "one of the kernels 'a', 'b'"; "" if none can be running.
  std::string describeRunning();

  std::shared_ptr<Driver> driver;
  CUdevice device = 0;
  CUcontext handle = nullptr;
  DeviceInfo info;
  std::atomic<bool> lost{false};
  std::atomic<double> timeout{60.0};
  std::atomic<uint64_t> launchCount{0};

  std::mutex mutex; // Guards the members below.
  std::string lossReason;
  std::vector<Launch> running;
  MemoryUse memory;
};

/// Reads from the driver everything that `DeviceInfo` holds.
llvm::Expected<DeviceInfo> queryDevice(const Driver &driver, CUdevice device,
                                       int ordinal);

} // namespace flash::cuda

#endif // FLASH_LIB_RUNTIME_CUDA_CONTEXT_H
