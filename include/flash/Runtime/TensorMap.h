//===- TensorMap.h - How TMA copies read a tensor ---------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a tensor map says, and what the hardware requires of it. No dependency
// on the driver, which does the encoding (Runtime/Cuda/TensorMap.h).
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_TENSORMAP_H
#define FLASH_RUNTIME_TENSORMAP_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>

namespace flash::runtime {

/// Element types of tensor maps. The values are the driver's.
enum class TensorMapElement {
  I8 = 0,
  I32 = 3,
  I64 = 5,
  F16 = 6,
  F32 = 7,
  F64 = 8,
  BF16 = 9,
};

/// As MLIR names it, such as "bf16".
llvm::StringRef getName(TensorMapElement element);
/// The size of an element.
int64_t getBytes(TensorMapElement element);

/// Strides in bytes are multiples of it, and so is the address.
inline constexpr int64_t tensorMapAlignment = 16;
inline constexpr int64_t maxTensorMapSize = int64_t(1) << 32;
/// Strides in bytes are below it.
inline constexpr int64_t tensorMapStrideLimit = int64_t(1) << 40;
inline constexpr int64_t maxTensorMapBox = 256;
inline constexpr unsigned maxTensorMapRank = 5;

/// A tensor in device memory and the box that one copy moves. Dimensions are
/// outermost first, as in MLIR.
struct TensorMapOptions {
  TensorMapElement element = TensorMapElement::F16;
  /// A multiple of 16.
  uint64_t address = 0;
  /// Elements along each of 1 to 5 dimensions. What a box holds beyond them
  /// reads as 0.
  llvm::ArrayRef<int64_t> sizes;
  /// Bytes from one element to the next along each dimension but the last,
  /// whose elements are neighbours; multiples of 16.
  llvm::ArrayRef<int64_t> byteStrides;
  /// Elements of a box along each dimension, at most 256.
  llvm::ArrayRef<int64_t> box;
  /// Rows of this many bytes are swizzled in shared memory: 0, 32, 64 or 128.
  int swizzleBytes = 0;
  /// What the L2 cache fetches at least: 0 (no more than is read), 64, 128 or
  /// 256 bytes.
  int l2PromotionBytes = 256;
};

/// What a kernel takes by value as a parameter.
struct alignas(128) TensorMap {
  uint64_t words[16];
};

/// The rule of cuTensorMapEncodeTiled that is broken, which itself does not say
/// so. Empty if all are kept.
std::string findBrokenRule(const TensorMapOptions &options);

} // namespace flash::runtime

#endif // FLASH_RUNTIME_TENSORMAP_H
