//===- TileCounts.h - Tiles visited by an instrumented kernel ---*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_TILECOUNTS_H
#define FLASH_RUNTIME_TILECOUNTS_H

#include <cstdint>

/// Counts a tile. Kernels that the pass `flash-count-tiles` has changed call
/// this at each step of the online softmax. Any thread may call it.
extern "C" void flash_count_tile(bool masked);

namespace flash::runtime {

/// The number of steps since the last reset, of all kernels of the process:
/// steps without a mask (full tiles) and steps with a mask (partial tiles).
struct TileCounts {
  int64_t full;
  int64_t partial;
};
TileCounts getTileCounts();
void resetTileCounts();

} // namespace flash::runtime

#endif // FLASH_RUNTIME_TILECOUNTS_H
