//===- Panels.h - Tiles that arrive panel by panel --------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_TILE_UTILS_PANELS_H
#define FLASH_DIALECT_TILE_UTILS_PANELS_H

#include "flash/Dialect/Tile/IR/Tile.h"

namespace flash::tile {

/// The product that is the first to read the tile, in the block of the wait, if
/// it sums over the tile's columns: it can begin with the panels that have
/// arrived. Null if there is none.
MmaAsyncOp getProductOfPanels(RingWaitOp wait);

/// Whether each panel of the ring's tiles has a barrier of its own: if a
/// product can begin with its first panel, and if tiles are pieces of the
/// columns of memory in one stage, whose copy starts late.
bool arrivesByPanels(RingOp ring);

/// The bytes of the barriers of panels, which lie behind the other barriers of
/// the ring: one for each panel of the stage but the first.
int64_t getNumPanelBarrierBytes(RingOp ring);

} // namespace flash::tile

#endif // FLASH_DIALECT_TILE_UTILS_PANELS_H
