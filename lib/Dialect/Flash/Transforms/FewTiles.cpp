//===- FewTiles.cpp - Schedules where tiles are few -----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FewTiles.h"

#include "KeySplits.h"
#include "flash/Support/Multiprocessors.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

// Rounds of tiles from which on their rate is what counts.
static constexpr int64_t manyRounds = 4;
// Rounds that tiles whose keys are shared may make.
static constexpr int64_t mostSharedRounds = 2;

namespace {
/// Microseconds on an H200, without those of a launch: fitted to 669 schedules
/// of 94 problems, which it meets within 5 % in the mean (docs/benchmarks.md).
class Clock {
public:
  Clock(AttentionOp op, KeysOfQuery keysOfQuery);

  /// If each tile of queries has `splits` blocks.
  double getTime(const Schedule &schedule, int64_t splits) const;
  int64_t countTiles(const Schedule &schedule) const {
    return *countQueryTiles(query, *schedule.queryTile);
  }
  int64_t getMostSplits(const Schedule &schedule) const {
    return countSplits(mostSharedRounds * multiprocessors, countTiles(schedule),
                       llvm::divideCeil(keys, *schedule.keyTile));
  }

private:
  int64_t countRounds(const Schedule &schedule, int64_t splits) const {
    return llvm::divideCeil(countTiles(schedule) * splits, multiprocessors);
  }
  /// The tiles of keys that the busiest multiprocessor works on.
  double getSteps(const Schedule &schedule, int64_t splits) const;

  RankedTensorType query;
  int64_t keys, columns, partialBytes;
  KeysOfQuery keysOfQuery;
  bool isMasked;
};
} // namespace

Clock::Clock(AttentionOp op, KeysOfQuery keysOfQuery)
    : query(op.getQuery().getType()),
      keys(op.getKey().getType().getDimSize(query.getRank() - 2)),
      columns((op.getHeadDim() + op.getValueDim()) / 2),
      keysOfQuery(keysOfQuery), isMasked(bool(op.getMask())) {
  int64_t rows = *countQueryTiles(query, /*queryTile=*/1);
  partialBytes = rows * op.getValueDim() * int64_t(sizeof(float));
}

double Clock::getSteps(const Schedule &schedule, int64_t splits) const {
  auto countKeyTiles = [&](int64_t positions) {
    return llvm::divideCeil(std::min(keys, positions), *schedule.keyTile);
  };
  // Under a mask, other queries of the tile may have other keys.
  int64_t longest = llvm::divideCeil(
      countKeyTiles(keysOfQuery.most + *schedule.queryTile - 1), splits);
  if (!isMasked)
    return countRounds(schedule, splits) * longest;
  // The longest tiles go first, so that at the end all multiprocessors are as
  // busy but for a part of a tile. A block without keys takes half of a step.
  double mean = double(keysOfQuery.mean + *schedule.queryTile / 2) /
                double(*schedule.keyTile);
  double all = countTiles(schedule) * std::max(mean, 0.5 * splits);
  return std::max(double(longest), all / multiprocessors + 0.75);
}

double Clock::getTime(const Schedule &schedule, int64_t splits) const {
  // A step takes as long as if it had so many queries and keys more.
  constexpr int64_t queriesBeside = 75, keysBeside = 8;
  constexpr double ofPair = 2.25e-5, ofColumnOfPair = 2.8e-7;
  constexpr double ofFurtherRound = 1.7;
  constexpr double ofCombination = 2.4, ofPartialByte = 0.52e-6;
  double ofStep = (*schedule.queryTile + queriesBeside) *
                  (*schedule.keyTile + keysBeside) *
                  (ofPair + ofColumnOfPair * columns);
  double time = getSteps(schedule, splits) * ofStep +
                (countRounds(schedule, splits) - 1) * ofFurtherRound;
  if (splits > 1)
    time += ofCombination + ofPartialByte * splits * partialBytes;
  return time;
}

bool flash::hasFewTiles(AttentionOp op, int64_t queryTile) {
  std::optional<int64_t> tiles =
      countQueryTiles(op.getQuery().getType(), queryTile);
  return tiles && *tiles < manyRounds * multiprocessors;
}

Schedule flash::chooseForFewTiles(AttentionOp op, KeysOfQuery keysOfQuery,
                                  ArrayRef<Schedule> choices) {
  Clock clock(op, keysOfQuery);
  Schedule best;
  double least = std::numeric_limits<double>::infinity();
  for (Schedule schedule : choices) {
    int64_t most = clock.getMostSplits(schedule);
    for (int64_t splits = 1; splits <= most; ++splits) {
      double time = clock.getTime(schedule, splits);
      if (time >= least)
        continue;
      least = time;
      best = schedule;
      best.units.reset();
      if (splits > 1)
        best.units = clock.countTiles(schedule) * splits;
    }
  }
  return best;
}
