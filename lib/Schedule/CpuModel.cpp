//===- CpuModel.cpp - Tiles for threads, vectors and caches ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelParts.h"
#include "llvm/Support/MathExtras.h"

using namespace flash;

namespace {
// Queries fill the lanes of vectors; this many f32 the widest of them
// (AVX-512).
constexpr int64_t lanesPerVector = 16;
// Measured best on AVX-512 (docs/lab/2026-11-21-cpu-tile-sizes.md): larger
// tiles gain nothing, and smaller ones read keys and values more often.
constexpr int64_t largestQueryTile = 128, largestKeyTile = 128;
// What one thread works on should stay in its second-level cache, which has at
// least 512 KiB on most machines.
constexpr int64_t cacheBytesPerThread = 512 * 1024;
// Dynamic distribution needs several tiles per thread to even out their times.
constexpr int64_t fewestTiles = 16;

/// `largest`, or the tile that covers a known shorter `length` at once.
int64_t fitTile(std::optional<int64_t> length, int64_t largest) {
  if (!length || *length >= largest)
    return largest;
  return std::max<int64_t>(llvm::alignTo(*length, lanesPerVector),
                           lanesPerVector);
}

/// Bytes of f32 that one step of the online softmax touches.
int64_t getWorkingSet(const Problem &problem, int64_t queries, int64_t keys) {
  int64_t headDim = problem.headDim, valueDim = problem.valueDim;
  int64_t query = queries * headDim, scores = queries * keys,
          accumulators = 2 * queries * valueDim,
          keysAndValues = keys * (headDim + valueDim);
  return 4 * (query + scores + accumulators + keysAndValues);
}

/// Whether there is enough parallel work, as far as sizes are known.
bool hasEnoughTiles(const Problem &problem, int64_t queries) {
  std::optional<int64_t> tiles = problem.countQueryTiles(queries);
  return !tiles || *tiles >= fewestTiles;
}

} // namespace

Schedule flash::chooseCpuSchedule(const Problem &problem) {
  int64_t queries = fitTile(problem.countRows(), largestQueryTile);
  int64_t keys = fitTile(problem.keys, largestKeyTile);
  auto halve = [](int64_t tile) {
    return llvm::alignTo(tile / 2, lanesPerVector);
  };
  while (queries > 2 * lanesPerVector &&
         (getWorkingSet(problem, queries, keys) > cacheBytesPerThread ||
          !hasEnoughTiles(problem, queries)))
    queries = halve(queries);
  Schedule schedule;
  schedule.queryTile = queries;
  schedule.keyTile = keys;
  return schedule;
}
