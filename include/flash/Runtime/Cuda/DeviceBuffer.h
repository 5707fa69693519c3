//===- DeviceBuffer.h - Memory of a device ----------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_CUDA_DEVICEBUFFER_H
#define FLASH_RUNTIME_CUDA_DEVICEBUFFER_H

#include "flash/Runtime/Cuda/Device.h"
#include "llvm/ADT/ArrayRef.h"

namespace flash::cuda {

/// At which end of a buffer each access outside of the buffer faults.
enum class Guard { None, Start, End };

/// Properties of a buffer that is allocated.
struct BufferOptions {
  /// The bytes before and after the buffer that no kernel may write, which
  /// `checkRedZones` checks. The number is rounded up to a multiple of 256, so
  /// that the alignment of the buffer is the alignment of the driver's memory.
  int64_t redZoneBytes = 0;
  /// Whether the buffer is filled with 0xFF, which is NaN in floating-point
  /// types.
  bool poison = false;
  /// Whether the buffer counts in `Device::getMemoryUse`.
  bool counted = true;
  /// A guarded buffer has memory pages of its own, mostly of 2 MB, between at
  /// least 1 GiB of unmapped addresses on either side. It is at the start or at
  /// the end of the pages. The rest of the pages is a red zone of at least
  /// `redZoneBytes`. On a device that cannot map memory, the buffer is an
  /// ordinary one.
  Guard guard = Guard::None;
  /// For buffers that are guarded at their end: the alignment of their address,
  /// a power of 2. Fewer bytes than this are between the end of the buffer and
  /// the unmapped addresses.
  int64_t endAlignment = 256;
};

/// The size in bytes of the red zones that checked runs use.
inline constexpr int64_t checkedRedZoneBytes = 4096;

/// Device memory that this object owns. Copies to and from it first wait for
/// running kernels, at most for the time-out of the device, and return when
/// they are complete.
class DeviceBuffer {
public:
  /// Allocates a buffer. `name` is for messages. A buffer of 0 bytes has an
  /// address, too. Fails with `OutOfMemory` if there is not enough memory.
  /// Waits for running kernels first.
  static llvm::Expected<DeviceBuffer>
  allocate(const Device &device, llvm::StringRef name, int64_t bytes,
           const BufferOptions &options = {});
  DeviceBuffer(DeviceBuffer &&other);
  DeviceBuffer &operator=(DeviceBuffer &&other);
  ~DeviceBuffer();

  const std::string &getName() const { return name; }
  int64_t getNumBytes() const { return bytes; }
  /// The address in device memory, aligned to 256 bytes, or to `endAlignment`
  /// if the buffer is guarded at its end. A pointer to this value can be passed
  /// as an argument of a kernel.
  const uint64_t &getAddress() const { return address; }

  /// Sets every byte, and waits for that.
  llvm::Error fill(uint8_t byte);
  /// Copy all bytes of the buffer. It is an error if the host memory has
  /// another number of bytes.
  llvm::Error copyFromHost(llvm::ArrayRef<char> source);
  llvm::Error copyToHost(llvm::MutableArrayRef<char> target) const;

  /// Returns an error if a kernel wrote to a red zone, with the offset of the
  /// first such byte from the start of the buffer. It is also an error if the
  /// buffer has no red zones. Zones are filled with 0xA5, so a kernel that
  /// writes this byte goes unnoticed.
  llvm::Error checkRedZones() const;

private:
  DeviceBuffer() = default;
  /// The addresses of the red zones, and their bytes.
  std::array<std::pair<uint64_t, int64_t>, 2> getRedZones() const;
  llvm::Error setRange(uint64_t start, uint8_t byte, int64_t count);
  llvm::Error checkCopy(size_t hostBytes) const;

  std::shared_ptr<Context> context;
  std::string name;
  uint64_t address = 0;
  int64_t bytes = 0;
  /// The address and the bytes of the memory with red zones, and the number of
  /// unmapped bytes that are reserved on either side of it.
  uint64_t base = 0;
  int64_t allocatedBytes = 0, guardBytes = 0;
  bool counted = false;
};

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_DEVICEBUFFER_H
