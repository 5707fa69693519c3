//===- FewTiles.h - Schedules where tiles are few ---------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where tiles are many, the ones with the highest rate are best. Where they are
// few, other things count more: how many rounds of the multiprocessors they
// make, whether the last one is full, how long the longest tile takes, and what
// it costs to combine the results of blocks that share keys.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_FLASH_TRANSFORMS_FEWTILES_H
#define FLASH_LIB_DIALECT_FLASH_TRANSFORMS_FEWTILES_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Utils/MaskTiles.h"

namespace flash {

/// Whether `op` makes so few tiles of `queryTile` queries that their rate alone
/// does not tell how long they take together. Not if their number is not known.
bool hasFewTiles(AttentionOp op, int64_t queryTile);

/// The one of `choices`, which differ in their tiles, that an H200 ends first
/// with, and with how many units that share keys. `keys` are those of a query;
/// all sizes are known.
Schedule chooseForFewTiles(AttentionOp op, KeysOfQuery keys,
                           llvm::ArrayRef<Schedule> choices);

} // namespace flash

#endif // FLASH_LIB_DIALECT_FLASH_TRANSFORMS_FEWTILES_H
