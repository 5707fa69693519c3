//===- FewRows.cpp - Schedules for few queries of each key head -----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FewRows.h"

#include "ModelParts.h"
#include "flash/Schedule/SplitKV.h"
#include "flash/Schedule/Warpgroups.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

#define DEBUG_TYPE "flash-schedule"

using namespace flash;

// The rows of two warps, and the widest heads with which a warp has registers
// for a tile of keys.
static constexpr int64_t mostRows = 2 * rowsOfWarp, mostColumns = 256;
// With fewer keys, a kernel ends before copies are what it waits for: of rows
// that need splits to fill multiprocessors, and of more, for which a second
// kernel costs more than splits save.
static constexpr int64_t fewestKeys = 512, fewestKeysOfMoreRows = 1024;
// Rows are long with so many keys.
static constexpr int64_t keysOfLongRow = 8192;
// While one tile of keys is multiplied, the next one is copied. Long tiles take
// less time for each key, and wide heads have no room for them.
static constexpr int64_t stagesOfFewRows = 2, longKeyTile = 64,
                         shortKeyTile = 32, mostColumnsOfLongTile = 128;
// Where sizes are open, keys are split for so many blocks of a multiprocessor.
static constexpr int64_t blocksOfOpenSizes = 2;

// Fitted to 698 schedules of 114 problems on an H200, whose times they meet
// within 6 % (docs/lab/2026-11-30-blocks-of-one-warp.md).
//
// A step of a block, one tile of keys, by itself, and for each key and column.
static constexpr double usOfStep = 0.193, usPerKeyAndColumn = 6.88e-5;
// What all blocks read together in a microsecond, and how much longer that
// takes where some multiprocessors have one block more than others.
static constexpr double bytesPerUs = 4.17e6, exponentOfUneven = 0.144;
// The time of what waits for copies and for steps is the norm of both with this
// exponent: the one that takes longer hides much of the other.
static constexpr double exponentOfBoth = 2.26;
// For each block of a multiprocessor, and with split-KV for the second kernel:
// for itself, for each split, and for each byte of partial results in f32,
// which is written and read.
static constexpr double usPerBlock = 0.448, usOfCombination = 1,
                        usPerSplit = 0.133, usPerPartialByte = 2.67e-7;

int64_t flash::countBlocksAtOnce(const Problem &problem, const Machine &target,
                                 const Schedule &schedule) {
  Schedule staged = schedule;
  staged.stages = schedule.stages.value_or(1);
  int64_t reserved = target.reservedSharedBytesPerBlock;
  int64_t byMemory = (target.sharedBytesPerBlock + reserved) /
                     (getSharedBytes(problem, staged) + reserved);
  int64_t byRegisters = problem.isDequantized()
                            ? getQuantizedTiles(problem).blocks
                            : getFillingBlocks(target, *schedule.queryTile) /
                                  target.multiprocessors;
  return target.multiprocessors *
         std::max<int64_t>(std::min(byMemory, byRegisters), 1);
}

/// Microseconds that a problem takes if the keys of each tile of queries have
/// so many splits, without the time of a launch. All sizes are known.
static double estimate(const Problem &problem, const Machine &target,
                       const Schedule &schedule, int64_t splits) {
  // Blocks visit no others than the keys that a row sees.
  int64_t keys = *problem.mostKeysPerQuery,
          columns = problem.headDim + problem.valueDim,
          tiles = *problem.countQueryTiles(*schedule.queryTile),
          blocks = tiles * splits,
          atOnce = countBlocksAtOnce(problem, target, schedule),
          ofBusiest = llvm::divideCeil(blocks, target.multiprocessors);
  double usOfBlock =
      llvm::divideCeil(llvm::divideCeil(keys, *schedule.keyTile), splits) *
      (usOfStep + usPerKeyAndColumn * *schedule.keyTile * columns / 2);
  double bytesOfBlock =
      double(keys) / splits * columns * problem.getElementBytes();
  double uneven = 1;
  if (blocks <= atOnce)
    uneven = std::pow(double(ofBusiest) * target.multiprocessors / blocks,
                      exponentOfUneven);
  auto getMicrosecondsOfWaves = [&](int64_t waves, int64_t blocksOfWaves) {
    double usOfCopies = blocksOfWaves * bytesOfBlock / bytesPerUs * uneven;
    return std::pow(std::pow(waves * usOfBlock, exponentOfBoth) +
                        std::pow(usOfCopies, exponentOfBoth),
                    1 / exponentOfBoth);
  };
  int64_t fullWaves = blocks / atOnce, rest = blocks % atOnce;
  double us = getMicrosecondsOfWaves(fullWaves, fullWaves * atOnce) +
              getMicrosecondsOfWaves(rest != 0, rest) + usPerBlock * ofBusiest;
  if (splits == 1)
    return us;
  // Partial results are written, and read.
  double partialBytes =
      2.0 * blocks * *problem.countRows() * problem.valueDim * sizeof(float);
  return us + usOfCombination + usPerSplit * splits +
         usPerPartialByte * partialBytes;
}

