//===- MaskTiles.h - Which key tiles a mask touches -------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mask is built of affine sets `(b, h, i, j)[nq, nk]` by unions and
// intersections: the pairs of a query i < nq and a key j < nk that take part.
// Queries come in tiles of Q that start at i0, a multiple of Q; key tile t
// holds the keys from K * t. A tile, clipped to the lengths, is
//
//   visited   if one of its pairs takes part, and
//   not full  if one of its pairs does not.
//
// Both are projections of integer sets onto (b, h, i0, t)[nq, nk], computed
// exactly; for the usual masks they are ranges of t in closed form. The work is
// bounded: a mask beyond the limits gets projections that hold at least what
// they should, so that a tile is visited, or looked at pair by pair, in vain.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_ANALYSIS_MASKTILES_H
#define FLASH_ANALYSIS_MASKTILES_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/IntegerSet.h"
#include <optional>

namespace flash {

/// A bound on key tiles that counts where the guard holds. Guard and map are
/// over `(b, h, i0)[nq, nk]`; a null guard always holds. For example, bottom-
/// right causal with Q = 64 and K = 128 visits the tiles from 0 to
///
///   min(nk ceildiv 128, (i0 + nk - nq + 63) floordiv 128 + 1),
///
/// and those below (i0 + nk - nq + 1) floordiv 128 are full. The guard of the
/// latter, i0 <= nq - 2, leaves out a ragged last query tile of one row: that
/// row sees all keys, so all its tiles are full.
struct TileBound {
  mlir::IntegerSet guard;
  mlir::AffineMap map;
};

/// Key tiles of one query tile, lo <= fullLo <= fullHi <= hi. Tiles of
/// [fullLo, fullHi) are full, the others of [lo, hi) are not.
struct TileRange {
  int64_t lo, fullLo, fullHi, hi;
};

/// The key tiles of a mask.
struct MaskTiles {
  /// False if the mask exceeded the limits of the analysis: some tiles without
  /// a pair may be visited then, and some full tiles not be known as such.
  bool exact = true;
  /// True if that is why all tiles of some query tile are visited.
  bool gaveUp = false;

  /// The tile is visited if any of these sets over `(b, h, i0, t)[nq, nk]`
  /// holds. Meaningful for tiles in range: i0 < nq and 0 <= K * t < nk.
  llvm::SmallVector<mlir::IntegerSet> visited;
  /// A visited tile is full unless any of these sets holds.
  llvm::SmallVector<mlir::IntegerSet> notFull;

  /// A query tile visits all tiles in [lo, hi); otherwise the range is a hull,
  /// and `visited` says which of its tiles to visit.
  bool visitedIsRange = true;
  /// The full tiles are all tiles in [fullLo, fullHi); otherwise `fullLo` and
  /// `fullHi` are empty, and `notFull` says which are not full. Implies
  /// `visitedIsRange`.
  bool fullIsRange = true;

  /// Bounds in tiles; upper bounds are exclusive. Bounds whose guard does not
  /// hold are left out, then
  ///
  ///   lo     = min over bounds of affine.max(map), or 0  if none is left
  ///   hi     = max over bounds of affine.min(map), or 0  if none is left
  ///   fullLo = max over bounds of affine.min(map), or lo if none is left
  ///   fullHi = min over bounds of affine.max(map), or hi if none is left
  ///
  /// The usual masks have at most one bound each, and `lo` without a guard.
  /// `hi` may be less than `lo`, and the full bounds may cross or lie outside;
  /// `getRange` clamps them.
  llvm::SmallVector<TileBound> lo, hi, fullLo, fullHi;

  /// Of diagonals, which of them have visited tiles: none but those whose
  /// distance, in tiles, is in [distanceLo, distanceHi), for all batches and
  /// heads. Without guards, as `lo` and `hi` otherwise.
  llvm::SmallVector<TileBound> distanceLo, distanceHi;

  /// The bounds' values, clamped into order: hi to at least lo, fullLo into
  /// [lo, hi], fullHi into [fullLo, hi]. Without `fullIsRange` both full bounds
  /// are lo.
  TileRange getRange(int64_t b, int64_t h, int64_t i0, int64_t nq,
                     int64_t nk) const;
  /// The values of `distanceLo` and `distanceHi`.
  std::pair<int64_t, int64_t> getDistances(int64_t nq, int64_t nk) const;
  bool isVisited(int64_t b, int64_t h, int64_t i0, int64_t t, int64_t nq,
                 int64_t nk) const;
  /// Whether a visited tile is full.
  bool isFull(int64_t b, int64_t h, int64_t i0, int64_t t, int64_t nq,
              int64_t nk) const;

