//===- TileOrder.h - Which tile of queries a block works on -----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_TILE_UTILS_TILEORDER_H
#define FLASH_DIALECT_TILE_UTILS_TILEORDER_H

#include "flash/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/Builders.h"

namespace flash::tile {

/// The tiles of queries under a mask. The last tiles of a head are taken for
/// the longest: `heads` times `tilesOfHead`, each for one number from 0 on.
struct MaskedTiles {
  mlir::Value heads, tilesOfHead;
  /// How many blocks run at the same time.
  int64_t blocksOfWave;
  /// How many tiles of sums a tile adds to at most, in order (`tile.position`);
  /// none where it adds to nothing.
  mlir::Value additions = {};
};

/// How many additions a tile of a head begins behind the one before, if tiles
/// of as many heads are begun in between as the order interleaves.
constexpr int64_t additionsBetweenTiles = 2;

/// A tile of queries: its head, and its number in the head.
struct TileOfHead {
  mlir::Value head, tile;
  /// Whether tiles of the head come in the order of falling numbers, where that
  /// depends on the head.
  mlir::Value isBackwards = {};
};

/// The order for blocks that wait for what the tile before of their head adds:
/// of several heads the tiles of one number first. The next tile of a head
/// begins when a block has become free for it, so heads are as many as let a
/// tile begin two additions behind the one before: closer it would wait, and
/// further apart the cache would have forgotten what both read. Where nothing
/// is said about additions, these are as many heads as have so many waves of
/// tiles.
TileOfHead emitInterleaved(mlir::OpBuilder &b, mlir::Location loc,
                           const MaskedTiles &tiles, int64_t waves,
                           mlir::Value number);

/// As `emitInterleaved`, and backwards.
TileOfHead emitReverse(mlir::OpBuilder &b, mlir::Location loc,
                       const MaskedTiles &tiles, int64_t waves,
                       mlir::Value number);

/// As `emitReverse`, but for the last heads, which have four waves of tiles,
/// and leave at least one wave to others.
TileOfHead emitBothWays(mlir::OpBuilder &b, mlir::Location loc,
                        const MaskedTiles &tiles, int64_t waves,
                        mlir::Value number);

/// The order for blocks that take one tile each, whenever there is room for
/// them: of as many heads as fill two waves, the longest tiles first.
TileOfHead emitLongestFirst(mlir::OpBuilder &b, mlir::Location loc,
                            const MaskedTiles &tiles, mlir::Value number);

/// The order for two kinds of tiles, one kind in front of the other: head after
/// head, a tile of the second half, then one of the first half, both backwards.
/// If a wave has room for two heads or more, their tiles come backwards, of as
/// many heads at a time as there is room for.
TileOfHead emitHalves(mlir::OpBuilder &b, mlir::Location loc,
                      const MaskedTiles &tiles, mlir::Value number);

/// The order for blocks that take one tile of each wave, every other wave
/// backwards (tile-persist). What a block gets in two waves, a tile of one
/// head and one of the next, is as long as what any other gets; so heads follow
/// each other, and the keys that all blocks read at the same time belong to
/// few heads. Only the last waves go by length, all their heads together: that
/// spreads what fills no two waves. All waves do unless `haveEvenPairs`,
/// which is whether a tile and its counterpart from the other end of a head are
/// as long as any two such tiles.
TileOfHead emitSnakeOrder(mlir::OpBuilder &b, mlir::Location loc,
                          const MaskedTiles &tiles, bool haveEvenPairs,
                          mlir::Value number);

/// The results of `op`, where so many blocks run at the
/// same time, and heads that are interleaved have so many waves of tiles.
llvm::SmallVector<mlir::Value> emitPosition(mlir::OpBuilder &b, PositionOp op,
                                            int64_t blocksOfWave,
                                            int64_t interleavedWaves = 1);

/// In which order blocks of greater numbers take the tiles of a head. Where
/// that is one after the other, they may add in that order.
enum class Direction { Forwards, Backwards, OfHead, None };
Direction getDirection(TileOrder order);

/// Emits how many of the tiles from `first` to the one before `end`, of its
/// head, a position's order, which has a direction, takes before the position's
/// own. Of `first` and `end` those are emitted that this depends on.
mlir::Value emitRank(mlir::OpBuilder &b, mlir::Location loc,
                     PositionOp position,
                     llvm::function_ref<mlir::Value()> first,
                     llvm::function_ref<mlir::Value()> end);

} // namespace flash::tile

#endif // FLASH_DIALECT_TILE_UTILS_TILEORDER_H
