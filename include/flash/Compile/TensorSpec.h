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

/// Size of one element in bytes.
int64_t getSize(DType dtype);
/// The type's name in MLIR, such as "bf16".
llvm::StringRef getName(DType dtype);
bool isFloat(DType dtype);
/// Whether programs of f64 have f64 instead of it: elements that are converted
/// before anything is computed stay what they are.
bool isPromoted(DType dtype);
/// The dtype of an MLIR type, or nothing where there is none for it.
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

} // namespace flash::compile

#endif // FLASH_COMPILE_TENSORSPEC_H
