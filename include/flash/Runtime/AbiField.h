//===- AbiField.h - What a kernel is passed for one operand -----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The machine types of kernel parameters. No dependency on MLIR; which fields a
// type becomes is in Dialect/Nvx/IR/KernelAbi.h.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_ABIFIELD_H
#define FLASH_RUNTIME_ABIFIELD_H

#include <cstdint>

namespace flash {

/// TensorMap: the 128 bytes that describe a tensor to the copy engine (TMA).
enum class AbiType : uint8_t { Pointer, I32, I64, F32, F64, TensorMap };

/// What a field says about its operand.
enum class AbiRole : uint8_t { Pointer, Size, Stride, Scalar, TensorMap };

struct AbiField {
  AbiType type;
  AbiRole role;
  /// The dimension of a size or stride; otherwise 0.
  unsigned dimension = 0;
};

/// The strictest alignment of a parameter, in bytes.
inline constexpr unsigned maxAbiAlignment = 64;

/// Size in bytes.
inline unsigned getBytes(AbiType type) {
  if (type == AbiType::TensorMap)
    return 128;
  return type == AbiType::I32 || type == AbiType::F32 ? 4 : 8;
}

/// Alignment in bytes.
inline unsigned getAlignment(AbiType type) {
  return type == AbiType::TensorMap ? maxAbiAlignment : getBytes(type);
}

} // namespace flash

#endif // FLASH_RUNTIME_ABIFIELD_H
