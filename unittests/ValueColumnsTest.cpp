//===- ValueColumnsTest.cpp - Blocks of columns of wide values ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks, of whatever number of columns, cover all of them and no others; what
// is proposed for a head dimension, and what a message calls the nearest, are
// such blocks.
//
//===----------------------------------------------------------------------===//

#include "Expect.h"

#include "flash/Schedule/ValueColumns.h"
#include "flash/Support/HeadDim.h"

#include <cstdlib>

using namespace flash;

static void testBlocks(int64_t all, int64_t columns) {
  std::string name =
      (llvm::Twine(columns) + " of " + llvm::Twine(all) + " columns").str();
  std::optional<int64_t> distance = getValueBlockDistance(all, columns);
  std::string fault = findValueColumnsFault(all, columns);
  expect(fault.empty() == distance.has_value(), name + ": no message");
  if (!distance) {
    int64_t nearest = 0;
    llvm::StringRef(fault).rsplit(' ').second.getAsInteger(10, nearest);
    expect(getValueBlockDistance(all, nearest).has_value(),
           name + ": no nearest number in '" + fault + "'");
    for (int64_t other = headDimMultiple; other <= all;
         other += headDimMultiple)
      expect(!getValueBlockDistance(all, other) ||
                 std::abs(other - columns) >= std::abs(nearest - columns),
             name + ": " + llvm::Twine(other) + " is nearer than '" + fault +
                 "' says");
    return;
  }
  int64_t blocks = countValueBlocks(all, columns);
  expect(*distance > 0 && *distance % headDimMultiple == 0 &&
             (blocks == 1 || *distance <= columns) &&
             (blocks - 1) * *distance + columns == all,
         name + ": gaps, or other columns");
}

int main() {
  for (int64_t all = headDimMultiple; all <= largestHeadDim;
       all += headDimMultiple) {
    for (int64_t columns = headDimMultiple; columns <= largestHeadDim;
         columns += headDimMultiple)
      testBlocks(all, columns);
    int64_t proposed = getDefaultValueColumns(all);
    expect(findValueColumnsFault(all, proposed).empty() &&
               proposed <= mostValueColumns &&
               countValueBlocks(all, proposed) ==
                   countValueBlocks(all, mostValueColumns),
           "proposed: " + llvm::Twine(proposed) + " of " + llvm::Twine(all));
  }
  expect(beginAtPanels(512, 256, 2) && beginAtPanels(512, 512, 2) &&
             !beginAtPanels(320, 160, 2) && beginAtPanels(320, 160, 4),
         "panels");
  return numFailures != 0;
}
