//===- Problem.cpp - What a schedule is for -------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Schedule/Problem.h"

#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace flash;

std::optional<int64_t> Problem::countQueryTiles(int64_t queryTile) const {
  if (!heads || !queries)
    return std::nullopt;
  // No number of blocks is as large as what a product is cut off at.
  constexpr int64_t most = std::numeric_limits<uint32_t>::max();
  return llvm::SaturatingMultiply<uint32_t>(
      std::min(*heads, most),
      std::min<int64_t>(llvm::divideCeil(*queries, queryTile), most));
}
