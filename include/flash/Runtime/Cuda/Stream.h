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

/// A queue of work. A default-constructed stream is the driver's default
/// stream. Work on created streams is in order with work on the default stream.
class Stream {
public:
  Stream() = default;
  static llvm::Expected<Stream> create(const Device &device);
  /// A `CUstream` or `cudaStream_t` that belongs to someone else, who destroys
  /// it after this object was last used.
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

/// A point in a stream. It can be waited for, and has a time.
class Event {
public:
  static llvm::Expected<Event> create(const Device &device);
  Event(Event &&other);
  Event &operator=(Event &&other);
  ~Event();

  /// Records the point behind all work that was queued on the stream before.
  llvm::Error record(const Stream &stream = {});

  /// Whether all work before the point is done. True if the event was never
  /// recorded.
  llvm::Expected<bool> isDone() const;

  /// Waits, by polling, until all work before the point is done. If that takes
  /// longer than `seconds`, or than the time-out of the device if there is no
  /// value, the device is lost, and the error names the kernels that may still
  /// run.
  llvm::Error wait(std::optional<double> seconds = std::nullopt) const;

  /// The seconds from the point `start` to this point, which must both be done.
  /// The resolution is about 0.5 us.
  llvm::Expected<double> getSecondsSince(const Event &start) const;

private:
  Event(std::shared_ptr<Context> context, CUevent_st *handle);

  std::shared_ptr<Context> context;
  CUevent_st *handle = nullptr;
  CUstream_st *stream = nullptr;
  /// How many kernels had been launched when the point was recorded.
  uint64_t launches = 0;
};

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_STREAM_H
