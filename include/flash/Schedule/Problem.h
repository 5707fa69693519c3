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

/// An attention, as far as schedules depend on it. Sizes are absent where they
/// are known at run time only.
struct Problem {
  mlir::Type element;
  /// The elements of keys and of values in memory, which differ where they are
  /// dequantized.
  mlir::Type keyElement, valueElement;
  /// The products' precision where it is less than the element's ("tf32"), else
  /// the element type.
  std::string precision;
  int64_t headDim = 0, valueDim = 0;
  /// The values are the first columns of the keys, and so are their tiles.
  bool valuesOfKeys = false;
  /// Heads of all batches, rows of queries of all of them, and the lengths of
  /// one. Products are cut off where no schedule distinguishes them any more.
  std::optional<int64_t> heads, queries, keys;
  /// Batches share the rows in memory as an operation says
  /// (`AddressOpInterface`, not in pages of their own): the
  /// length of each batch is only in the data, and the rows are a bound. Where
  /// sizes are open, the models then split no keys: a count of splits that the
  /// sizes decide would make the bits of a sequence depend on the other ones.
  bool hasPackedRows = false;
  /// Keys lie in pages, as for sequences that are generated: some of a batch
  /// then have one query, whatever their mean is.
  bool keysInPages = false;
  /// The heads of one batch, where the number of batches is not known.
  std::optional<int64_t> headsOfBatch;
  /// The query heads that read the same key head, and how many of these share a
  /// tile.
  std::optional<int64_t> group;
  int64_t packedHeads = 1;
  /// The outermost attribute of the mask, "full" if there is none; "region" if
  /// a score region masks elements.
  std::string mask = "full";
  bool isMasked = false, hasScore = false, hasLengths = false;
  /// Only the device knows how many keys each batch has; the keys are a bound.
  bool keysVary = false;
  /// The derivative of the score region is not the same for all scores, so that
  /// these are kept for it.
  bool keepsScores = false;
  /// The score region reads a captured tensor at each query and key.
  bool readsPairs = false;
  /// The gradient of a captured tensor is a sum of gradients of scores at the
  /// same distance.
  bool sumsByDistance = false;
  /// Whether the attention's gradients are what is computed.
  bool isGradient = false;
  /// A score region masks elements, which takes registers; and so does a mask
  /// of positions.
  bool masksInRegion = false, masksPositions = false;
  /// The tiles that are left to a tile, of keys or of queries, follow each
  /// other, as far as the program shows. Of gradients alone.
  bool leavesRanges = true;
  /// The keys that a query sees, of those that see any: in the mean, and at
  /// most. Known if both lengths are.
  std::optional<int64_t> meanKeysPerQuery, mostKeysPerQuery;
  /// How many queries see a key, for gradients alone.
  std::optional<int64_t> meanQueriesPerKey, mostQueriesPerKey;

  int64_t getElementBits() const { return element.getIntOrFloatBitWidth(); }
  int64_t getElementBytes() const { return getElementBits() / 8; }
  /// The bytes that a tile of operands takes in shared memory.
  int64_t getTileBytes(int64_t rows, int64_t columns) const {
    return getSharedTileBytes(rows, columns, getElementBytes());
  }
  /// Whether tiles of keys or of values are made of quantized ones.
  bool isDequantized() const {
    return (keyElement && keyElement != element) ||
           (valueElement && valueElement != element);
  }
  /// The rows of the heads that share tiles, if the queries are known.
  std::optional<int64_t> countRows() const;
  /// The tiles of queries of all heads, if that is known.
  std::optional<int64_t> countQueryTiles(int64_t queryTile) const;
};

} // namespace flash

#endif // FLASH_SCHEDULE_PROBLEM_H
