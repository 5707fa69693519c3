//===- CostModel.cpp - How long a few tiles take --------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CostModel.h"

#include "ModelParts.h"
#include "flash/Schedule/SplitKV.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "flash-schedule"

using namespace flash;

// Waves of tiles from which on their rate is what counts.
static constexpr int64_t manyWaves = 4;
// Waves that splits may make.
static constexpr int64_t mostSplitWaves = 2;

// Fitted to 669 schedules of 94 problems on an H200, whose times without the
// launch they meet within 5 % in the mean
// (docs/lab/2026-11-22-few-heads-and-the-cost-model.md).
namespace {
// A step of a block, one tile of keys, takes as long as if the tile had so many
// queries and keys more.
constexpr int64_t extraQueriesPerStep = 75, extraKeysPerStep = 8;
// For each pair of a query and a key, and for each column of the products of
// such a pair.
constexpr double usPerPair = 2.25e-5, usPerPairAndColumn = 2.8e-7;
// For each wave behind the first.
constexpr double usPerFurtherWave = 1.7;
// With split-KV: the second kernel, what it reads, the partial results in f32,
// and each split behind the ones that it reads at first.
constexpr double usOfCombination = 2.4, usPerPartialByte = 0.52e-6,
                 usPerFurtherSplit = 0.18;
// A block without keys costs such a part of a step. Where the longest tiles go
// first, all multiprocessors are as busy in the end but for a part of a step.
constexpr double stepsOfEmptyBlock = 0.5, stepsOfLastTile = 0.75;

// The two kernels of a block map take 10 to 20 us for up to 4096 queries and
// keys, 39 us for 8192 and 118 us for 16384 (documents and causal, H200,
// 2026-11-23). What part of the tiles a map leaves out is known on the device
// alone.
constexpr double usOfMap = 16, usPerElement = 3.7e-7, partThatMapsSave = 0.5;

/// Microseconds that a problem takes, without the time of a launch.
class Clock {
public:
  Clock(const Problem &problem, const Machine &target);

  /// If the keys of each tile of queries have so many splits.
  double getMicroseconds(const Schedule &schedule, int64_t splits) const;
  int64_t countTiles(const Schedule &schedule) const {
    return *problem.countQueryTiles(*schedule.queryTile) *
           countValueBlocks(problem, schedule);
  }
  int64_t getMostSplits(const Schedule &schedule) const {
    return countSplits(mostSplitWaves * target.multiprocessors,
                       countTiles(schedule),
                       llvm::divideCeil(*problem.keys, *schedule.keyTile));
  }

private:
  int64_t countWaves(const Schedule &schedule, int64_t splits) const {
    return llvm::divideCeil(countTiles(schedule) * splits,
                            target.multiprocessors);
  }
  /// The tiles of keys that the busiest multiprocessor works on.
  double countSteps(const Schedule &schedule, int64_t splits) const;

  const Problem &problem;
  const Machine &target;
  int64_t partialBytes;
};
} // namespace

Clock::Clock(const Problem &problem, const Machine &target)
    : problem(problem), target(target) {
  int64_t rows = *problem.heads / problem.packedHeads * *problem.countRows();
  partialBytes = rows * problem.valueDim * int64_t(sizeof(float));
}

double Clock::countSteps(const Schedule &schedule, int64_t splits) const {
  auto countKeyTiles = [&](int64_t positions) {
    return llvm::divideCeil(std::min(*problem.keys, positions),
                            *schedule.keyTile);
  };
  // Under a mask, other queries of the tile may have other keys.
  int64_t longest = llvm::divideCeil(
      countKeyTiles(*problem.mostKeysPerQuery +
                    *schedule.queryTile / problem.packedHeads - 1),
      splits);
  if (!problem.isMasked)
    return countWaves(schedule, splits) * longest;
  int64_t queries = *schedule.queryTile / problem.packedHeads;
  double mean = double(*problem.meanKeysPerQuery + queries / 2) /
                double(*schedule.keyTile);
  double all =
      countTiles(schedule) * std::max(mean, stepsOfEmptyBlock * splits);
  return std::max(double(longest),
                  all / target.multiprocessors + stepsOfLastTile);
}

double Clock::getMicroseconds(const Schedule &schedule, int64_t splits) const {
  // Columns of a product of a block, on average.
  int64_t columns = (problem.headDim +
                     problem.valueDim / countValueBlocks(problem, schedule)) /
                    2;
  double usPerStep = (*schedule.queryTile + extraQueriesPerStep) *
                     (*schedule.keyTile + extraKeysPerStep) *
                     (usPerPair + usPerPairAndColumn * columns);
  double us = countSteps(schedule, splits) * usPerStep +
              (countWaves(schedule, splits) - 1) * usPerFurtherWave;
  if (splits > 1)
    us += usOfCombination + usPerPartialByte * splits * partialBytes +
          usPerFurtherSplit * std::max<int64_t>(splits - mostSplitsAtOnce, 0);
  return us;
}

bool flash::paysToListTiles(const Problem &problem, const Machine &target,
                            const Schedule &schedule) {
  if (!problem.heads || !problem.queries || !problem.keys)
    return true;
  int64_t keyTiles = llvm::divideCeil(*problem.keys, *schedule.keyTile);
  if (keyTiles < 2)
    return false;
  if (!target.isGpu())
    return true;
  Clock clock(problem, target);
  int64_t splits = schedule.numSplits.value_or(1);
  if (schedule.splitCtas)
    splits =
        countSplits(*schedule.splitCtas, clock.countTiles(schedule), keyTiles);
  double us = usOfMap;
  if (problem.masksInRegion)
    us += usPerElement * double(*problem.queries) * double(*problem.keys);
  double saved = partThatMapsSave * clock.getMicroseconds(schedule, splits);
  LLVM_DEBUG(llvm::dbgs() << "a block map takes " << us << " us and saves "
                          << saved << " us\n");
  return us < saved;
}

bool flash::mayListKnownTiles(const Schedule &schedule) {
  return schedule.hasRoles() && !schedule.splitKeys && !schedule.isFused();
}

bool flash::hasFewTiles(const Problem &problem, const Machine &target,
                        int64_t queryTile) {
  std::optional<int64_t> tiles = problem.countQueryTiles(queryTile);
  return tiles && *tiles < manyWaves * target.multiprocessors;
}

Schedule flash::chooseForFewTiles(const Problem &problem, const Machine &target,
                                  llvm::ArrayRef<Schedule> choices) {
  Clock clock(problem, target);
  Schedule best;
  double least = std::numeric_limits<double>::infinity();
  for (const Schedule &schedule : choices) {
    int64_t most = clock.getMostSplits(schedule);
    for (int64_t splits = 1; splits <= most; ++splits) {
      double us = clock.getMicroseconds(schedule, splits);
      if (us >= least)
        continue;
      LLVM_DEBUG(llvm::dbgs() << "few tiles: " << schedule.str() << ", "
                              << splits << " splits take " << us << " us\n");
      least = us;
      best = schedule;
      best.splitCtas.reset();
      if (splits > 1)
        best.splitCtas = clock.countTiles(schedule) * splits;
    }
  }
  return best;
}
