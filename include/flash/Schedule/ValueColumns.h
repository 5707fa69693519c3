//===- ValueColumns.h - Blocks of columns of wide values --------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The threads of a GPU's block have no registers for the sums of all columns of
// wide values: several blocks have some of the columns each, and compute the
// same scores. Blocks overlap where the columns cannot be divided evenly.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SCHEDULE_VALUECOLUMNS_H
#define FLASH_SCHEDULE_VALUECOLUMNS_H

#include <cstdint>
#include <optional>
#include <string>

namespace flash {

/// The most columns that a block has where nobody says: those that a warpgroup
/// has registers for, and of two that divide them (`divide_columns`).
constexpr int64_t mostValueColumns = 256,
                  mostDividedColumns = 2 * mostValueColumns;

/// Whether it takes two warpgroups to sum up so many columns, and no more.
inline bool mayDivideColumns(int64_t columns) {
  return columns > mostValueColumns && columns <= mostDividedColumns;
}

/// The columns of the first of two warpgroups that divide so many: a multiple
/// of `multiple`, and at least half of them.
int64_t getFirstColumns(int64_t columns, int64_t multiple);

/// How many blocks of `columns` cover `all` columns.
int64_t countValueBlocks(int64_t all, int64_t columns);

/// How far apart such blocks begin, so that the last one ends with the
/// columns: a multiple of 8, or nothing where that would be no number of
/// columns.
std::optional<int64_t> getValueBlockDistance(int64_t all, int64_t columns);

/// What is wrong with blocks of `columns` of all columns; empty if nothing is.
std::string findValueColumnsFault(int64_t all, int64_t columns);

/// Whether such blocks begin at panels of a tile of all columns in shared
/// memory, of 128 bytes, so that they can be read there.
bool beginAtPanels(int64_t all, int64_t columns, int64_t elementBytes);

/// The columns of a block where nobody says: all if there are registers for
/// them, of `most`.
int64_t getDefaultValueColumns(int64_t all, int64_t most = mostValueColumns);

} // namespace flash

#endif // FLASH_SCHEDULE_VALUECOLUMNS_H
