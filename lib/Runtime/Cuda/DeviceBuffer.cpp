//===- DeviceBuffer.cpp - Memory of a device ------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/Cuda/DeviceBuffer.h"

#include "Context.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <utility>

using namespace flash::cuda;
using llvm::formatv;

static constexpr uint8_t redZoneByte = 0xA5, poisonByte = 0xFF;

/// Beyond any device, and such that sums of a few do not overflow.
static constexpr int64_t mostBytes = int64_t(1) << 60;

/// Addresses cost nothing, and a wrong one may be far away.
static constexpr int64_t leastGuardBytes = int64_t(1) << 30;

namespace {
/// Calls of the driver until one fails.
struct Calls {
  CUresult result = CUDA_SUCCESS;
  const char *last = "";

  template <typename... Parameters, typename... Arguments>
  bool make(const Entry<Parameters...> &entry, Arguments... arguments) {
    last = entry.name;
    result = entry.function(arguments...);
    return result == CUDA_SUCCESS;
  }
};
} // namespace

/// Returns the address of new memory between two unmapped guards. Leaves
/// nothing behind if a call fails.
static CUdeviceptr mapMemory(const DriverApi &api, Calls &calls,
                             const CUmemAllocationProp &memory, size_t bytes,
                             size_t guardBytes, size_t granularity) {
  CUdeviceptr start = 0;
  size_t reserved = bytes + 2 * guardBytes;
  if (!calls.make(api.cuMemAddressReserve, &start, reserved, granularity,
                  CUdeviceptr(0), uint64_t(0)))
    return 0;
  CUdeviceptr base = start + guardBytes;
  CUmemGenericAllocationHandle handle = 0;
  CUmemAccessDesc access = {memory.location,
                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  if (calls.make(api.cuMemCreate, &handle, bytes, &memory, uint64_t(0))) {
    bool isMapped =
        calls.make(api.cuMemMap, base, bytes, size_t(0), handle, uint64_t(0));
    // What is mapped stays until it is unmapped.
    (void)api.cuMemRelease.function(handle);
    if (isMapped &&
        calls.make(api.cuMemSetAccess, base, bytes, &access, size_t(1)))
      return base;
    if (isMapped)
      (void)api.cuMemUnmap.function(base, bytes);
  }
  (void)api.cuMemAddressFree.function(start, reserved);
  return 0;
}

llvm::Expected<DeviceBuffer>
DeviceBuffer::allocate(const Device &device, llvm::StringRef name,
                       int64_t bytes, const BufferOptions &options) {
  if (bytes < 0 || bytes > mostBytes || options.redZoneBytes < 0 ||
      options.redZoneBytes > mostBytes)
    return fail(ErrorKind::InvalidRequest,
                formatv("buffer '{0}' cannot have {1} bytes with red zones of "
                        "{2} bytes",
                        name, bytes, options.redZoneBytes));
  const std::shared_ptr<Context> &context = device.getContext();
  const DriverApi &api = context->getApi();
  if (llvm::Error error = context->enterAndDrain())
    return error;

  DeviceBuffer buffer;
  buffer.name = name.str();
  buffer.bytes = bytes;
  int64_t redZoneBytes = llvm::alignTo(options.redZoneBytes, 256);
  Calls calls;
  if (options.guard != Guard::None && context->getInfo().mapsMemory) {
    CUmemAllocationProp memory = {};
    memory.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    memory.location = {CU_MEM_LOCATION_TYPE_DEVICE, context->getInfo().ordinal};
    size_t granularity = 1;
    int64_t padded = llvm::alignTo(bytes, options.endAlignment);
    if (calls.make(api.cuMemGetAllocationGranularity, &granularity, &memory,
                   CU_MEM_ALLOC_GRANULARITY_MINIMUM)) {
      buffer.guardBytes = llvm::alignTo(leastGuardBytes, granularity);
      buffer.allocatedBytes = llvm::alignTo(
          std::max<int64_t>(padded + redZoneBytes, 1), granularity);
      buffer.base = mapMemory(api, calls, memory, buffer.allocatedBytes,
                              buffer.guardBytes, granularity);
    }
    buffer.address = buffer.base;
    if (options.guard == Guard::End)
      buffer.address += buffer.allocatedBytes - padded;
  } else {
    buffer.allocatedBytes = bytes + 2 * redZoneBytes;
    // The driver allocates no 0 bytes.
    calls.make(api.cuMemAlloc_v2, &buffer.base,
               size_t(std::max<int64_t>(buffer.allocatedBytes, 1)));
    buffer.address = buffer.base + redZoneBytes;
  }
  if (calls.result == CUDA_ERROR_OUT_OF_MEMORY) {
    auto memory = device.getMemory();
    if (!memory)
      return memory.takeError();
    return fail(
        ErrorKind::OutOfMemory,
        formatv("out of memory on {0}: buffer '{1}' needs {2} bytes, {3} of "
                "{4} bytes are free; {5}",
                context->getInfo().name, name, buffer.allocatedBytes,
                memory->free, memory->total,
                context->getDriver().describe(calls.result, calls.last)));
  }
  if (calls.result != CUDA_SUCCESS)
    return context->failCall(calls.result, calls.last,
                             "cannot allocate buffer '" + name + "'");
  buffer.context = context;
  buffer.counted = options.counted;
  if (buffer.counted)
    context->addMemory(bytes);

  for (auto [start, count] : buffer.getRedZones())
    if (llvm::Error error = buffer.setRange(start, redZoneByte, count))
      return error;
  if (options.poison)
    if (llvm::Error error = buffer.fill(poisonByte))
      return error;
  return buffer;
}

DeviceBuffer::DeviceBuffer(DeviceBuffer &&other) : DeviceBuffer() {
  *this = std::move(other);
}

DeviceBuffer &DeviceBuffer::operator=(DeviceBuffer &&other) {
  std::swap(context, other.context);
  std::swap(name, other.name);
  std::swap(address, other.address);
  std::swap(bytes, other.bytes);
  std::swap(base, other.base);
  std::swap(allocatedBytes, other.allocatedBytes);
  std::swap(guardBytes, other.guardBytes);
  std::swap(counted, other.counted);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (!context)
    return;
  if (counted)
    context->addMemory(-bytes);
  const DriverApi &api = context->getApi();
  if (guardBytes == 0) {
    context->releaseUnused(api.cuMemFree_v2, base);
    return;
  }
  context->releaseUnused(api.cuMemUnmap, base, size_t(allocatedBytes));
  context->release(api.cuMemAddressFree, base - guardBytes,
                   size_t(allocatedBytes + 2 * guardBytes));
}

std::array<std::pair<uint64_t, int64_t>, 2> DeviceBuffer::getRedZones() const {
  uint64_t end = address + bytes;
  return {{{base, address - base}, {end, base + allocatedBytes - end}}};
}

llvm::Error DeviceBuffer::setRange(uint64_t start, uint8_t byte,
                                   int64_t count) {
  if (count == 0)
    return llvm::Error::success();
  if (llvm::Error error = context->enter())
    return error;
  if (llvm::Error error =
          context->call("cannot fill buffer '" + name + "'",
                        context->getApi().cuMemsetD8Async, CUdeviceptr(start),
                        byte, size_t(count), CUstream(nullptr)))
    return error;
  // The fill is then done for work on borrowed streams, too.
  return context->synchronize();
}

llvm::Error DeviceBuffer::fill(uint8_t byte) {
  return setRange(address, byte, bytes);
}

llvm::Error DeviceBuffer::checkCopy(size_t hostBytes) const {
  if (hostBytes != size_t(bytes))
    return fail(ErrorKind::InvalidRequest,
                formatv("cannot copy {0} bytes of host memory to or from "
                        "buffer '{1}' of {2} bytes",
                        hostBytes, name, bytes));
  return context->enterAndDrain();
}

llvm::Error DeviceBuffer::copyFromHost(llvm::ArrayRef<char> source) {
  if (llvm::Error error = checkCopy(source.size()))
    return error;
  if (bytes == 0)
    return llvm::Error::success();
  return context->call("cannot copy to buffer '" + name + "'",
                       context->getApi().cuMemcpyHtoD_v2, address,
                       source.data(), source.size());
}

llvm::Error DeviceBuffer::copyToHost(llvm::MutableArrayRef<char> target) const {
  if (llvm::Error error = checkCopy(target.size()))
    return error;
  if (bytes == 0)
    return llvm::Error::success();
  return context->call("cannot copy from buffer '" + name + "'",
                       context->getApi().cuMemcpyDtoH_v2, target.data(),
                       address, target.size());
}

llvm::Error DeviceBuffer::checkRedZones() const {
  if (allocatedBytes == bytes)
    return fail(ErrorKind::InvalidRequest,
                "buffer '" + name + "' has no red zones to check");
  if (llvm::Error error = context->enterAndDrain())
    return error;
  std::optional<int64_t> first;
  int64_t total = 0;
  for (auto [start, count] : getRedZones()) {
    if (count == 0)
      continue;
    std::vector<uint8_t> zone(count);
    if (llvm::Error error =
            context->call("cannot read the red zones of buffer '" + name + "'",
                          context->getApi().cuMemcpyDtoH_v2, zone.data(),
                          CUdeviceptr(start), zone.size()))
      return error;
    for (int64_t i = 0; i < count; ++i)
      if (zone[i] != redZoneByte) {
        first = first.value_or(int64_t(start + i - address));
        ++total;
      }
  }
  if (!first)
    return llvm::Error::success();
  return fail(ErrorKind::RedZone,
              formatv("a kernel wrote outside of buffer '{0}' of {1} bytes: "
                      "first to byte {2} ({3}), {4} byte(s) in all",
                      name, bytes, *first,
                      *first < 0 ? "before its start" : "past its end", total));
}
