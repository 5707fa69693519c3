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

/// The span in bytes of the swizzle of a tile in shared memory whose rows have
/// `rowBytes` bytes: the smallest of 32, 64 and 128 that is at least
/// `rowBytes`, or 128 for longer rows. `!tile.smem` describes the layout.
constexpr int64_t getSwizzle(int64_t rowBytes) {
  return rowBytes <= 32 ? 32 : rowBytes <= 64 ? 64 : 128;
}
/// The largest swizzle with which panels of such a tile make up parts of its
/// columns, of `partBytes`: 16, with which each chunk of 16 bytes has a panel,
/// is none.
constexpr int64_t getSwizzleOfParts(int64_t rowBytes, int64_t partBytes) {
  int64_t swizzle = getSwizzle(rowBytes);
  while (swizzle > 16 && partBytes % swizzle != 0)
    swizzle /= 2;
  return swizzle;
}
/// The swizzle of a tile of a program that has all gradients. Rows of more than
/// 256 bytes take no more than their elements: shared memory is full with them.
constexpr int64_t getSwizzleOfGradients(int64_t rowBytes) {
  return rowBytes > 256 ? getSwizzleOfParts(rowBytes, rowBytes)
                        : getSwizzle(rowBytes);
}
/// How many panels of `swizzle` bytes there are. Products read multiples of 32
/// bytes of a row.
int64_t getSharedTilePanels(int64_t rowBytes, int64_t swizzle);
/// The distance in bytes from the start of a tile in shared memory to the first
/// address at which another tile can start. The tile is stored as panels of
/// `swizzle` bytes of each row, and the distance is a multiple of eight rows of
/// a panel, after which the pattern of the swizzle repeats.
int64_t getSharedTileBytes(int64_t rows, int64_t columns, int64_t elementBytes,
                           int64_t swizzle);
/// As above, with the swizzle that `getSwizzle` returns for the rows of the
/// tile.
inline int64_t getSharedTileBytes(int64_t rows, int64_t columns,
                                  int64_t elementBytes) {
  return getSharedTileBytes(rows, columns, elementBytes,
                            getSwizzle(columns * elementBytes));
}

} // namespace flash

#endif // FLASH_SCHEDULE_SHAREDTILE_H
