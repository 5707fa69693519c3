//===- Stream.cpp - Order of work on a device, and waiting for it ---------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/Cuda/Stream.h"

#include "Context.h"
#include <utility>

using namespace flash::cuda;

//===----------------------------------------------------------------------===//
// Stream
//===----------------------------------------------------------------------===//

llvm::Expected<Stream> Stream::create(const Device &device) {
  Stream stream;
  Context &context = *device.getContext();
  if (llvm::Error error = context.enter())
    return error;
  // Flags 0: in order with the default stream, on which copies run.
  if (llvm::Error error =
          context.call("cannot create a stream",
                       context.getApi().cuStreamCreate, &stream.handle, 0u))
    return error;
  stream.context = device.getContext();
  return stream;
}

Stream Stream::borrow(void *handle) {
  Stream stream;
  stream.handle = static_cast<CUstream>(handle);
  return stream;
}

Stream::Stream(Stream &&other)
    : context(std::move(other.context)),
      handle(std::exchange(other.handle, nullptr)) {}

Stream &Stream::operator=(Stream &&other) {
  std::swap(context, other.context);
  std::swap(handle, other.handle);
  return *this;
}

Stream::~Stream() {
  if (context)
    context->release(context->getApi().cuStreamDestroy_v2, handle);
}

//===----------------------------------------------------------------------===//
// Event
//===----------------------------------------------------------------------===//

Event::Event(std::shared_ptr<Context> context, CUevent_st *handle)
    : context(std::move(context)), handle(handle) {}

llvm::Expected<Event> Event::create(const Device &device) {
  Context &context = *device.getContext();
  if (llvm::Error error = context.enter())
    return error;
  CUevent handle = nullptr;
  if (llvm::Error error = context.call("cannot create an event",
                                       context.getApi().cuEventCreate, &handle,
                                       /*Flags=*/0u))
    return error;
  return Event(device.getContext(), handle);
}

Event::Event(Event &&other)
    : context(std::move(other.context)),
      handle(std::exchange(other.handle, nullptr)), stream(other.stream),
      launches(other.launches) {}

Event &Event::operator=(Event &&other) {
  std::swap(context, other.context);
  std::swap(handle, other.handle);
  std::swap(stream, other.stream);
  std::swap(launches, other.launches);
  return *this;
}

Event::~Event() {
  if (context)
    context->release(context->getApi().cuEventDestroy_v2, handle);
}

llvm::Error Event::record(const Stream &onStream) {
  if (llvm::Error error = context->enter())
    return error;
  // Read first: another thread's launch after this may miss the event.
  uint64_t count = context->getLaunchCount();
  if (llvm::Error error = context->call("cannot record an event",
                                        context->getApi().cuEventRecord, handle,
                                        onStream.getHandle()))
    return error;
  stream = onStream.getHandle();
  launches = count;
  return llvm::Error::success();
}

llvm::Expected<bool> Event::isDone() const {
  if (llvm::Error error = context->enter())
    return error;
  CUresult result = context->getApi().cuEventQuery.function(handle);
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY)
    return result == CUDA_SUCCESS;
  return context->failCall(result, "cuEventQuery", "cannot query an event");
}

llvm::Error Event::wait(std::optional<double> seconds) const {
  if (llvm::Error error = context->enter())
    return error;
  return context->wait(handle, stream, launches,
                       seconds.value_or(context->getTimeout()));
}

llvm::Expected<double> Event::getSecondsSince(const Event &start) const {
  if (llvm::Error error = context->enter())
    return error;
  float milliseconds = 0;
  if (llvm::Error error = context->call("cannot take the time of two events",
                                        context->getApi().cuEventElapsedTime,
                                        &milliseconds, start.handle, handle))
    return error;
  return milliseconds / 1000.0;
}
