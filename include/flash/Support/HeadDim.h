//===- HeadDim.h - Which head dimensions there are --------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SUPPORT_HEADDIM_H
#define FLASH_SUPPORT_HEADDIM_H

#include <cstdint>

namespace flash {

/// Head dimensions, of keys and of values, are multiples of 8 up to the
/// largest.
constexpr int64_t headDimMultiple = 8, largestHeadDim = 576;

constexpr bool isHeadDim(int64_t size) {
  return size >= headDimMultiple && size <= largestHeadDim &&
         size % headDimMultiple == 0;
}

} // namespace flash

#endif // FLASH_SUPPORT_HEADDIM_H
