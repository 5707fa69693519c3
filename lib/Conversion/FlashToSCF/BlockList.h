//===- BlockList.h - The tiles that a block map lists -----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_FLASHTOSCF_BLOCKLIST_H
#define FLASH_LIB_CONVERSION_FLASHTOSCF_BLOCKLIST_H

#include "flash/Dialect/Flash/IR/Flash.h"

namespace flash {

/// What a block map, or a caller, lists for one tile of queries, or of keys
/// where it is `over_queries`: the others that are left to it.
class BlockList {
public:
  /// Reads, of the two results of a map, the counts for `row`, a batch, a head
  /// and the number of a tile. A map for all batches or heads ignores these.
  /// What the caller has given is taken for the nearest that is possible.
  BlockList(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tiles,
            mlir::Value counts, mlir::ValueRange row, bool isGiven);

  /// How many runs a list of runs has.
  mlir::Value getNumRuns() const { return endOfParts; }
  /// Where tiles end that are left in part, and the list.
  mlir::Value getEndOfParts() const { return endOfParts; }
  mlir::Value getEnd() const { return end; }

  /// The first element of the tile of so many that is the list's `entry`-th.
  mlir::Value getStart(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value entry, int64_t tile) const;
  /// The tile, or the number of a run, that is the list's `entry`-th.
  mlir::Value readTile(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value entry) const {
    return read(b, loc, tiles, entry);
  }
  /// What a tensor of the map has for an entry of the list.
  mlir::Value read(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                   mlir::Value entry) const;

private:
  mlir::Value tiles, endOfParts, end;
  llvm::SmallVector<mlir::Value> row;
};

} // namespace flash

#endif // FLASH_LIB_CONVERSION_FLASHTOSCF_BLOCKLIST_H
