//===- RingSteps.h - How roles count steps of rings -------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_TILE_TRANSFORMS_RINGSTEPS_H
#define FLASH_LIB_DIALECT_TILE_TRANSFORMS_RINGSTEPS_H

#include "flash/Dialect/Tile/IR/Tile.h"

namespace flash::tile {

/// What loops of a block count steps from, and what the last of them makes of
/// it.
struct StepCount {
  mlir::Value start, end;

  bool operator==(const StepCount &other) const {
    return start == other.start && end == other.end;
  }
};

/// What is counted where loops of `block`, and loops and choices in them, count
/// the step; null values if they do not.
StepCount getStepCount(mlir::Value step, mlir::Block *block);

/// Whether the step is counted from 0 on, over all tiles.
bool beginsAtZero(mlir::Value start);

/// The block of an op of a role with its loops over steps: what a block of
/// threads does with a tile, or all that the role does if it has one tile.
mlir::Block *getBlockOfTile(mlir::Operation *op, bool isPersistent);

/// What another role does with the tiles of a ring.
struct Reader {
  /// What it does with a tile of the kernel; null if no other role reads them.
  mlir::Block *block = nullptr;
  /// What its loops over steps count from.
  mlir::Value first = {};
  /// How many ops of the ring the role itself has.
  size_t numOwn = 0;
};

/// The reader of the ring beside the role of `own`. Fails if there are several,
/// or if it does not count the steps from 0 on.
llvm::FailureOr<Reader> findReader(RingOp ring, mlir::Operation *own,
                                   bool isPersistent);

} // namespace flash::tile

#endif // FLASH_LIB_DIALECT_TILE_TRANSFORMS_RINGSTEPS_H
