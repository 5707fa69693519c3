//===- HostTensor.h - Tensors in host memory --------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_HOSTTENSOR_H
#define FLASH_RUN_HOSTTENSOR_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <memory>
#include <optional>

namespace flash::run {

/// The element types that flash-run can hold, make up and compare.
enum class DType { F16, BF16, F32, F64, I8, I16, I32, I64 };

/// Size of one element in bytes.
int64_t getSize(DType dtype);
/// The type's name in MLIR, such as "bf16".
llvm::StringRef getName(DType dtype);
bool isFloat(DType dtype);
/// The dtype of an MLIR type, or nothing where flash-run has none for it.
std::optional<DType> getDType(mlir::Type type);

/// A shape and an element type. The number of bytes is known to fit in an
/// int64_t when the value came from `create`.
struct TensorSpec {
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t, 4> shape;

  /// Checks that no size is negative and that the bytes can be counted.
  static llvm::Expected<TensorSpec> create(DType dtype,
                                           llvm::ArrayRef<int64_t> shape);
  int64_t getNumElements() const;
  int64_t getNumBytes() const { return getNumElements() * getSize(dtype); }
  /// For messages: "2x16x64xf32".
  std::string str() const;
};

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
