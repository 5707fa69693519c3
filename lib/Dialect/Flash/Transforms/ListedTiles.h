//===- ListedTiles.h - The tiles of block maps ------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_FLASH_TRANSFORMS_LISTEDTILES_H
#define FLASH_LIB_DIALECT_FLASH_TRANSFORMS_LISTEDTILES_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Schedule/Schedule.h"

namespace flash {

/// The tiles of a program, of queries and of keys.
struct ListedTiles {
  int64_t ofQueries, ofKeys;
  /// Whether it goes over tiles of queries for each tile of keys.
  bool overQueries;
};

/// Whether a map says more of such tiles than what `flash-refine-visits` finds,
/// and may be made.
bool needsBlockMap(AttentionOpInterface op, const Schedule &schedule,
                   const ListedTiles &tiles);

/// The tiles of a program of gradients over keys.
ListedTiles getTilesOverKeys(const Schedule &schedule);

} // namespace flash

#endif // FLASH_LIB_DIALECT_FLASH_TRANSFORMS_LISTEDTILES_H
