//===- Stream.h - Order of work on a device, and waiting for it -*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_CUDA_STREAM_H
#define FLASH_RUNTIME_CUDA_STREAM_H

#include "flash/Runtime/Cuda/Device.h"

namespace flash::cuda {

struct CUstream_st;
struct CUevent_st;

/// A queue of work. A default-constructed one is the driver's default stream,
/// with which created streams stay in order.
class Stream {
public:
  Stream() = default;
  static llvm::Expected<Stream> create(const Device &device);
  /// A `CUstream` or `cudaStream_t` of someone else, who destroys it.
  static Stream borrow(void *handle);
  Stream(Stream &&other);
  Stream &operator=(Stream &&other);
  ~Stream();

  CUstream_st *getHandle() const { return handle; }
  bool isBorrowed() const { return handle && !context; }

private:
  /// Null unless this object owns the handle.
  std::shared_ptr<Context> context;
  CUstream_st *handle = nullptr;
};

/// A point in a stream that can be waited for, and whose time is taken.
class Event {
public:
  static llvm::Expected<Event> create(const Device &device);
  Event(Event &&other);
  Event &operator=(Event &&other);
  ~Event();

  llvm::Error record(const Stream &stream = {});

  /// Whether all work before the point is done. An event that was never
  /// recorded is done.
  llvm::Expected<bool> isDone() const;

  /// Polls until the point is reached. After `seconds`, or the device's
  /// time-out, the device is lost and the error says which kernels ran.
  llvm::Error wait(std::optional<double> seconds = std::nullopt) const;

  /// Seconds between two points that were reached, to about 0.5 us.
  llvm::Expected<double> getSecondsSince(const Event &start) const;

private:
  Event(std::shared_ptr<Context> context, CUevent_st *handle);

  std::shared_ptr<Context> context;
  CUevent_st *handle = nullptr;
  CUstream_st *stream = nullptr;
  /// How many kernels had been launched at the last record.
  uint64_t launches = 0;
};

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_STREAM_H
