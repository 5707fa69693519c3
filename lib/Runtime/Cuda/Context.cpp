//===- Context.cpp - What a device's objects share ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Context.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <cstdlib>
#include <thread>
#include <unistd.h>

using namespace flash::cuda;
using llvm::formatv;

static std::atomic<bool> anyDeviceLost{false};

bool flash::cuda::isAnyDeviceLost() { return anyDeviceLost; }

void flash::cuda::exitProcess(int status) {
  if (!anyDeviceLost)
    std::exit(status);
  llvm::outs().flush();
  llvm::errs().flush();
  std::fflush(nullptr);
  _exit(status);
}

//===----------------------------------------------------------------------===//
// Start and end
//===----------------------------------------------------------------------===//

llvm::Expected<std::shared_ptr<Context>>
Context::create(std::shared_ptr<Driver> driver, int ordinal) {
  if (ordinal < 0 || ordinal >= driver->getDeviceCount())
    return fail(ErrorKind::InvalidRequest,
                formatv("there is no CUDA device {0}: the driver sees {1} "
                        "device(s), numbered from 0",
                        ordinal, driver->getDeviceCount()));
  std::shared_ptr<Context> context(new Context(std::move(driver)));
  const DriverApi &api = context->getApi();
  std::string doing = formatv("cannot open CUDA device {0}", ordinal);
  if (llvm::Error error =
          context->call(doing, api.cuDeviceGet, &context->device, ordinal))
    return error;
  auto info = queryDevice(*context->driver, context->device, ordinal);
  if (!info)
    return info.takeError();
  context->info = std::move(*info);
  if (llvm::Error error = context->call(doing, api.cuDevicePrimaryCtxRetain,
                                        &context->handle, context->device))
    return error;
  if (llvm::Error error = context->enter())
    return error;
  return context;
}

Context::~Context() {
  if (!handle)
    return;
  llvm::consumeError(enterAndDrain());
  if (!lost) // The call needs no current context.
    (void)getApi().cuDevicePrimaryCtxRelease_v2.function(device);
}

llvm::Error Context::enter() {
  if (lost) {
    std::lock_guard<std::mutex> lock(mutex);
    return fail(ErrorKind::DeviceLost,
                "the device cannot be used further in this process, since " +
                    lossReason);
  }
  return call("cannot use the device " + info.name, getApi().cuCtxSetCurrent,
              handle);
}

llvm::Error Context::enterAndDrain() {
  if (llvm::Error error = enter())
    return error;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (llvm::all_of(running, [](const Launch &l) { return l.borrowed; }))
      return llvm::Error::success();
  }
  return synchronize();
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

llvm::Error Context::failCall(CUresult result, llvm::StringRef call,
                              const llvm::Twine &doing) {
  std::string failure = driver->describe(result, call);
  if (!isFault(result))
    return fail(result == CUDA_ERROR_OUT_OF_MEMORY ? ErrorKind::OutOfMemory
                                                   : ErrorKind::DriverFailure,
                doing + ": " + failure);
  std::string kernels = describeRunning();
  return lose(ErrorKind::KernelFailed,
              (kernels.empty() ? doing : kernels + " failed") +
                  explainFault(result) + "; " + failure);
}

llvm::Error Context::lose(ErrorKind kind, const llvm::Twine &reason) {
  std::string text = reason.str();
  {
    std::lock_guard<std::mutex> lock(mutex);
    lossReason = text;
  }
  lost = anyDeviceLost = true;
  return fail(kind,
              text + "; the device cannot be used further in this process");
}

std::string Context::describeRunning() {
  std::lock_guard<std::mutex> lock(mutex);
  llvm::SmallVector<llvm::StringRef> names;
  for (const Launch &launch : running)
    if (!llvm::is_contained(names, launch.kernel))
      names.push_back(launch.kernel);
  if (names.empty())
    return "";
  return formatv("{0} '{1:$[', ']}'",
                 names.size() == 1 ? "kernel" : "one of the kernels",
                 llvm::make_range(names.begin(), names.end()));
}

//===----------------------------------------------------------------------===//
// Running kernels
//===----------------------------------------------------------------------===//

void Context::addLaunch(llvm::StringRef kernel, const Stream &stream) {
  std::lock_guard<std::mutex> lock(mutex);
  uint64_t number = launchCount++;
  for (Launch &launch : running)
    if (launch.kernel == kernel && launch.stream == stream.getHandle()) {
      launch.number = number;
      return;
    }
  running.push_back(
      {kernel.str(), stream.getHandle(), stream.isBorrowed(), number});
}

void Context::retire(CUstream stream, uint64_t launches) {
  std::lock_guard<std::mutex> lock(mutex);
  llvm::erase_if(running, [&](const Launch &launch) {
    bool covered =
        launch.stream == stream || (stream == nullptr && !launch.borrowed);
    return covered && launch.number < launches;
  });
}

llvm::Error Context::wait(CUevent event, CUstream stream, uint64_t launches,
                          double seconds) {
  using namespace std::chrono;
  auto start = steady_clock::now();
  for (auto pause = microseconds(50);;
       pause *= pause < milliseconds(1) ? 2 : 1) {
    CUresult result = getApi().cuEventQuery.function(event);
    if (result == CUDA_SUCCESS) {
      retire(stream, launches);
      return llvm::Error::success();
    }
    if (result != CUDA_ERROR_NOT_READY)
      return failCall(result, "cuEventQuery", "cannot wait for the device");
    duration<double> elapsed = steady_clock::now() - start;
    if (!(elapsed.count() < seconds)) {
      std::string kernels = describeRunning();
      return lose(ErrorKind::TimedOut,
                  formatv("{0} did not finish in {1} seconds",
                          kernels.empty() ? "the device's work" : kernels,
                          seconds));
    }
    std::this_thread::sleep_for(pause);
  }
}

llvm::Error Context::synchronize() {
  if (llvm::Error error = enter())
    return error;
  uint64_t launches = getLaunchCount();
  const DriverApi &api = getApi();
  CUevent event = nullptr;
  if (llvm::Error error = call("cannot wait for the device", api.cuEventCreate,
                               &event, /*Flags=*/0u))
    return error;
  llvm::Error error = call("cannot wait for the device", api.cuEventRecord,
                           event, CUstream(nullptr));
  if (!error)
    error = wait(event, nullptr, launches, timeout);
  release(api.cuEventDestroy_v2, event);
  return error;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void Context::addMemory(int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  memory.current += bytes;
  memory.peak = std::max(memory.peak, memory.current);
}

MemoryUse Context::getMemoryUse() {
  std::lock_guard<std::mutex> lock(mutex);
  return memory;
}

void Context::resetPeakMemory() {
  std::lock_guard<std::mutex> lock(mutex);
  memory.peak = memory.current;
}
