//===- Device.cpp - A GPU and its primary context -------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/Cuda/Device.h"

#include "Context.h"

using namespace flash::cuda;

llvm::Expected<Device> Device::open(std::shared_ptr<Driver> driver,
                                    int ordinal) {
  auto context = Context::create(std::move(driver), ordinal);
  if (!context)
    return context.takeError();
  return Device(std::move(*context));
}

llvm::Expected<Device> Device::open(int ordinal) {
  auto driver = Driver::load();
  if (!driver)
    return driver.takeError();
  return open(std::move(*driver), ordinal);
}

const DeviceInfo &Device::getInfo() const { return context->getInfo(); }

llvm::Expected<DeviceMemory> Device::getMemory() const {
  if (llvm::Error error = context->enterAndDrain())
    return error;
  size_t free = 0, total = 0;
  if (llvm::Error error =
          context->call("cannot query the free memory",
                        context->getApi().cuMemGetInfo_v2, &free, &total))
    return error;
  return DeviceMemory{int64_t(free), int64_t(total)};
}

MemoryUse Device::getMemoryUse() const { return context->getMemoryUse(); }
void Device::resetPeakMemory() { context->resetPeakMemory(); }
void Device::setTimeout(double seconds) { context->setTimeout(seconds); }
llvm::Error Device::synchronize() const { return context->synchronize(); }
bool Device::isLost() const { return context->isLost(); }
