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

/// At which end of a buffer any access outside of it faults.
enum class Guard { None, Start, End };

/// How a buffer is set up.
struct BufferOptions {
  /// Bytes before and after the buffer that nobody may write, for
  /// `checkRedZones`; rounded up to a multiple of 256, so that the buffer stays
  /// as aligned as the driver makes it.
  int64_t redZoneBytes = 0;
  /// Fills the buffer with 0xFF, which reads as NaN.
  bool poison = false;
  /// Whether the buffer counts in `Device::getMemoryUse`.
  bool counted = true;
  /// A guarded buffer has memory of its own, in pages of mostly 2 MB between
  /// unmapped addresses. It lies at their start or at their end, and all else
  /// in them is red zone, at least `redZoneBytes`. Devices that cannot map
  /// memory have an ordinary buffer instead.
  Guard guard = Guard::None;
  /// What the address of a buffer that is guarded at its end is a multiple of:
  /// fewer bytes than this lie between it and the unmapped addresses. A power
  /// of 2.
  int64_t endAlignment = 256;
};

/// The red zones that checks use.
inline constexpr int64_t checkedRedZoneBytes = 4096;

/// Owned device memory. Copies to and from it first wait for all kernels, at
/// most for the device's time-out, and return when they are done.
class DeviceBuffer {
public:
  /// `name` is for messages. A buffer of 0 bytes has an address all the same.
  static llvm::Expected<DeviceBuffer>
  allocate(const Device &device, llvm::StringRef name, int64_t bytes,
           const BufferOptions &options = {});
  DeviceBuffer(DeviceBuffer &&other);
  DeviceBuffer &operator=(DeviceBuffer &&other);
  ~DeviceBuffer();

  const std::string &getName() const { return name; }
  int64_t getNumBytes() const { return bytes; }
  /// The address in device memory, aligned to 256 bytes, or to `endAlignment`
  /// if the buffer is guarded at its end. As a kernel's argument, pass a
  /// pointer to this value.
  const uint64_t &getAddress() const { return address; }

  /// Sets every byte.
  llvm::Error fill(uint8_t byte);
  /// Copies exactly the bytes of the buffer.
  llvm::Error copyFromHost(llvm::ArrayRef<char> source);
  llvm::Error copyToHost(llvm::MutableArrayRef<char> target) const;

  /// An error if a kernel wrote to a red zone. It names the offset of the first
  /// overwritten byte from the buffer's start. A write of the very byte that
  /// the zones are filled with (0xA5) goes unnoticed.
  llvm::Error checkRedZones() const;

private:
  DeviceBuffer() = default;
  /// Addresses and numbers of bytes.
  std::array<std::pair<uint64_t, int64_t>, 2> getRedZones() const;
  llvm::Error setRange(uint64_t start, uint8_t byte, int64_t count);
  llvm::Error checkCopy(size_t hostBytes) const;

  std::shared_ptr<Context> context;
  std::string name;
  uint64_t address = 0;
  int64_t bytes = 0;
  /// All of its memory, red zones included, and how many unmapped bytes are
  /// reserved on either side of that.
  uint64_t base = 0;
  int64_t allocatedBytes = 0, guardBytes = 0;
  bool counted = false;
};

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_DEVICEBUFFER_H
