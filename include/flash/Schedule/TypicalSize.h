//===- TypicalSize.h - Sizes that share a schedule --------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SCHEDULE_TYPICALSIZE_H
#define FLASH_SCHEDULE_TYPICALSIZE_H

#include "llvm/ADT/bit.h"
#include <cstdint>

namespace flash {

/// The size for which a schedule is chosen where sizes change from call to
/// call: small ones are themselves, of others the three highest bits count. So
/// a power of two is itself, and there are four sizes for each.
inline int64_t getTypicalSize(int64_t size) {
  constexpr int64_t largestOfItself = 64;
  constexpr int bitsKept = 3;
  if (size <= largestOfItself)
    return size;
  int dropped = llvm::bit_width(static_cast<uint64_t>(size)) - bitsKept;
  return size >> dropped << dropped;
}

} // namespace flash

#endif // FLASH_SCHEDULE_TYPICALSIZE_H
