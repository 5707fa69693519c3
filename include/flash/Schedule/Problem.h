//===- Problem.h - What a schedule is for -----------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SCHEDULE_PROBLEM_H
#define FLASH_SCHEDULE_PROBLEM_H

#include "flash/Schedule/SharedTile.h"
#include "mlir/IR/Types.h"
#include <optional>
#include <string>

namespace flash {

/// The properties of an attention, or of its gradients, on which schedules
/// depend. A size has no value if it is known at run time only. `getProblem`
/// (Dialect/Flash/Transforms/GetProblem.h) finds them.
struct Problem {
  /// The element type of the queries, as they are multiplied.
  mlir::Type element;
  /// The element types of queries, keys and values in memory. They differ from
  /// `element` if these are dequantized.
  mlir::Type queryElement, keyElement, valueElement;
  /// The precision of the products if it is less than the precision of the
  /// elements ("tf32"), else the name of the element type. For quantized keys
  /// and values their element types are appended, as in "f16_of_i8_i8".
  std::string precision;
  int64_t headDim = 0, valueDim = 0;
  /// Whether the values are the first columns of the keys, so that tiles of
  /// values are parts of tiles of keys.
  bool valuesOfKeys = false;
  /// The number of query heads of all batches together, at most 2^32 - 1, and
  /// the numbers of queries and keys of one head. For packed rows, `queries`
  /// and `keys` are the mean lengths of the sequences. In gradients, or if the
  /// number of sequences is not known, they are the sums of the lengths.
  std::optional<int64_t> heads, queries, keys;
  /// Whether sequences are packed: the batches share the rows of one tensor
  /// (`AddressOpInterface`, but not pages), and only the data have the length
  /// of each batch. If sizes are open, the models then do not split the keys: a
  /// number of splits that depends on sizes would make the bits of a sequence
  /// depend on the other sequences.
  bool hasPackedRows = false;
  /// Whether keys are in pages, as they are for sequences that are generated.
  /// Some sequences of a batch then have one query, whatever the mean is.
  bool keysInPages = false;
  /// The number of query heads of one batch, which may be known although
  /// `heads` is not.
  std::optional<int64_t> headsOfBatch;
  /// The number of query heads that read the same key head.
  std::optional<int64_t> group;
  /// The number of query heads that share a tile (packed GQA).
  int64_t packedHeads = 1;
  /// The name of the outermost attribute of the mask, such as "causal"; "full"
  /// if there is no mask, and "region" if a score region masks elements.
  std::string mask = "full";
  bool isMasked = false, hasScore = false, hasLengths = false;
  /// Whether only the device knows how many keys each batch has. `keys` is then
  /// an upper bound.
  bool keysVary = false;
  /// For gradients: whether the derivative of the score region depends on the
  /// score, so that a step keeps the scores until it computes the derivative.
  bool keepsScores = false;
  /// Whether the score region reads a captured tensor at the query and the key,
  /// other than at their distance.
  bool readsPairs = false;
  /// For gradients: whether the gradient of a captured tensor is a sum of
  /// gradients of scores at the same distance between query and key.
  bool sumsByDistance = false;
  /// Whether gradients are computed, not the attention itself.
  bool isGradient = false;
  /// Whether a score region masks elements.
  bool masksInRegion = false;
  /// For gradients: whether the mask is known to let each tile of queries visit
  /// one range of tiles of keys, and each tile of keys one range of tiles of
  /// queries.
  bool leavesRanges = true;
  /// Estimates of the number of keys that a query sees: the mean, over the
  /// queries that see any key, and the largest number. Known if both lengths
  /// are known.
  std::optional<int64_t> meanKeysPerQuery, mostKeysPerQuery;
  /// For gradients: the same estimates for the number of queries that see a
  /// key.
  std::optional<int64_t> meanQueriesPerKey, mostQueriesPerKey;
  /// For gradients, if the mask is an attribute and `leavesRanges` is false: an
  /// estimate, for one key, of the number of queries in all tiles with a query
  /// that sees the key.
  std::optional<int64_t> queriesInTilesPerKey;

  int64_t getElementBits() const { return element.getIntOrFloatBitWidth(); }
  int64_t getElementBytes() const { return getElementBits() / 8; }
  /// The bytes that a tile of `element` takes in shared memory.
  int64_t getTileBytes(int64_t rows, int64_t columns) const {
    return getSharedTileBytes(rows, columns, getElementBytes());
  }
  /// Whether elements of 8 bits are multiplied themselves (precision(fp8)).
  bool multipliesQuantized() const { return getElementBits() == 8; }
  /// Whether queries, keys or values are quantized in memory, and dequantized
  /// before the products.
  bool isDequantized() const {
    return (queryElement && queryElement != element) ||
           (keyElement && keyElement != element) ||
           (valueElement && valueElement != element);
  }
  /// The number of rows of the `packedHeads` heads that share tiles, if the
  /// number of queries is known.
  std::optional<int64_t> countRows() const;
  /// The number of tiles of queries of all heads, at most 2^32 - 1, if the
  /// numbers of heads and queries are known. `queryTile` is the number of rows
  /// of a tile, which has queryTile / packedHeads queries of each head.
  std::optional<int64_t> countQueryTiles(int64_t queryTile) const;
};

} // namespace flash

#endif // FLASH_SCHEDULE_PROBLEM_H
