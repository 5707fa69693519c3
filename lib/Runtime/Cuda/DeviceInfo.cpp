//===- DeviceInfo.cpp - What the driver says about a device ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Context.h"

#include "llvm/Support/FormatVariadic.h"

using flash::Machine;
using namespace flash::cuda;
using llvm::formatv;

std::string DeviceInfo::getArchitecture() const {
  return formatv("sm_{0}{1}", major, minor);
}

const flash::Machine *DeviceInfo::getTarget() const {
  return findNearestGpu(getComputeCapability(), sharedBytesPerBlockOptIn);
}

std::string DeviceInfo::getReasonForNone() const {
  int64_t first = getGpus().front().computeCapability;
  return formatv("kernels need a GPU of compute capability {0}.{1} or later; "
                 "{2} is {3}",
                 first / 10, first % 10, name, getArchitecture());
}

bool DeviceInfo::isUndescribed() const {
  const Machine *target = getTarget();
  return target && target->computeCapability != getComputeCapability();
}

std::string DeviceInfo::getWarning(const Machine *target) const {
  const Machine *own = getTarget();
  if (!own || !target || (own->wasTried && !isUndescribed()))
    return "";
  return formatv("{0} has compute capability {1}.{2}, {3}; it gets the kernels "
                 "for {4}, with schedules that were not measured there",
                 name, major, minor,
                 isUndescribed() ? "which flash-mlir does not describe"
                                 : "on which flash-mlir was not tried",
                 target->name);
}

namespace {
/// Queries one thing after another; after the first failure the rest is
/// skipped.
class Queries {
public:
  Queries(const Driver &driver, CUdevice device, int ordinal)
      : driver(driver), api(driver.getApi()), device(device), ordinal(ordinal) {
  }

  template <typename... Parameters, typename... Arguments>
  void query(const llvm::Twine &what, const Entry<Parameters...> &entry,
             Arguments... arguments) {
    if (failure)
      return;
    CUresult result = entry.function(arguments...);
    if (result != CUDA_SUCCESS)
      failure = formatv("cannot query the {1} of CUDA device {0}: {2}", ordinal,
                        what.str(), driver.describe(result, entry.name))
                    .str();
  }

  int64_t get(const char *what, CUdevice_attribute attribute) {
    int value = 0;
    query(what, api.cuDeviceGetAttribute, &value, attribute, device);
    return value;
  }

  std::optional<int64_t> getOptional(CUdevice_attribute attribute) {
    int value = 0;
    CUresult result =
        api.cuDeviceGetAttribute.function(&value, attribute, device);
    if (result != CUDA_SUCCESS || value <= 0)
      return std::nullopt;
    return value;
  }

  const std::optional<std::string> &getFailure() const { return failure; }

private:
  const Driver &driver;
  const DriverApi &api;
  CUdevice device;
  int ordinal;
  std::optional<std::string> failure;
};
} // namespace

llvm::Expected<DeviceInfo>
flash::cuda::queryDevice(const Driver &driver, CUdevice device, int ordinal) {
  const DriverApi &api = driver.getApi();
  Queries q(driver, device, ordinal);
  DeviceInfo info;
  info.ordinal = ordinal;
  info.driverVersion = driver.getVersion();

  char text[256] = {};
  q.query("name", api.cuDeviceGetName, text, int(sizeof(text)) - 1, device);
  info.name = text;
  q.query("PCI bus id", api.cuDeviceGetPCIBusId, text, int(sizeof(text)) - 1,
          device);
  info.pciBusId = text;
  size_t totalBytes = 0;
  q.query("memory", api.cuDeviceTotalMem_v2, &totalBytes, device);
  info.totalBytes = totalBytes;

  info.major =
      q.get("compute capability", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  info.minor =
      q.get("compute capability", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  info.multiprocessors = q.get("number of multiprocessors",
                               CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  info.warpSize = q.get("warp size", CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  info.l2Bytes = q.get("L2 cache size", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  info.clockKHz = q.getOptional(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  info.memoryClockKHz = q.getOptional(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  info.memoryBusBits =
      q.get("memory bus width", CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  // CUDA 10.2 brought all of these functions.
  info.mapsMemory =
      api.cuMemMap.function &&
      q.getOptional(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);

  const char *shared = "shared memory";
  info.sharedBytesPerBlock =
      q.get(shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  info.sharedBytesPerBlockOptIn =
      q.get(shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  info.sharedBytesPerMultiprocessor =
      q.get(shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  info.sharedReservedBytes =
      q.getOptional(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)
          .value_or(0);

  info.registersPerBlock =
      q.get("registers", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  info.registersPerMultiprocessor =
      q.get("registers", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  info.threadsPerBlock =
      q.get("threads", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  info.threadsPerMultiprocessor =
      q.get("threads", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  info.maxBlock = {q.get("block limits", CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
                   q.get("block limits", CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                   q.get("block limits", CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)};
  info.maxGrid = {q.get("grid limits", CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
                  q.get("grid limits", CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                  q.get("grid limits", CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)};
  if (q.getFailure())
    return fail(ErrorKind::DriverFailure, *q.getFailure());
  return info;
}
