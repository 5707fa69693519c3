//===- Measure.cpp - Timing work on a device ------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/Cuda/Measure.h"

#include "Context.h"
#include "llvm/ADT/STLExtras.h"
#include <chrono>

using namespace flash::cuda;

//===----------------------------------------------------------------------===//
// L2Flush
//===----------------------------------------------------------------------===//

llvm::Expected<L2Flush> L2Flush::create(const Device &device) {
  BufferOptions options;
  options.counted = false;
  auto buffer = DeviceBuffer::allocate(device, "L2 flush",
                                       2 * device.getInfo().l2Bytes, options);
  if (!buffer)
    return buffer.takeError();
  return L2Flush(device.getContext(), std::move(*buffer));
}

llvm::Error L2Flush::run(const Stream &stream) const {
  if (buffer.getNumBytes() == 0)
    return llvm::Error::success();
  if (llvm::Error error = context->enter())
    return error;
  return context->call("cannot flush the L2 cache",
                       context->getApi().cuMemsetD8Async,
                       CUdeviceptr(buffer.getAddress()), uint8_t(0),
                       size_t(buffer.getNumBytes()), stream.getHandle());
}

//===----------------------------------------------------------------------===//
// Measurement
//===----------------------------------------------------------------------===//

static std::vector<double> getSorted(std::vector<double> values) {
  llvm::sort(values);
  return values;
}

double Measurement::getMedian() const {
  std::vector<double> sorted = getSorted(seconds);
  size_t runs = sorted.size();
  return (sorted[(runs - 1) / 2] + sorted[runs / 2]) / 2;
}

double Measurement::getMin() const { return getSorted(seconds).front(); }

double Measurement::getSpread() const {
  std::vector<double> sorted = getSorted(seconds);
  size_t runs = sorted.size();
  double distance = sorted[runs - 1 - runs / 4] - sorted[runs / 4];
  return distance == 0 ? 0 : distance / 2 / getMedian();
}

llvm::Expected<Measurement>
flash::cuda::measure(const Device &device,
                     llvm::function_ref<llvm::Error(const Stream &)> run,
                     const MeasureOptions &options, const Stream &stream) {
  std::optional<L2Flush> flush;
  if (options.flushL2) {
    auto created = L2Flush::create(device);
    if (!created)
      return created.takeError();
    flush = std::move(*created);
  }
  auto start = Event::create(device);
  if (!start)
    return start.takeError();
  auto stop = Event::create(device);
  if (!stop)
    return stop.takeError();

  // The flush also keeps the device busy while the host queues the rest, so
  // that the time it takes to launch is not measured.
  auto runOnce = [&]() -> llvm::Expected<double> {
    if (flush)
      if (llvm::Error error = flush->run(stream))
        return error;
    if (llvm::Error error = start->record(stream))
      return error;
    if (llvm::Error error = run(stream))
      return error;
    if (llvm::Error error = stop->record(stream))
      return error;
    if (llvm::Error error = stop->wait())
      return error;
    return stop->getSecondsSince(*start);
  };

  using Clock = std::chrono::steady_clock;
  auto began = Clock::now();
  auto getElapsed = [&] {
    return std::chrono::duration<double>(Clock::now() - began).count();
  };
  for (unsigned i = 0; i < options.warmUpRuns; ++i) {
    auto seconds = runOnce();
    if (!seconds)
      return seconds.takeError();
    if (getElapsed() >= options.patienceSeconds)
      break;
  }

  began = Clock::now();
  Measurement measurement;
  while (true) {
    auto seconds = runOnce();
    if (!seconds)
      return seconds.takeError();
    measurement.seconds.push_back(*seconds);
    size_t runs = measurement.seconds.size();
    if (runs == 3 && measurement.getMin() >= options.hopelessSeconds)
      return measurement;
    if (runs >= options.maxRuns || getElapsed() >= options.patienceSeconds ||
        (runs >= options.minRuns && getElapsed() >= options.budgetSeconds))
      return measurement;
  }
}
