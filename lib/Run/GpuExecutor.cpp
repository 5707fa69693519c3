//===- GpuExecutor.cpp - Running kernels on a GPU -------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuExecutor.h"

#include "StridedCopy.h"
#include "flash/Runtime/Cuda/Measure.h"
#include "llvm/Support/FormatVariadic.h"

namespace cuda = flash::cuda;
using namespace flash::run;
using cuda::BufferOptions;
using cuda::DeviceBuffer;
using flash::runtime::Invocation;
using flash::runtime::TensorArgument;
using llvm::createStringError;
using llvm::formatv;
using llvm::SmallVector;

std::vector<char> GpuExecutor::lay(const HostTensor &input, const GpuCall &call,
                                   size_t index) const {
  std::vector<char> bytes(getExtent(input.getSpec(), call.strides[index]),
                          '\xFF');
  scatter(input.getSpec(), call.strides[index], input.getBytes().data(),
          bytes.data());
  return bytes;
}

llvm::Expected<GpuCall>
GpuExecutor::prepare(llvm::ArrayRef<HostTensor> inputs) {
  GpuCall call;
  std::vector<TensorArgument> tensors;
  for (const HostTensor &input : inputs)
    call.strides.push_back(getStrides(input.getSpec().shape, layout));
  // The sizes of buffers do not depend on addresses, which come later.
  for (auto [input, strides] : llvm::zip_equal(inputs, call.strides))
    tensors.push_back({0, input.getSpec().shape, strides});
  if (llvm::Error error = host.prepare(tensors, call.invocation))
    return std::move(error);
  if (llvm::Error error = allocate(inputs, call))
    return std::move(error);
  for (auto [tensor, buffer] : llvm::zip_equal(tensors, *call.arguments))
    tensor.address = buffer.getAddress();
  SmallVector<uint64_t> results, scratch;
  for (const DeviceBuffer &buffer : call.results)
    results.push_back(buffer.getAddress());
  for (const DeviceBuffer &buffer : call.scratch)
    scratch.push_back(buffer.getAddress());
  if (llvm::Error error =
          loaded->bind(host, tensors, results, scratch, call.invocation))
    return std::move(error);
  if (llvm::Error error = allowLaunches(call))
    return std::move(error);
  return std::move(call);
}

llvm::Error GpuExecutor::allocate(llvm::ArrayRef<HostTensor> inputs,
                                  GpuCall &call) {
  BufferOptions options;
  options.redZoneBytes = checked ? cuda::checkedRedZoneBytes : 0;
  options.poison = checked;
  // Alternately, so that a check, which has two runs, sees both ends of all.
  if (checked)
    options.guard = checkedRuns++ % 2 ? cuda::Guard::End : cuda::Guard::Start;
  gpu.device.resetPeakMemory();
  int64_t before = gpu.device.getMemoryUse().current, results = 0;
  call.arguments = std::make_shared<std::vector<DeviceBuffer>>();
  // What is checked needs red zones of its own.
  bool isResident = gpu.residentArguments && !checked;
  if (isResident)
    call.arguments = gpu.residentArguments;
  auto add = [&](std::vector<DeviceBuffer> &buffers, llvm::StringRef kind,
                 int64_t bytes, int64_t alignment) -> llvm::Error {
    options.endAlignment = alignment;
    auto buffer = DeviceBuffer::allocate(
        gpu.device, formatv("{0} {1}", kind, buffers.size()).str(), bytes,
        options);
    if (!buffer)
      return buffer.takeError();
    buffers.push_back(std::move(*buffer));
    return llvm::Error::success();
  };
  for (auto [i, input] : llvm::enumerate(inputs)) {
    if (i < call.arguments->size())
      continue;
    std::vector<char> bytes = lay(input, call, i);
    // TMA needs 16.
    int64_t alignment = std::max<int64_t>(host.arguments[i].alignment, 16);
    if (llvm::Error error =
            add(*call.arguments, "argument", bytes.size(), alignment))
      return error;
    results += bytes.size();
    if (llvm::Error error = call.arguments->back().copyFromHost(bytes))
      return error;
  }
  for (size_t i = 0; i != host.results.size(); ++i) {
    int64_t bytes = call.invocation.getResult(host, i).bytes;
    if (llvm::Error error =
            add(call.results, "result", bytes, host.results[i].alignment))
      return error;
    results += bytes;
  }
  // One by one, so that accesses past the end of one are seen.
  for (const Invocation::Scratch &scratch : call.invocation.scratch)
    if (llvm::Error error = add(call.scratch, "scratch", scratch.bytes,
                                runtime::HostProgram::alignment))
      return error;
  peakBytes = gpu.device.getMemoryUse().peak - before - results;
  return llvm::Error::success();
}