/// Whether `given` leaves a choice, and has no keys of warps with roles.
static bool mayBeForFewRows(const Schedule &given) {
  bool saysBits = given.splitKeys && !given.features;
  return !saysBits && !given.hasRoles() && !given.ctasPerSm &&
         !given.queryStages && given.queryTile.value_or(0) <= mostRows;
}

std::optional<Schedule> flash::chooseForFewRows(const Problem &problem,
                                                const Machine &target,
                                                const Schedule &given) {
  int64_t columns = std::max(problem.headDim, problem.valueDim);
  std::optional<int64_t> rows = problem.countRows();
  std::optional<int64_t> keys =
      problem.mostKeysPerQuery ? problem.mostKeysPerQuery : problem.keys;
  if (!mayBeForFewRows(given) || !canHaveRoles(problem, target) ||
      problem.multipliesQuantized() || problem.hasPackedRows ||
      problem.masksInRegion || !rows || *rows > mostRows ||
      columns > mostColumns || (keys && *keys < fewestKeys))
    return std::nullopt;
  Schedule schedule;
  schedule.features = ScheduleFeatures::None;
  schedule.stages = stagesOfFewRows;
  auto setTiles = [&](int64_t keyTile) {
    schedule.queryTile =
        given.queryTile.value_or(*rows <= rowsOfWarp ? rowsOfWarp : mostRows);
    schedule.keyTile = given.keyTile.value_or(keyTile);
  };
  bool isWide = columns > mostColumnsOfLongTile;
  setTiles(isWide ? shortKeyTile : longKeyTile);
  // Blocks of short tiles are more at a time, which end at different times. Of
  // more rows or wide heads a block with many keys takes too long by itself.
  if (splitsByLengths(problem, target, *schedule.queryTile)) {
    if (*rows > rowsOfWarp || isWide)
      return std::nullopt;
    setTiles(shortKeyTile);
    return schedule;
  }
  if (!problem.heads || !problem.mostKeysPerQuery) {
    schedule.splitCtas = blocksOfOpenSizes * target.multiprocessors;
    return schedule;
  }
  // One block for each multiprocessor is as fast with roles, and needs no
  // splits. Of few long rows, blocks with roles have more on its way.
  int64_t tiles = *problem.countQueryTiles(*schedule.queryTile);
  bool fillsOnce =
      tiles <= target.multiprocessors && 2 * tiles > target.multiprocessors;
  bool areLong = *problem.mostKeysPerQuery >= keysOfLongRow,
       areShort = *problem.mostKeysPerQuery < fewestKeysOfMoreRows;
  if (!given.features &&
      (fillsOnce || (areFewTiles(target, tiles) ? areLong : areShort)))
    return std::nullopt;
  // All blocks are there at once, rather than some in a second wave.
  if (tiles > countBlocksAtOnce(problem, target, given.over(schedule))) {
    Schedule ofLongTiles = schedule;
    setTiles(shortKeyTile);
    if (tiles > countBlocksAtOnce(problem, target, given.over(schedule)))
      schedule = ofLongTiles;
  }
  const Schedule fit = given.over(schedule);
  int64_t keyTiles = llvm::divideCeil(*problem.mostKeysPerQuery, *fit.keyTile);
  double least = estimate(problem, target, fit, 1);
  // As many blocks as fill multiprocessors: programs of other sizes have the
  // same number.
  for (int64_t blocks = target.multiprocessors,
               atOnce = countBlocksAtOnce(problem, target, fit);
       blocks <= atOnce; blocks += target.multiprocessors) {
    int64_t splits = countSplits(blocks, tiles, keyTiles);
    double us = estimate(problem, target, fit, splits);
    if (us >= least)
      continue;
    LLVM_DEBUG(llvm::dbgs() << "few rows: " << fit.str() << ", " << splits
                            << " splits take " << us << " us\n");
    least = us;
    schedule.splitCtas = blocks;
  }
  return schedule;
}
