//===- ValueColumns.h - Blocks of columns of wide values --------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The threads of a GPU's thread block do not have enough registers for the
// accumulator of all columns of wide values. Several blocks then share the
// columns: each computes the same scores, and sums up some of the columns.
// Blocks have overlapping columns if the columns cannot be divided evenly.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SCHEDULE_VALUECOLUMNS_H
#define FLASH_SCHEDULE_VALUECOLUMNS_H

#include <cstdint>
#include <optional>
#include <string>

namespace flash {

/// The largest number of columns that a block has if the schedule has no
/// `value_columns`: the columns for which one warpgroup has registers, and the
/// columns for which two warpgroups do that divide them (`divide_columns`).
constexpr int64_t mostValueColumns = 256,
                  mostDividedColumns = 2 * mostValueColumns;
/// The same for elements of 8 bits that are multiplied: what a step adds to the
/// accumulator has registers of its own.
constexpr int64_t mostQuantizedColumns = 160;

/// Whether a block with so many columns needs two warpgroups that divide them,
/// and no more than two.
inline bool mayDivideColumns(int64_t columns) {
  return columns > mostValueColumns && columns <= mostDividedColumns;
}

/// The number of columns of the first of two warpgroups that divide `columns`
/// columns: half of them, rounded up to a multiple of `multiple`. The second
/// warpgroup has the other columns.
int64_t getFirstColumns(int64_t columns, int64_t multiple);

/// The number of blocks of `columns` columns that cover `all` columns.
int64_t countValueBlocks(int64_t all, int64_t columns);

/// The number of columns from the beginning of one block to the beginning of
/// the next, if the last block ends with the last column; `all` if one block
/// has all columns. Nothing if blocks cannot begin equally far apart at
/// multiples of 8 columns, or if `columns` is larger than `all`.
std::optional<int64_t> getValueBlockDistance(int64_t all, int64_t columns);

/// A message if `getValueBlockDistance` returns nothing, with the nearest
/// possible value of `columns`; otherwise empty.
std::string findValueColumnsFault(int64_t all, int64_t columns);

/// Whether each block begins at a panel of a tile in shared memory that has all
/// columns, so that its columns can be read from that tile. A panel has 128
/// bytes of each row. `elementBytes` is the size of an element.
bool beginAtPanels(int64_t all, int64_t columns, int64_t elementBytes);

/// The number of columns of a block if the schedule has no `value_columns`: all
/// columns if there are at most `most`. Otherwise the columns are divided among
/// as few blocks as possible, each with a multiple of 8 columns.
int64_t getDefaultValueColumns(int64_t all, int64_t most = mostValueColumns);

} // namespace flash

#endif // FLASH_SCHEDULE_VALUECOLUMNS_H
