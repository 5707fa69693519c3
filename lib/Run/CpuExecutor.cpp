//===- CpuExecutor.cpp - Running compiled code on the CPU -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CpuExecutor.h"
#include "flash/Compile/CompileOptions.h"
#include "flash/Compile/Stopwatch.h"
#include "flash/Runtime/Cpu.h"

using namespace flash::run;
using llvm::SmallVector;

Executor::~Executor() = default;

/// The result in a buffer of the runtime, as a dense tensor.
static llvm::Expected<HostTensor> takeResult(flash::OwnedBuffer buffer,
                                             DType dtype) {
  flash::StridedBuffer view = buffer.get();
  auto spec = TensorSpec::create(dtype, view.sizes);
  if (!spec)
    return spec.takeError();
  bool dense = true;
  int64_t stride = 1;
  for (size_t d = view.sizes.size(); d-- > 0; stride *= view.sizes[d])
    dense &= view.sizes[d] == 1 || view.strides[d] == stride;
  if (dense || spec->getNumElements() == 0) {
    HostTensor::Memory memory(
        new flash::OwnedBuffer(std::move(buffer)),
        [](void *owner) { delete static_cast<flash::OwnedBuffer *>(owner); });
    return HostTensor(std::move(*spec), std::move(memory), view.data);
  }
  return llvm::createStringError(
      "the program returns a tensor that is not dense");
}

llvm::Expected<std::vector<HostTensor>>
CpuExecutor::run(llvm::ArrayRef<HostTensor> inputs) {
  SmallVector<flash::StridedBuffer> buffers;
  for (const HostTensor &input : inputs) {
    llvm::ArrayRef<int64_t> shape = input.getSpec().shape;
    flash::StridedBuffer buffer{const_cast<void *>(input.getData()),
                                SmallVector<int64_t, 4>(shape),
                                SmallVector<int64_t, 4>(shape.size(), 1)};
    for (size_t d = shape.size(); d-- > 1;)
      buffer.strides[d - 1] = buffer.strides[d] * shape[d];
    buffers.push_back(std::move(buffer));
  }

  int64_t before = flash::runtime::getMemoryUse().current;
  flash::runtime::resetPeakMemory();
  flash::runtime::resetTileCounts();
  SmallVector<flash::OwnedBuffer> owned;
  if (llvm::Error error = executable->invoke(buffers, owned))
    return error;
  tileCounts = flash::runtime::getTileCounts();
  flash::runtime::MemoryUse use = flash::runtime::getMemoryUse();
  peakBytes = use.peak - before;

  std::vector<HostTensor> results;
  for (auto [buffer, dtype] : llvm::zip_equal(owned, resultTypes)) {
    auto result = takeResult(std::move(buffer), dtype);
    if (!result)
      return result.takeError();
    peakBytes -= result->getSpec().getNumBytes();
    results.push_back(std::move(*result));
  }
  peakBytes = std::max<int64_t>(peakBytes, 0);
  return results;
}

void CpuExecutor::setChecked(bool checked) {
  flash::runtime::setPoison(checked);
}

llvm::Expected<Timing> CpuExecutor::benchmark(llvm::ArrayRef<HostTensor> inputs,
                                              const Effort &effort) {
  constexpr double patience = 4.0;
  Timing timing;
  std::vector<double> seconds;
  double total = 0;
  for (bool warm = false;; warm = true) {
    Stopwatch watch;
    auto results = run(inputs);
    double elapsed = watch.lap();
    if (!results)
      return results.takeError();
    timing.peakBytes = std::max(timing.peakBytes, peakBytes);
    if (!warm && elapsed < patience)
      continue; // Page faults and cold caches.
    seconds.push_back(elapsed);
    total += elapsed;
    size_t runs = seconds.size();
    bool isHopeless =
        runs >= 2 &&
        *std::min_element(seconds.begin(), seconds.end()) >= effort.hopeless;
    if (isHopeless || runs >= 100 ||
        (runs >= effort.minRuns && total >= effort.seconds) ||
        (runs >= 2 && total >= patience) || total >= 2 * patience)
      break;
  }
  llvm::sort(seconds);
  size_t runs = seconds.size();
  timing.runs = runs;
  timing.min = seconds.front();
  timing.median = (seconds[(runs - 1) / 2] + seconds[runs / 2]) / 2;
  timing.spread =
      (seconds[runs - 1 - runs / 4] - seconds[runs / 4]) / 2 / timing.median;
  return timing;
}

Machine CpuExecutor::getMachine() const {
  Machine machine;
  machine.name = compile::getHostDevice(compile::Target::Cpu);
  machine.threads = flash::runtime::getThreadCount();
  return machine;
}
