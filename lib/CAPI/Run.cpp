//===- Run.cpp - Running kernels on the CPU -------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

#include "flash/Runtime/Cpu.h"
#include "llvm/Support/FormatVariadic.h"

using flash::capi::fail;
using llvm::formatv;

struct FlashBuffer {
  flash::OwnedBuffer buffer;
};

/// Why a tensor is none that the kernel takes; empty if it is.
static std::string findFault(const FlashKernel::Type &type,
                             const FlashTensor &tensor) {
  std::string fault = flash::capi::findFault(tensor, type.sizes.size());
  if (!fault.empty())
    return fault;
  for (auto [d, size] : llvm::enumerate(type.sizes)) {
    if (tensor.sizes[d] < 0)
      return formatv("has size {0} in dimension {1}", tensor.sizes[d], d);
    if (size != FLASH_DYNAMIC && size != tensor.sizes[d])
      return formatv("has size {0} in dimension {1}, expected {2}",
                     tensor.sizes[d], d, size);
  }
  auto address = reinterpret_cast<uintptr_t>(tensor.data);
  if (int64_t bytes = flash::compile::getSize(type.element); address % bytes)
    return formatv("is at the address {0:x}, which is not a multiple of {1}, "
                   "the bytes of an element",
                   address, bytes);
  return "";
}

FlashStatus flashKernelRun(const FlashKernel *kernel,
                           const FlashTensor *arguments, size_t numArguments,
                           FlashBuffer **results) {
  if (!kernel || (!arguments && numArguments) || !results)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashKernelRun: no argument may be null");
  if (!kernel->executable)
    return fail(FLASH_INVALID_ARGUMENT,
                formatv("flashKernelRun: the kernel is for {0}; launch it on a "
                        "device",
                        kernel->target));
  if (numArguments != kernel->arguments.size())
    return fail(FLASH_INVALID_TENSOR,
                formatv("the function takes {0} arguments, not {1}",
                        kernel->arguments.size(), numArguments));
  llvm::SmallVector<flash::StridedBuffer> inputs;
  for (size_t i = 0; i != numArguments; ++i) {
    const FlashTensor &tensor = arguments[i];
    std::string fault = findFault(kernel->arguments[i], tensor);
    if (!fault.empty())
      return fail(FLASH_INVALID_TENSOR, formatv("argument {0} {1}", i, fault));
    inputs.push_back({tensor.data,
                      {tensor.sizes, tensor.sizes + tensor.rank},
                      {tensor.strides, tensor.strides + tensor.rank}});
  }
  llvm::SmallVector<flash::OwnedBuffer> outputs;
  if (llvm::Error error = kernel->executable->invoke(inputs, outputs))
    return fail(FLASH_INVALID_TENSOR, std::move(error));
  for (auto [i, output] : llvm::enumerate(outputs))
    results[i] = new FlashBuffer{std::move(output)};
  return FLASH_SUCCESS;
}

FlashTensor flashBufferGetTensor(const FlashBuffer *buffer) {
  if (!buffer) {
    fail(FLASH_INVALID_ARGUMENT,
         "flashBufferGetTensor: buffer must not be null");
    return {nullptr, -1, nullptr, nullptr};
  }
  const flash::StridedBuffer &view = buffer->buffer.get();
  return {view.data, int32_t(view.sizes.size()), view.sizes.data(),
          view.strides.data()};
}

void flashBufferDestroy(FlashBuffer *buffer) { delete buffer; }

FlashStatus flashSetThreadCount(unsigned count) {
  if (count > flash::runtime::maxThreadCount)
    return fail(FLASH_INVALID_ARGUMENT,
                formatv("flashSetThreadCount: {0} threads are not from 0 to "
                        "{1}",
                        count, flash::runtime::maxThreadCount));
  flash::runtime::setThreadCount(count);
  return FLASH_SUCCESS;
}