  void print(llvm::raw_ostream &os) const;
};

/// Analyses `mask` for query tiles of `queryTile` and key tiles of `keyTile`.
/// Lengths that are known become constants of the result. The result holds for
/// b, h >= 0 and every i0 that is a multiple of `queryTile`. Tiles are of
/// `heads` heads from h on.
MaskTiles computeMaskTiles(MaskAttrInterface mask, int64_t queryTile,
                           int64_t keyTile,
                           std::optional<int64_t> nq = std::nullopt,
                           std::optional<int64_t> nk = std::nullopt,
                           int64_t heads = 1);

/// Computes this for the tiles along a diagonal: a tile has `tile` queries and
/// as many keys, and its first query is a distance behind its first key. That
/// distance, a multiple of `tile` which may be negative, is i0 in all of the
/// result, and t is the number of the query tile; two tiles
/// are that far apart, and the ranges are of those that have queries and keys.
/// Bottom-right causal of 256 queries and keys in tiles of 64 has bounds that
/// depend on the distance alone:
///
///   visited  from max(0, distance floordiv 64) to
///            min(4, (distance + 256) floordiv 64), if distance >= 0,
///   full     if distance >= 64.
MaskTiles computeDiagonalTiles(MaskAttrInterface mask, int64_t tile,
                               std::optional<int64_t> nq = std::nullopt,
                               std::optional<int64_t> nk = std::nullopt);

/// Whether a tile of queries visits exactly the tiles of keys in a range, [lo,
/// hi) of `computeMaskTiles`, and the full ones too, and the
/// other way round.
bool leavesRanges(MaskAttrInterface mask, int64_t queryTile, int64_t keyTile,
                  std::optional<int64_t> nq, std::optional<int64_t> nk);

/// Whether no query that exists has a key behind the last one, as under a
/// causal mask that is aligned to the ends. False where that is not known.
bool keepsOnlyExistingKeys(MaskAttrInterface mask, std::optional<int64_t> nq,
                           std::optional<int64_t> nk);

/// Whether the last query sees all keys that queries behind it would see, of
/// those that exist. False where that is not known.
bool seesMostAtEnd(MaskAttrInterface mask, std::optional<int64_t> nq,
                   std::optional<int64_t> nk);

/// Whether the tiles of queries that a tile of keys is left end with the last
/// one that there is, as under a causal mask, and not before, as in a window.
bool endsWithQueries(MaskAttrInterface mask, int64_t queryTile, int64_t keyTile,
                     std::optional<int64_t> nq, std::optional<int64_t> nk);

/// The sizes of an attention.
struct MaskSizes {
  int64_t batch, heads, queries, keys;
};

/// The number of (b, h, i, j) of a problem that a mask keeps, of each batch
/// among the first `lengths[b]` keys if there are lengths. Linear in the number
/// of queries when j is under no division, else in that of pairs; none if it
/// would take seconds.
std::optional<int64_t> countUnmasked(MaskAttrInterface mask, MaskSizes sizes,
                                     llvm::ArrayRef<int64_t> lengths = {});

/// How many keys the queries have that have any; 0 if none has.
struct KeysOfQuery {
  int64_t mean, most;
};

/// Estimates that from some queries of the first head at even distances.
KeysOfQuery estimateKeysOfQuery(MaskAttrInterface mask, int64_t nq, int64_t nk);
/// Estimates how many queries see a key. The first key is among those that
/// are looked at: often all queries see it.
KeysOfQuery estimateQueriesOfKey(MaskAttrInterface mask, int64_t nq,
                                 int64_t nk);

/// Whether any two queries as far from the beginning and from the end of the
/// first head have about as many keys together as any other two: so it is under
/// a causal mask, but not in a window, whose queries have as many each except
/// for the first ones.
bool haveEvenPairs(MaskAttrInterface mask, int64_t nq, int64_t nk);

/// Whether an expression, and all that it is computed from, fits in 32 bits,
/// the indices of a GPU, where its variables are not negative and at most so
/// great.
bool fitsIn32Bits(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> mostDims,
                  llvm::ArrayRef<int64_t> mostSymbols);
/// Batches, heads and lengths that are not known are supposed to be at most so
/// great. Longer ones are right if numbers in the mask are small.
constexpr int64_t kMostHeads = int64_t(1) << 16;
constexpr int64_t kMostLength = int64_t(1) << 22;

/// The value of an affine expression, for example of a mask at a pair.
int64_t evaluate(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> dims,
                 llvm::ArrayRef<int64_t> symbols);
/// True if the point lies in the set.
bool contains(mlir::IntegerSet set, llvm::ArrayRef<int64_t> dims,
              llvm::ArrayRef<int64_t> symbols);

} // namespace flash

#endif // FLASH_ANALYSIS_MASKTILES_H
