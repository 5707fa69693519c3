//===- Sm80Model.cpp - Tiles for mma.sync and cp.async --------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelParts.h"
#include "flash/Schedule/Warpgroups.h"
#include "flash/Support/ElementType.h"
#include "flash/Support/HeadDim.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace flash;
using llvm::formatv;

namespace {
constexpr int64_t threadsPerWarp = 32;
// What addresses, the state of the rows and loads in flight need of a thread's
// registers beside the tiles: no head dimension spills with this (test/Ptxas).
constexpr int64_t registersBesideTiles = 32;
constexpr int64_t leastKeyTile = 16;
// Elements of 8 bits that a thread copies at once, 16 bytes.
constexpr int64_t quantizedColumns = 16;
// How many blocks of one warp that convert keys and values there are on a
// multiprocessor if tiles of queries are few
// (docs/lab/2026-11-30-blocks-of-one-warp.md).
constexpr int64_t blocksOfFewTiles = 4;
// Best first, as for candidates below
// (docs/lab/2026-11-30-conversion-in-registers.md).
constexpr QuantizedTiles quantizedTiles[] = {{64, 32, 1, 16},
                                             {112, 64, 1, 8},
                                             {128, 32, 2, 8},
                                             {160, 32, 1, 8},
                                             {largestHeadDim, 16, 2, 8}};
// The same where masks have tiles converted in shared memory
// (docs/lab/2026-11-28-caches-of-8-bits.md).
constexpr QuantizedTiles maskedQuantizedTiles = {largestHeadDim, 16, 2, 12};
/// What a thread needs is such that the registers of a multiprocessor are
/// enough for so many warps.
int64_t countWarpsPerMultiprocessor(const Machine &target) {
  return target.registers / (target.registersPerThread + 1) / threadsPerWarp;
}

/// Registers of a thread for the scores and the accumulator in f32.
int64_t countTileRegisters(const Problem &problem, const Schedule &schedule) {
  int64_t values = *schedule.queryTile *
                   (*schedule.keyTile + getValueColumns(problem, schedule));
  return values / (threadsPerWarp * *schedule.warps);
}

/// Tiles that need no spills for head dimensions up to a bound, best first; as
/// measured on an H200 (docs/lab/2026-11-21-kernels-of-the-sm80-kind.md) and
/// assembled for all head dimensions (test/Ptxas).
struct Candidate {
  int64_t maxHeadDim, queryTile, keyTile;
};
constexpr Candidate candidatesOf16Bits[] = {{72, 128, 64},
                                            {128, 128, 32},
                                            {144, 64, 32},
                                            {256, 64, 64},
                                            {largestHeadDim, 64, 32}};
constexpr Candidate candidatesOf32Bits[] = {
    {16, 128, 32}, {48, 64, 32}, {56, 64, 16},
    {80, 128, 32}, {96, 64, 32}, {largestHeadDim, 64, 16}};
// A masked step needs registers for the product that leaves out masked keys.
constexpr Candidate maskedCandidatesOf32Bits[] = {
    {16, 128, 32}, {48, 64, 32}, {largestHeadDim, 64, 16}};
} // namespace

int64_t flash::getFillingBlocks(const Machine &target, int64_t queryTile) {
  return std::clamp<int64_t>(target.multiprocessors *
                                 countWarpsPerMultiprocessor(target) /
                                 getDefaultWarps(queryTile),
                             1, mostSplitCtas);
}

const QuantizedTiles &flash::getQuantizedTiles(const Problem &problem) {
  if (hasMaskedTiles(problem))
    return maskedQuantizedTiles;
  int64_t dim = std::max(problem.headDim, problem.valueDim);
  return *llvm::find_if(quantizedTiles, [&](const QuantizedTiles &tiles) {
    return dim <= tiles.maxHeadDim;
  });
}

Schedule flash::chooseSm80Schedule(const Problem &problem,
                                   const Machine &target) {
  int64_t dim = std::max(problem.headDim, problem.valueDim);
  bool is32Bits = problem.getElementBits() == 32;
  llvm::ArrayRef<Candidate> candidates = candidatesOf16Bits;
  if (is32Bits && problem.isMasked)
    candidates = maskedCandidatesOf32Bits;
  else if (is32Bits)
    candidates = candidatesOf32Bits;
  const Candidate *fit = llvm::find_if(
      candidates, [&](const Candidate &c) { return dim <= c.maxHeadDim; });
  Schedule schedule;
  schedule.queryTile = fit->queryTile;
  schedule.keyTile = fit->keyTile;
  // A tile need not be longer than the queries there are, but three groups of
  // rows would be one warp's.
  std::optional<int64_t> rows = problem.countRows();
  if (rows && *rows <= fit->queryTile / 2)
    schedule.queryTile =
        std::max<int64_t>(llvm::PowerOf2Ceil(*rows), rowsOfWarp);
  // Cards with less shared memory have smaller tiles.
  auto isTooLarge = [&] {
    Schedule staged = schedule;
    staged.stages = 1;
    return getSharedBytes(problem, staged) > target.portableSharedBytesPerBlock;
  };
  while (isTooLarge() && *schedule.keyTile > leastKeyTile)
    *schedule.keyTile /= 2;
  while (isTooLarge() && *schedule.queryTile > rowsOfWarp)
    *schedule.queryTile /= 2;
  chooseSplitKV(problem, target, schedule);
  // One warp waits for its copies and converts them itself: many small blocks
  // do both at the same time (docs/lab/2026-11-28-caches-of-8-bits.md). Of few
  // tiles the combination of so many splits would take longer.
  if (problem.isDequantized() && *schedule.queryTile == rowsOfWarp) {
    const QuantizedTiles &best = getQuantizedTiles(problem);
    schedule.keyTile = best.keyTile;
    std::optional<int64_t> tiles = problem.countQueryTiles(rowsOfWarp);
    bool areFew = tiles && target.copies >= TileCopies::Async &&
                  areFewTiles(target, *tiles);
    schedule.stages = target.copies >= TileCopies::Async ? best.stages : 1;
    int64_t blocks = areFew ? blocksOfFewTiles : best.blocks;
    while (blocks > countWarpsPerMultiprocessor(target) &&
           getSharedBytes(problem, schedule) > getSharedLimit(target, blocks))
      --blocks;
    if (schedule.splitCtas)
      schedule.splitCtas =
          std::min(target.multiprocessors * blocks, mostSplitCtas);
  }
  return schedule;
}

