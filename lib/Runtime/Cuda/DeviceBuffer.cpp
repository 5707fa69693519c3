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
  buffer.redZoneBytes = llvm::alignTo(options.redZoneBytes, 256);
  // The driver allocates no 0 bytes.
  int64_t total = std::max<int64_t>(bytes + 2 * buffer.redZoneBytes, 1);
  CUdeviceptr base = 0;
  CUresult result = api.cuMemAlloc_v2.function(&base, total);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    auto memory = device.getMemory();
    if (!memory)
      return memory.takeError();
    return fail(ErrorKind::OutOfMemory,
                formatv("out of memory on {0}: buffer '{1}' needs {2} bytes, "
                        "{3} of {4} bytes are free; {5}",
                        context->getInfo().name, name, total, memory->free,
                        memory->total,
                        context->getDriver().describe(result, "cuMemAlloc")));
  }
  if (result != CUDA_SUCCESS)
    return context->failCall(result, "cuMemAlloc",
                             "cannot allocate buffer '" + name + "'");
  buffer.context = context;
  buffer.address = base + buffer.redZoneBytes;
  buffer.counted = options.counted;
  if (buffer.counted)
    context->addMemory(bytes);

  if (llvm::Error error =
          buffer.setRange(base, redZoneByte, buffer.redZoneBytes))
    return error;
  if (llvm::Error error = buffer.setRange(buffer.address + bytes, redZoneByte,
                                          buffer.redZoneBytes))
    return error;
  if (options.poison)
    if (llvm::Error error = buffer.fill(poisonByte))
      return error;
  return buffer;
}

DeviceBuffer::DeviceBuffer(DeviceBuffer &&other)
    : context(std::move(other.context)), name(std::move(other.name)),
      address(std::exchange(other.address, 0)),
      bytes(std::exchange(other.bytes, 0)), redZoneBytes(other.redZoneBytes),
      counted(other.counted) {}

DeviceBuffer &DeviceBuffer::operator=(DeviceBuffer &&other) {
  std::swap(context, other.context);
  std::swap(name, other.name);
  std::swap(address, other.address);
  std::swap(bytes, other.bytes);
  std::swap(redZoneBytes, other.redZoneBytes);
  std::swap(counted, other.counted);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (!context)
    return;
  if (counted)
    context->addMemory(-bytes);
  context->releaseUnused(context->getApi().cuMemFree_v2,
                         CUdeviceptr(address - redZoneBytes));
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
  // So that it is done for work on borrowed streams too.
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
  if (redZoneBytes == 0)
    return fail(ErrorKind::InvalidRequest,
                "buffer '" + name + "' has no red zones to check");
  if (llvm::Error error = context->enterAndDrain())
    return error;
  std::vector<uint8_t> zone(redZoneBytes);
  std::optional<int64_t> first;
  int64_t count = 0;
  for (int64_t start : {-redZoneBytes, bytes}) {
    if (llvm::Error error =
            context->call("cannot read the red zones of buffer '" + name + "'",
                          context->getApi().cuMemcpyDtoH_v2, zone.data(),
                          address + start, zone.size()))
      return error;
    for (int64_t i = 0; i < redZoneBytes; ++i)
      if (zone[i] != redZoneByte) {
        first = first.value_or(start + i);
        ++count;
      }
  }
  if (!first)
    return llvm::Error::success();
  return fail(ErrorKind::RedZone,
              formatv("a kernel wrote outside of buffer '{0}' of {1} bytes: "
                      "first to byte {2} ({3}), {4} byte(s) in all",
                      name, bytes, *first,
                      *first < 0 ? "before its start" : "past its end", count));
}
