//===- CpuSchedule.cpp - Tiles for threads, vectors and caches ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleModels.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

namespace {
// Queries fill the lanes of vectors; this many f32 the widest of them.
constexpr int64_t lanes = 16;
// Measured best on AVX-512 (docs/benchmarks.md): larger tiles gain nothing, and
// smaller ones read keys and values more often.
constexpr int64_t largestQueryTile = 128, largestKeyTile = 128;
// What one thread works on should stay in its second-level cache, which has at
// least 512 KiB on most machines.
constexpr int64_t cacheBytes = 512 * 1024;
// Dynamic distribution needs some units per thread to even out their times.
constexpr int64_t fewestUnits = 16;

/// `largest`, or the tile that covers a known shorter `length` at once.
int64_t fitTile(int64_t length, int64_t largest) {
  if (ShapedType::isDynamic(length) || length >= largest)
    return largest;
  return std::max<int64_t>(llvm::alignTo(length, lanes), lanes);
}

/// Bytes of f32 that one step of the online softmax touches.
int64_t getWorkingSet(AttentionOp op, int64_t queries, int64_t keys) {
  int64_t headDim = op.getHeadDim(), valueDim = op.getValueDim();
  int64_t query = queries * headDim, scores = queries * keys,
          accumulators = 2 * queries * valueDim,
          keysAndValues = keys * (headDim + valueDim);
  return 4 * (query + scores + accumulators + keysAndValues);
}

/// Whether there is enough parallel work, as far as sizes are known.
bool hasEnoughUnits(AttentionOp op, int64_t queries) {
  ArrayRef<int64_t> sizes = op.getQuery().getType().getShape().drop_back();
  if (llvm::any_of(sizes, ShapedType::isDynamic))
    return true;
  // No factor counts for more than is needed, so the product cannot overflow.
  int64_t units =
      std::min<int64_t>(llvm::divideCeil(sizes.back(), queries), fewestUnits);
  for (int64_t size : sizes.drop_back())
    units *= std::min(size, fewestUnits);
  return units >= fewestUnits;
}

} // namespace

Schedule flash::chooseCpuSchedule(AttentionOp op) {
  int64_t rank = op.getQuery().getType().getRank();
  int64_t queries =
      fitTile(op.getQuery().getType().getDimSize(rank - 2), largestQueryTile);
  int64_t keys =
      fitTile(op.getKey().getType().getDimSize(rank - 2), largestKeyTile);
  auto halve = [](int64_t tile) { return llvm::alignTo(tile / 2, lanes); };
  while (queries > 2 * lanes &&
         (getWorkingSet(op, queries, keys) > cacheBytes ||
          !hasEnoughUnits(op, queries)))
    queries = halve(queries);
  Schedule schedule;
  schedule.queryTile = queries;
  schedule.keyTile = keys;
  return schedule;
}