/// What a block with these tiles has too few of; empty if it has enough.
static std::string findResourceFault(const Problem &problem,
                                     const Machine &target,
                                     const Schedule &schedule) {
  int64_t registers = countTileRegisters(problem, schedule);
  int64_t available =
      std::max<int64_t>(0, target.registersPerThread - registersBesideTiles);
  if (registers > available)
    return formatv("scores and accumulator of {0} queries and {1} keys need "
                   "{2} registers of each of {3} threads, and there are {4}; "
                   "choose smaller tiles or more warps",
                   *schedule.queryTile, *schedule.keyTile, registers,
                   threadsPerWarp * *schedule.warps, available);
  int64_t sharedBytes = getSharedBytes(problem, schedule);
  if (sharedBytes > target.sharedBytesPerBlock)
    return formatv("the tiles need {0} bytes of shared memory, and a block may "
                   "have {1}; choose smaller tiles or fewer stages",
                   sharedBytes, target.sharedBytesPerBlock);
  return "";
}

std::string flash::completeSm80Schedule(const Problem &problem,
                                        const Machine &target,
                                        Schedule &schedule) {
  if (problem.multipliesQuantized())
    return "precision(fp8) is of warps with roles, which multiply 64, 128 or "
           "192 queries by a multiple of 32 keys; choose such tiles and "
           "features, or leave them out";
  if (schedule.hasRoles() && problem.isDequantized())
    return formatv("the features {0} are of kernels whose keys and values have "
                   "16 bits in memory, and quantized ones are converted by "
                   "warps without roles; leave the features out",
                   stringifyScheduleFeatures(*schedule.features));
  if (schedule.hasRoles())
    return formatv("the features {0} need the target sm_90a and elements of 16 "
                   "bits",
                   stringifyScheduleFeatures(*schedule.features));
  schedule.features = ScheduleFeatures::None;
  if (schedule.ctasPerSm)
    return "ctas_per_sm is of kernels whose warps have roles; they are of "
           "the target sm_90a and elements of 16 bits";
  if (*schedule.queryTile % rowsOfWarp != 0)
    return formatv("query_tile must be a multiple of 16 on tensor cores, got "
                   "{0}; the nearest is {1}",
                   *schedule.queryTile,
                   llvm::alignTo(*schedule.queryTile, rowsOfWarp));
  int64_t keysPerStep = ElementType::find(problem.element)->productStep;
  if (*schedule.keyTile % keysPerStep != 0) {
    std::string text;
    llvm::raw_string_ostream(text)
        << "key_tile must be a multiple of " << keysPerStep
        << " on tensor cores for " << problem.element << ", got "
        << *schedule.keyTile << "; the nearest is "
        << llvm::alignTo(*schedule.keyTile, keysPerStep);
    return text;
  }
  int64_t groups = *schedule.queryTile / rowsOfWarp;
  if (!schedule.warps)
    schedule.warps = getDefaultWarps(*schedule.queryTile);
  if (groups % *schedule.warps != 0)
    return formatv("query_tile must be a multiple of 16 times the warps, got "
                   "{0} and {1} warps{2}",
                   *schedule.queryTile, *schedule.warps,
                   nameSmaller(schedule, "warps", &Schedule::warps, 1,
                               [&](const Schedule &fewer) {
                                 return groups % *fewer.warps == 0;
                               }));
  if (!schedule.stages)
    schedule.stages = 1;
  if (problem.isDequantized())
    for (int64_t columns : {problem.headDim, problem.valueDim})
      if (columns % quantizedColumns != 0)
        return formatv("quantized keys and values have head dimensions that "
                       "are multiples of {0} on tensor cores, got {1}; use "
                       "tensors of 16 bits, or cpu",
                       quantizedColumns, columns);
  std::string fault = findResourceFault(problem, target, schedule);
  if (!fault.empty())
    fault += nameSmaller(
        schedule, "key_tile", &Schedule::keyTile, keysPerStep,
        [&](const Schedule &smaller) {
          return findResourceFault(problem, target, smaller).empty();
        });
  return fault;
}
