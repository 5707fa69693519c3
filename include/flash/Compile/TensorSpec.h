//===- TensorSpec.h - Element types and shapes ------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_COMPILE_TENSORSPEC_H
#define FLASH_COMPILE_TENSORSPEC_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace flash::compile {

/// The element types that a function can take and return.
enum class DType { F16, BF16, F32, F64, I8, I16, I32, I64, F8E4M3FN };

/// The size of an element in bytes.
int64_t getSize(DType dtype);
/// The name of the type in MLIR, such as "bf16".
llvm::StringRef getName(DType dtype);
bool isFloat(DType dtype);
/// Whether a reference, which computes in f64, has f64 instead of this type:
/// true for f16, bf16, f32 and f64. Quantized elements are converted before
/// anything is computed with them, so they keep their type.
bool isPromoted(DType dtype);
/// The element type for an MLIR type; nothing if there is none.
std::optional<DType> getDType(mlir::Type type);

/// The shape and the element type of a tensor. If it was made by `create`, the
/// number of bytes fits in an int64_t.
struct TensorSpec {
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t, 4> shape;

  /// Fails if a size is negative, or if the number of bytes does not fit in an
  /// int64_t, even if sizes of 0 counted as 1.
  static llvm::Expected<TensorSpec> create(DType dtype,
                                           llvm::ArrayRef<int64_t> shape);
  int64_t getNumElements() const;
  int64_t getNumBytes() const { return getNumElements() * getSize(dtype); }
  /// The text for messages, such as "2x16x64xf32".
  std::string str() const;
};

} // namespace flash::compile

#endif // FLASH_COMPILE_TENSORSPEC_H