llvm::Error GpuExecutor::allowLaunches(const GpuCall &call) {
  machine.kernels.clear();
  if (llvm::Error error = loaded->allowShared(call.invocation))
    return error;
  for (const Invocation::Launch &launch : call.invocation.launches) {
    const cuda::Function &function = loaded->getFunction(launch.index);
    cuda::LaunchShape shape = getShape(launch);
    auto occupancy = function.getOccupancy(shape);
    if (!occupancy)
      return occupancy.takeError();
    const cuda::FunctionInfo &info = function.getInfo();
    if (*occupancy == 0)
      return createStringError(formatv(
          "kernel '{0}' does not fit on {1}: no multiprocessor has {2} "
          "registers for each of {3} threads and {4} bytes of shared memory; "
          "use smaller tiles (--schedule)",
          info.name, machine.name, info.registers,
          shape.block[0] * shape.block[1] * shape.block[2],
          info.staticSharedBytes + shape.dynamicSharedBytes));
    KernelUse use;
    use.name = info.name;
    use.registers = info.registers;
    use.localBytes = info.localBytes;
    use.sharedBytes = info.staticSharedBytes + shape.dynamicSharedBytes;
    use.blocks = shape.grid[0] * shape.grid[1] * shape.grid[2];
    use.threads = shape.block[0] * shape.block[1] * shape.block[2];
    use.occupancy = *occupancy;
    machine.kernels.push_back(std::move(use));
  }
  return llvm::Error::success();
}

llvm::Error GpuExecutor::checkMemory(llvm::ArrayRef<HostTensor> inputs,
                                     const GpuCall &call) {
  for (const auto *buffers :
       {static_cast<const std::vector<DeviceBuffer> *>(call.arguments.get()),
        &call.results, &call.scratch})
    for (const DeviceBuffer &buffer : *buffers)
      if (llvm::Error error = buffer.checkRedZones())
        return error;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    std::vector<char> before = lay(input, call, i), after(before.size());
    if (llvm::Error error = (*call.arguments)[i].copyToHost(after))
      return error;
    auto [left, right] =
        std::mismatch(before.begin(), before.end(), after.begin());
    if (left != before.end())
      return createStringError(
          formatv("a kernel wrote to argument {0}, at byte {1}", i,
                  left - before.begin()));
  }
  return llvm::Error::success();
}

llvm::Expected<HostTensor> GpuExecutor::takeResult(const GpuCall &call,
                                                   size_t index) {
  Invocation::Result result = call.invocation.getResult(host, index);
  auto spec = TensorSpec::create(resultTypes[index], result.sizes);
  if (!spec)
    return spec.takeError();
  SmallVector<int64_t, 4> strides(result.strides);
  const DeviceBuffer &buffer = call.results[index];
  if (getExtent(*spec, strides) > buffer.getNumBytes())
    return createStringError(formatv(
        "result {0} has more elements than the memory behind it", index));
  auto tensor = HostTensor::allocate(*spec, Placement::Aligned);
  if (!tensor)
    return tensor.takeError();
  std::vector<char> bytes(buffer.getNumBytes());
  if (llvm::Error error = buffer.copyToHost(bytes))
    return std::move(error);
  gather(*spec, strides, bytes.data(), static_cast<char *>(tensor->getData()));
  return tensor;
}

llvm::Expected<std::vector<HostTensor>>
GpuExecutor::run(llvm::ArrayRef<HostTensor> inputs) {
  auto call = prepare(inputs);
  if (!call)
    return call.takeError();
  if (llvm::Error error = loaded->launch(host, call->invocation, {}))
    return std::move(error);
  if (llvm::Error error = gpu.device.synchronize())
    return std::move(error);
  if (checked)
    if (llvm::Error error = checkMemory(inputs, *call))
      return std::move(error);
  std::vector<HostTensor> results;
  for (size_t i = 0; i < host.results.size(); ++i) {
    auto result = takeResult(*call, i);
    if (!result)
      return result.takeError();
    results.push_back(std::move(*result));
  }
  return results;
}

llvm::Expected<Timing> GpuExecutor::benchmark(llvm::ArrayRef<HostTensor> inputs,
                                              const Effort &effort) {
  auto call = prepare(inputs);
  if (!call)
    return call.takeError();
  Timing timing;
  timing.peakBytes = peakBytes;
  cuda::MeasureOptions options;
  options.warmUpRuns = effort.warmUpRuns;
  options.minRuns = effort.minRuns;
  options.budgetSeconds = effort.seconds;
  options.hopelessSeconds = effort.hopeless;
  auto measurement = cuda::measure(
      gpu.device,
      [&](const cuda::Stream &stream) {
        return loaded->launch(host, call->invocation, stream);
      },
      options);
  if (!measurement)
    return measurement.takeError();
  // The GPU keeps its clock for a while after the last kernel.
  cuda::Readings readings = gpu.telemetry.read();
  machine.clockMHz = readings.clockMHz;
  machine.memoryClockMHz = readings.memoryClockMHz;
  machine.powerWatts = readings.powerWatts;
  timing.runs = measurement->seconds.size();
  timing.median = measurement->getMedian();
  timing.min = measurement->getMin();
  timing.spread = measurement->getSpread();
  return timing;
}
