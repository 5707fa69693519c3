//===- TensorMap.h - How TMA copies read a tensor ---------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a tensor map describes, and what the hardware requires of it. This file
// does not depend on the driver, which encodes tensor maps
// (Runtime/Cuda/TensorMap.h).
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_TENSORMAP_H
#define FLASH_RUNTIME_TENSORMAP_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>

namespace flash::runtime {

/// Element types of tensor maps. The values are the driver's, of the type
/// CUtensorMapDataType.
enum class TensorMapElement {
  I8 = 0,
  I32 = 3,
  I64 = 5,
  F16 = 6,
  F32 = 7,
  F64 = 8,
  BF16 = 9,
};

/// The name of the type in MLIR, such as "bf16".
llvm::StringRef getName(TensorMapElement element);
/// The size of an element in bytes.
int64_t getBytes(TensorMapElement element);

/// The address, the strides in bytes, and the bytes of a row of the box are
/// multiples of this number.
inline constexpr int64_t tensorMapAlignment = 16;
/// The largest size of a dimension, in elements.
inline constexpr int64_t maxTensorMapSize = int64_t(1) << 32;
/// Strides in bytes are less than this number.
inline constexpr int64_t tensorMapStrideLimit = int64_t(1) << 40;
/// The largest size of a box along a dimension, in elements.
inline constexpr int64_t maxTensorMapBox = 256;
/// The largest number of dimensions.
inline constexpr unsigned maxTensorMapRank = 5;

/// A tensor in device memory and the box that one copy moves. Dimensions are
/// outermost first, as in MLIR.
struct TensorMapOptions {
  TensorMapElement element = TensorMapElement::F16;
  /// A multiple of 16.
  uint64_t address = 0;
  /// The number of elements along each of 1 to 5 dimensions, from 1 to 2^32. If
  /// a box extends beyond the tensor, its elements there are read as 0.
  llvm::ArrayRef<int64_t> sizes;
  /// The bytes from one element to the next along each dimension but the last:
  /// multiples of 16 from 0 to below 2^40. In the last dimension elements are
  /// contiguous.
  llvm::ArrayRef<int64_t> byteStrides;
  /// The elements of a box along each dimension, from 1 to 256. The bytes of a
  /// row of the box are a multiple of 16, and at most `swizzleBytes` if there
  /// is a swizzle.
  llvm::ArrayRef<int64_t> box;
  /// The span in bytes of the swizzle in shared memory: 32, 64 or 128, or 0 for
  /// no swizzle.
  int swizzleBytes = 0;
  /// How many bytes the L2 cache fetches at least: 64, 128, 256, or 0 for no
  /// more than the copy reads.
  int l2PromotionBytes = 256;
};

/// An encoded tensor map, which is a parameter of a kernel, passed by value.
struct alignas(128) TensorMap {
  uint64_t words[16];
};

/// A message about a rule of cuTensorMapEncodeTiled that the options break;
/// empty if they break none. The driver itself does not say which rule is
/// broken.
std::string findBrokenRule(const TensorMapOptions &options);

} // namespace flash::runtime

#endif // FLASH_RUNTIME_TENSORMAP_H
