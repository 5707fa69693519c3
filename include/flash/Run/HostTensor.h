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

/// The position of a tensor in its memory.
enum class Placement {
  /// The data starts at a multiple of 64 bytes, which is fast to access.
  Aligned,
  /// The data ends at the end of a page, and the next page cannot be accessed.
  /// A read behind the end then faults.
  Guarded,
};

/// A dense row-major tensor, which owns its memory.
class HostTensor {
public:
  using Memory = std::unique_ptr<void, std::function<void(void *)>>;

  /// Allocates a tensor of zeros. Fails if there is not enough memory.
  static llvm::Expected<HostTensor> allocate(TensorSpec spec,
                                             Placement placement);
  /// Takes over memory that was allocated elsewhere. `data` points into it;
  /// `memory` frees it.
  HostTensor(TensorSpec spec, Memory memory, void *data)
      : spec(std::move(spec)), memory(std::move(memory)), data(data) {}

  const TensorSpec &getSpec() const { return spec; }
  void *getData() { return data; }
  const void *getData() const { return data; }
  llvm::ArrayRef<char> getBytes() const {
    return {static_cast<const char *>(data), size_t(spec.getNumBytes())};
  }

  /// The element with this index in row-major order. f64 can represent every
  /// value of every element type except for large values of i64.
  double get(int64_t element) const;
  /// Sets an element. The value is rounded to nearest, with ties to even.
  /// Integers are clamped to the range of their type, and NaN becomes 0.
  void set(int64_t element, double value);

  /// A copy with another element type, whose values are rounded as `set` does.
  llvm::Expected<HostTensor> convert(DType dtype, Placement placement) const;

private:
  TensorSpec spec;
  Memory memory;
  void *data;
};

/// The bytes of memory that can be allocated without swapping; nothing if that
/// is not known.
std::optional<int64_t> getAvailableMemory();

} // namespace flash::run

#endif // FLASH_RUN_HOSTTENSOR_H
