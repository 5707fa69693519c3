//===- AbiField.h - The parameters of a kernel for an operand ---*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The machine types of kernel parameters. This file does not depend on MLIR;
// `getAbiFields` (Dialect/Nvx/IR/KernelAbi.h) returns the fields of an MLIR
// type.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_ABIFIELD_H
#define FLASH_RUNTIME_ABIFIELD_H

#include <cstdint>

namespace flash {

/// The type of a parameter. A `TensorMap` has the 128 bytes that describe a
/// tensor to the copy engine (TMA).
enum class AbiType : uint8_t { Pointer, I32, I64, F32, F64, TensorMap };

/// What a parameter says about its operand: where it is, the size or the stride
/// of a dimension, its value, or how the copy engine addresses it.
enum class AbiRole : uint8_t { Pointer, Size, Stride, Scalar, TensorMap };

/// One parameter of a kernel.
struct AbiField {
  AbiType type;
  AbiRole role;
  /// The dimension of a size or stride; otherwise 0.
  unsigned dimension = 0;
};

/// The largest alignment of a parameter in bytes.
inline constexpr unsigned maxAbiAlignment = 64;

/// The size of a parameter in bytes.
inline unsigned getBytes(AbiType type) {
  if (type == AbiType::TensorMap)
    return 128;
  return type == AbiType::I32 || type == AbiType::F32 ? 4 : 8;
}

/// The alignment of a parameter in bytes.
inline unsigned getAlignment(AbiType type) {
  return type == AbiType::TensorMap ? maxAbiAlignment : getBytes(type);
}

} // namespace flash

#endif // FLASH_RUNTIME_ABIFIELD_H
