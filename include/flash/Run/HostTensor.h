//===- HostTensor.h - Tensors in host memory --------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_HOSTTENSOR_H
#define FLASH_RUN_HOSTTENSOR_H

#include "flash/Compile/TensorSpec.h"
#include <functional>
#include <memory>
#include <optional>

namespace flash::run {

using namespace compile;

/// How the memory of a tensor is laid out.
enum class Placement {
  /// The data starts at a multiple of 64 bytes, as fast code likes it.
  Aligned,
  /// The data ends where a page ends, and the next page is inaccessible, so
  /// that a read past the end faults rather than goes unnoticed.
  Guarded,
};

/// A dense row-major tensor and the memory it lies in.
class HostTensor {
public:
  using Memory = std::unique_ptr<void, std::function<void(void *)>>;

  /// A tensor of zeros.
  static llvm::Expected<HostTensor> allocate(TensorSpec spec,
                                             Placement placement);
  /// Takes over memory that someone else allocated; `data` points into it.
  HostTensor(TensorSpec spec, Memory memory, void *data)
      : spec(std::move(spec)), memory(std::move(memory)), data(data) {}

  const TensorSpec &getSpec() const { return spec; }
  void *getData() { return data; }
  const void *getData() const { return data; }
  llvm::ArrayRef<char> getBytes() const {
    return {static_cast<const char *>(data), size_t(spec.getNumBytes())};
  }

  /// The element with the given row-major number. f64 holds every value of
  /// every dtype but large i64.
  double get(int64_t element) const;
  /// Rounds to nearest even; integers saturate.
  void set(int64_t element, double value);

  /// The same values with another element type.
  llvm::Expected<HostTensor> convert(DType dtype, Placement placement) const;

private:
  TensorSpec spec;
  Memory memory;
  void *data;
};

/// Bytes that can be allocated without swapping, or nothing if unknown.
std::optional<int64_t> getAvailableMemory();

} // namespace flash::run

#endif // FLASH_RUN_HOSTTENSOR_H
