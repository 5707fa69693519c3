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

// No number of blocks is as large as what a product is cut off at.
static constexpr int64_t most = std::numeric_limits<uint32_t>::max();

std::optional<int64_t> Problem::countRows() const {
  if (!queries)
    return std::nullopt;
  return std::min(*queries, most) * packedHeads;
}

std::optional<int64_t> Problem::countQueryTiles(int64_t queryTile) const {
  if (!heads || !queries)
    return std::nullopt;
  int64_t ofHead = std::max<int64_t>(queryTile / packedHeads, 1);
  return llvm::SaturatingMultiply<uint32_t>(
      std::min(*heads / packedHeads, most),
      std::min<int64_t>(llvm::divideCeil(*queries, ofHead), most));
}
