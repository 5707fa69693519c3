//===- TileCounts.h - Tiles visited by an instrumented kernel ---*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_TILECOUNTS_H
#define FLASH_RUNTIME_TILECOUNTS_H

#include <cstdint>

/// What `flash-count-tiles` makes a kernel call at each step of the online
/// softmax; safe from any thread.
extern "C" void flash_count_tile(bool masked);

namespace flash::runtime {

/// Steps since the last reset: of tiles without and with mask.
struct TileCounts {
  int64_t full;
  int64_t partial;
};
TileCounts getTileCounts();
void resetTileCounts();

} // namespace flash::runtime

#endif // FLASH_RUNTIME_TILECOUNTS_H
