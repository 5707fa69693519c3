//===- MaskTiles.h - Which key tiles a mask touches -------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mask is the set of pairs of a query i < nq and a key j < nk that take part.
// It is built of affine sets `(b, h, i, j)[nq, nk]` by unions and
// intersections. A tile of queries has Q queries and starts at i0, a multiple
// of Q. Key tile t holds the K keys from K * t on. A tile, clipped to the
// lengths, is
//
//   visited   if one of its pairs takes part, and
//   not full  if one of its pairs does not.
//
// Both conditions are projections of integer sets onto (b, h, i0, t)[nq, nk],
// which are computed exactly. For the usual masks they are ranges of t in
// closed form. The work is bounded: the projections of a mask beyond the limits
// may be larger than necessary. Then a tile may be visited although no pair
// takes part, or its pairs may be tested although all of them take part.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_ANALYSIS_MASKTILES_H
#define FLASH_ANALYSIS_MASKTILES_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/IntegerSet.h"
#include <optional>

namespace flash {

/// A bound on key tiles, which applies where the guard holds. Guard and map are
/// over `(b, h, i0)[nq, nk]`; a null guard always holds. For example,
/// bottom-right causal with Q = 64 and K = 128 visits the tiles from 0 to
///
///   min(nk ceildiv 128, (i0 + nk - nq + 63) floordiv 128 + 1),
///
/// and the tiles below (i0 + nk - nq + 1) floordiv 128 are full. The guard of
/// this second bound, i0 <= nq - 2, excludes a ragged last query tile of one
/// row: that row sees all keys, so all its tiles are full.
struct TileBound {
  mlir::IntegerSet guard;
  mlir::AffineMap map;
};

/// The key tiles that one query tile visits, with lo <= fullLo <= fullHi <= hi.
/// The tiles in [fullLo, fullHi) are full; the other tiles in [lo, hi) are not.
struct TileRange {
  int64_t lo, fullLo, fullHi, hi;
};

/// The key tiles of a mask.
struct MaskTiles {
  /// False if the mask exceeded the limits of the analysis. Then some tiles
  /// without a pair may be visited, and some full tiles may count as not full.
  bool exact = true;
  /// True if some query tile visits all tiles because the mask exceeded the
  /// limits.
  bool gaveUp = false;

  /// A tile is visited if any of these sets over `(b, h, i0, t)[nq, nk]`
  /// contains it. The sets say nothing of tiles out of range; i0 < nq and 0 <=
  /// K * t < nk must hold.
  llvm::SmallVector<mlir::IntegerSet> visited;
  /// A visited tile is full unless any of these sets contains it.
  llvm::SmallVector<mlir::IntegerSet> notFull;

  /// True if a query tile visits all tiles in [lo, hi). Otherwise it visits
  /// some of them, and `visited` says which.
  bool visitedIsRange = true;
  /// True if the full tiles are all tiles in [fullLo, fullHi). Otherwise
  /// `fullLo` and `fullHi` are empty, and `notFull` says which tiles are not
  /// full. Implies `visitedIsRange`.
  bool fullIsRange = true;

  /// Bounds in tiles, where upper bounds are exclusive. With the bounds whose
  /// guards hold,
  ///
  ///   lo     = min over bounds of affine.max(map), or 0  if there is none
  ///   hi     = max over bounds of affine.min(map), or 0  if there is none
  ///   fullLo = max over bounds of affine.min(map), or lo if there is none
  ///   fullHi = min over bounds of affine.max(map), or hi if there is none
  ///
  /// The usual masks have at most one bound in each list, and no guard in `lo`.
  /// `hi` may be less than `lo`, and the full bounds may cross or lie outside
  /// of [lo, hi]; `getRange` clamps them.
  llvm::SmallVector<TileBound> lo, hi, fullLo, fullHi;

  /// For the tiles of `computeDiagonalTiles`: only diagonals whose distance, in
  /// tiles, is in [distanceLo, distanceHi) have visited tiles, in all batches
  /// and heads. These bounds have no guards; they are combined like `lo` and
  /// `hi`.
  llvm::SmallVector<TileBound> distanceLo, distanceHi;

  /// The values of the bounds, clamped into order: hi to at least lo, fullLo
  /// into [lo, hi], fullHi into [fullLo, hi]. Without `fullIsRange` both full
  /// bounds are lo. `i0` must be a multiple of the query tile, as in the
  /// functions below.
  TileRange getRange(int64_t b, int64_t h, int64_t i0, int64_t nq,
                     int64_t nk) const;
  /// The values of `distanceLo` and `distanceHi`.
  std::pair<int64_t, int64_t> getDistances(int64_t nq, int64_t nk) const;
  bool isVisited(int64_t b, int64_t h, int64_t i0, int64_t t, int64_t nq,
                 int64_t nk) const;
  /// Whether a tile is full, if it is visited.
  bool isFull(int64_t b, int64_t h, int64_t i0, int64_t t, int64_t nq,
              int64_t nk) const;

