//===- SharedTile.h - Bytes of a tile in shared memory ----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SCHEDULE_SHAREDTILE_H
#define FLASH_SCHEDULE_SHAREDTILE_H

#include <cstdint>

namespace flash {

/// Tiles lie in shared memory as `!tile.smem` describes, with the narrowest
/// swizzle that holds a row of so many bytes, or 128.
constexpr int64_t getSwizzle(int64_t rowBytes) {
  return rowBytes <= 32 ? 32 : rowBytes <= 64 ? 64 : 128;
}
/// The bytes from the start of such a tile to where the next can start: after
/// eight rows the pattern of the swizzle repeats.
int64_t getSharedTileBytes(int64_t rows, int64_t columns, int64_t elementBytes,
                           int64_t swizzle);
inline int64_t getSharedTileBytes(int64_t rows, int64_t columns,
                                  int64_t elementBytes) {
  return getSharedTileBytes(rows, columns, elementBytes,
                            getSwizzle(columns * elementBytes));
}

} // namespace flash

#endif // FLASH_SCHEDULE_SHAREDTILE_H
