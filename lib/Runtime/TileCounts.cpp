//===- TileCounts.cpp - Tiles visited by an instrumented kernel -----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/TileCounts.h"

#include <atomic>

static std::atomic<int64_t> fullTiles, partialTiles;

extern "C" void flash_count_tile(bool masked) {
  (masked ? partialTiles : fullTiles).fetch_add(1, std::memory_order_relaxed);
}

flash::runtime::TileCounts flash::runtime::getTileCounts() {
  return {fullTiles.load(), partialTiles.load()};
}

void flash::runtime::resetTileCounts() { fullTiles = partialTiles = 0; }
