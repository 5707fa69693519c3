//===- ValueColumns.cpp - Blocks of columns of wide values ----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Schedule/ValueColumns.h"

#include "flash/Support/HeadDim.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace flash;

int64_t flash::countValueBlocks(int64_t all, int64_t columns) {
  return llvm::divideCeil(all, columns);
}

std::optional<int64_t> flash::getValueBlockDistance(int64_t all,
                                                    int64_t columns) {
  if (columns >= all)
    return columns == all ? std::optional(all) : std::nullopt;
  int64_t others = countValueBlocks(all, columns) - 1;
  if ((all - columns) % (others * headDimMultiple) != 0)
    return std::nullopt;
  return (all - columns) / others;
}

bool flash::beginAtPanels(int64_t all, int64_t columns, int64_t elementBytes) {
  constexpr int64_t panelBytes = 128;
  return columns >= all || getValueBlockDistance(all, columns).value_or(1) *
                                   elementBytes % panelBytes ==
                               0;
}

/// The nearest number of columns, at least `columns`, for which there is a
/// distance.
static int64_t alignColumns(int64_t all, int64_t columns) {
  columns = llvm::alignTo(columns, headDimMultiple);
  while (columns < all && !getValueBlockDistance(all, columns))
    columns += headDimMultiple;
  return columns < all ? columns : all;
}

/// The nearest number of columns for which there is a distance.
static int64_t findNearestColumns(int64_t all, int64_t columns) {
  int64_t nearest = alignColumns(all, columns);
  for (int64_t fewer = columns / headDimMultiple * headDimMultiple;
       fewer > 0 && columns - fewer < nearest - columns;
       fewer -= headDimMultiple)
    if (getValueBlockDistance(all, fewer))
      return fewer;
  return nearest;
}

std::string flash::findValueColumnsFault(int64_t all, int64_t columns) {
  if (getValueBlockDistance(all, columns))
    return "";
  return llvm::formatv("blocks of value_columns = {0} of {1} columns of values "
                       "do not begin multiples of {2} columns apart; the "
                       "nearest is {3}",
                       columns, all, headDimMultiple,
                       findNearestColumns(all, columns));
}

int64_t flash::getFirstColumns(int64_t columns, int64_t multiple) {
  return llvm::alignTo(llvm::divideCeil(columns, 2), multiple);
}

int64_t flash::getDefaultValueColumns(int64_t all, int64_t most) {
  int64_t blocks = countValueBlocks(all, most);
  return alignColumns(all, llvm::divideCeil(all, blocks));
}
