//===- TensorMap.h - How TMA copies read a tensor ---------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_CUDA_TENSORMAP_H
#define FLASH_RUNTIME_CUDA_TENSORMAP_H

#include "flash/Runtime/Cuda/Device.h"
#include "llvm/ADT/ArrayRef.h"

namespace flash::cuda {

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
};

/// What a kernel takes by value as a parameter.
struct alignas(128) TensorMap {
  uint64_t words[16];
};

/// Checks the limits of the hardware, with a message where one is broken, and
/// has the driver encode the map. Devices from sm_90 on, drivers from 12.0 on.
/// `name` is for messages.
llvm::Expected<TensorMap> encodeTensorMap(const Device &device,
                                          llvm::StringRef name,
                                          const TensorMapOptions &options);

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_TENSORMAP_H