  void print(llvm::raw_ostream &os) const;
};

/// Analyses `mask` for query tiles of `queryTile` and key tiles of `keyTile`.
/// Known lengths become constants of the result. The result holds for b, h >= 0
/// and every i0 that is a multiple of `queryTile`. A tile has the pairs of
/// `heads` heads from h on. A mask beyond the limits of the analysis is no
/// error; see `exact`.
MaskTiles computeMaskTiles(MaskAttrInterface mask, int64_t queryTile,
                           int64_t keyTile,
                           std::optional<int64_t> nq = std::nullopt,
                           std::optional<int64_t> nk = std::nullopt,
                           int64_t heads = 1);

/// Analyses `mask` for the tiles along diagonals. A tile has `tile` queries and
/// as many keys, and the index of its first query exceeds the index of its
/// first key by a distance, a multiple of `tile` that may be negative. In the
/// result, i0 stands for this distance and t for the number of the query tile;
/// the ranges contain only tiles that have queries and keys. For example,
/// bottom-right causal of 256 queries and keys in tiles of 64 has bounds that
/// depend on the distance alone:
///
///   visited  from max(0, distance floordiv 64) to
///            min(4, (distance + 256) floordiv 64), if distance >= 0,
///   full     if distance >= 64.
MaskTiles computeDiagonalTiles(MaskAttrInterface mask, int64_t tile,
                               std::optional<int64_t> nq = std::nullopt,
                               std::optional<int64_t> nk = std::nullopt);

/// Whether visited tiles and full tiles are ranges in the sense of
/// `computeMaskTiles`, both for the key tiles of each query tile and for the
/// query tiles of each key tile.
bool leavesRanges(MaskAttrInterface mask, int64_t queryTile, int64_t keyTile,
                  std::optional<int64_t> nq, std::optional<int64_t> nk);

/// Whether the mask lets no existing query see keys after the last one, as a
/// causal mask that is aligned to the ends does. False if that is not known.
bool keepsOnlyExistingKeys(MaskAttrInterface mask, std::optional<int64_t> nq,
                           std::optional<int64_t> nk);

/// Whether the last query sees all existing keys that queries after it would
/// see. False if that is not known.
bool seesMostAtEnd(MaskAttrInterface mask, std::optional<int64_t> nq,
                   std::optional<int64_t> nk);

/// Whether the query tiles that see a key tile extend to the last query tile,
/// as under a causal mask but not under a window.
bool endsWithQueries(MaskAttrInterface mask, int64_t queryTile, int64_t keyTile,
                     std::optional<int64_t> nq, std::optional<int64_t> nk);

/// The sizes of an attention.
struct MaskSizes {
  int64_t batch, heads, queries, keys;
};

/// The number of (b, h, i, j) of a problem that a mask keeps. If there are
/// lengths, batch b has the first `lengths[b]` keys only. The time is linear in
/// the number of queries if the mask does not divide j, and in the number of
/// pairs otherwise. Returns no number if counting would take seconds.
std::optional<int64_t> countUnmasked(MaskAttrInterface mask, MaskSizes sizes,
                                     llvm::ArrayRef<int64_t> lengths = {});

/// The mean and the largest number of keys of the queries that have keys; 0 if
/// no query has any.
struct KeysOfQuery {
  int64_t mean, most;
};

/// Estimates these numbers from some queries of the first head at equal
/// distances. With `tile`, a query that sees any key of a tile counts as seeing
/// all keys of the tile.
KeysOfQuery estimateKeysOfQuery(MaskAttrInterface mask, int64_t nq, int64_t nk,
                                int64_t tile = 1);
/// Estimates how many queries see a key, from some keys of the first head. With
/// `tile`, all queries of a tile count for a key that any of them sees. The
/// first key is one of those examined, because often all queries see it.
KeysOfQuery estimateQueriesOfKey(MaskAttrInterface mask, int64_t nq, int64_t nk,
                                 int64_t tile = 1);

/// Whether the query i and the query nq - 1 - i of the first head have about
/// the same number of keys together for each i, judged by some i. Under a
/// causal mask they do. Under a window they do not: all its queries but the
/// first ones have the same number of keys.
bool haveEvenPairs(MaskAttrInterface mask, int64_t nq, int64_t nk);

/// Whether an expression and all of its subexpressions fit in 32 bits, the size
/// of indices on a GPU. Its dimensions and symbols are from 0 to `mostDims` and
/// `mostSymbols`, which must have an element for each.
bool fitsIn32Bits(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> mostDims,
                  llvm::ArrayRef<int64_t> mostSymbols);
/// The largest number of batches or heads and the largest length that are
/// assumed where the numbers are not known. Larger ones give the same results
/// as long as the mask's expressions fit in 32 bits.
constexpr int64_t kMostHeads = int64_t(1) << 16;
constexpr int64_t kMostLength = int64_t(1) << 22;

/// The value of an affine expression, for example of a constraint of a mask at
/// a pair. Divisors must be positive.
int64_t evaluate(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> dims,
                 llvm::ArrayRef<int64_t> symbols);
/// Whether the set contains the point.
bool contains(mlir::IntegerSet set, llvm::ArrayRef<int64_t> dims,
              llvm::ArrayRef<int64_t> symbols);

} // namespace flash

#endif // FLASH_ANALYSIS_MASKTILES_H
