//===- TensorSpec.cpp - Element types and shapes --------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Compile/TensorSpec.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace flash::compile;

int64_t flash::compile::getSize(DType dtype) {
  switch (dtype) {
  case DType::I8:
  case DType::F8E4M3FN:
    return 1;
  case DType::F16:
  case DType::BF16:
  case DType::I16:
    return 2;
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::F64:
  case DType::I64:
    return 8;
  }
  llvm_unreachable("unknown dtype");
}

llvm::StringRef flash::compile::getName(DType dtype) {
  static constexpr llvm::StringLiteral names[] = {
      "f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "f8E4M3FN"};
  return names[static_cast<int>(dtype)];
}

bool flash::compile::isFloat(DType dtype) {
  return dtype <= DType::F64 || dtype == DType::F8E4M3FN;
}

bool flash::compile::isPromoted(DType dtype) { return dtype <= DType::F64; }

std::optional<DType> flash::compile::getDType(mlir::Type type) {
  if (type.isF16())
    return DType::F16;
  if (type.isBF16())
    return DType::BF16;
  if (type.isF32())
    return DType::F32;
  if (type.isF64())
    return DType::F64;
  if (mlir::isa<mlir::Float8E4M3FNType>(type))
    return DType::F8E4M3FN;
  for (DType dtype : {DType::I8, DType::I16, DType::I32, DType::I64})
    if (type.isSignlessInteger(8 * getSize(dtype)))
      return dtype;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// TensorSpec
//===----------------------------------------------------------------------===//

llvm::Expected<TensorSpec> TensorSpec::create(DType dtype,
                                              llvm::ArrayRef<int64_t> shape) {
  TensorSpec spec{dtype, llvm::SmallVector<int64_t, 4>(shape)};
  // Compiled code multiplies sizes and strides in any order, so the product
  // without the zeros must fit too.
  int64_t bytes = getSize(dtype);
  for (int64_t size : shape) {
    if (size < 0)
      return llvm::createStringError(
          llvm::formatv("the size {0} in {1} is negative", size, spec.str()));
    if (llvm::MulOverflow(bytes, std::max<int64_t>(size, 1), bytes))
      return llvm::createStringError(llvm::formatv(
          "a tensor of {0} has more bytes than a 64-bit machine can address",
          spec.str()));
  }
  return spec;
}

int64_t TensorSpec::getNumElements() const {
  return llvm::product_of(shape, int64_t(1));
}

std::string TensorSpec::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (int64_t size : shape)
    os << size << 'x';
  os << getName(dtype);
  return text;
}
