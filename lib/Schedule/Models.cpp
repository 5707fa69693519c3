//===- Models.cpp - Which model is for which target -----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FewRows.h"
#include "ModelParts.h"
#include "flash/Schedule/SplitKV.h"
#include "flash/Schedule/ValueColumns.h"
#include "flash/Schedule/Warpgroups.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/FormatVariadic.h"

#define DEBUG_TYPE "flash-schedule"

using namespace flash;
using llvm::formatv;

// Rows of the largest tile that models propose for all head dimensions.
static constexpr int64_t mostPackedHeads = 128;

/// The most columns of the values that a block has unless the schedule says.
static int64_t getMostValueColumns(const Problem &problem,
                                   const Schedule &schedule) {
  if (problem.multipliesQuantized())
    return mostQuantizedColumns;
  return schedule.has(ScheduleFeatures::DivideColumns) ? mostDividedColumns
                                                       : mostValueColumns;
}

int64_t flash::getValueColumns(const Problem &problem,
                               const Schedule &schedule) {
  return schedule.valueColumns.value_or(getDefaultValueColumns(
      problem.valueDim, getMostValueColumns(problem, schedule)));
}

int64_t flash::countValueBlocks(const Problem &problem,
                                const Schedule &schedule) {
  return countValueBlocks(problem.valueDim, getValueColumns(problem, schedule));
}

bool flash::haveKeysValues(const Problem &problem, int64_t valueColumns) {
  return problem.valuesOfKeys && beginAtPanels(problem.valueDim, valueColumns,
                                               problem.getElementBytes());
}

bool flash::hasMaskedTiles(const Problem &problem) {
  bool seesAll = problem.keys && problem.meanKeysPerQuery == problem.keys;
  return problem.masksInRegion || (problem.isMasked && !seesAll);
}

/// Whether products convert the tiles of 8 bits that they read. Otherwise these
/// become a tile that is multiplied: where warps share tiles, or products do,
/// or masked tiles are checked for values that are not finite
/// (`tile-multiply-quantized`).
static bool convertsInRegisters(const Problem &problem,
                                const Schedule &schedule, bool areOfKeys) {
  int64_t warps = schedule.warps.value_or(getDefaultWarps(*schedule.queryTile));
  return !schedule.hasRoles() && warps == 1 && !areOfKeys &&
         !hasMaskedTiles(problem);
}

int64_t flash::getSharedBytes(const Problem &problem,
                              const Schedule &schedule) {
  int64_t bytes = schedule.queryStages.value_or(1) *
                  problem.getTileBytes(*schedule.queryTile, problem.headDim);
  if (problem.queryElement && problem.queryElement != problem.element)
    bytes += getSharedTileBytes(*schedule.queryTile, problem.headDim,
                                problem.queryElement.getIntOrFloatBitWidth() /
                                    int64_t(8));
  // What one warpgroup shares with another: probabilities, and values of rows,
  // of each tile of keys and in the end.
  if (schedule.has(ScheduleFeatures::DivideColumns))
    bytes += problem.getTileBytes(*schedule.queryTile, *schedule.keyTile) +
             2 * *schedule.queryTile * int64_t(sizeof(float));
  int64_t ofValues = getValueColumns(problem, schedule);
  bool areOfKeys = haveKeysValues(problem, ofValues);
  for (auto [element, columns] :
       {std::pair(problem.keyElement, problem.headDim),
        {problem.valueElement, areOfKeys ? 0 : ofValues}}) {
    int64_t tile = problem.getTileBytes(*schedule.keyTile, columns);
    bool isQuantized = element && element != problem.element;
    if (isQuantized && !convertsInRegisters(problem, schedule, areOfKeys))
      bytes += tile;
    bytes +=
        *schedule.stages *
        (isQuantized ? getSharedTileBytes(*schedule.keyTile, columns,
                                          element.getIntOrFloatBitWidth() / 8)
                     : tile);
  }
  // Values of 8 bits are multiplied with keys as neighbours.
  if (problem.multipliesQuantized())
    bytes +=
        *schedule.stages * (problem.getTileBytes(ofValues, *schedule.keyTile) -
                            problem.getTileBytes(*schedule.keyTile, ofValues));
  return bytes;
}

std::string flash::nameSmaller(Schedule schedule, llvm::StringRef name,
                               std::optional<int64_t> Schedule::*key,
                               int64_t multiple,
                               llvm::function_ref<bool(Schedule &)> fits) {
  for (int64_t value = llvm::alignTo(*(schedule.*key), multiple) - multiple;
       value > 0; value -= multiple) {
    Schedule smaller = schedule;
    smaller.*key = value;
    if (fits(smaller))
      return formatv(", such as {0} = {1}", name, value);
  }
  return "";
}

std::string flash::findElementFault(const Problem &problem,
                                    const Machine &target) {
  std::string name;
  llvm::raw_string_ostream(name) << problem.element;
  return target.findProductFault(name);
}

bool flash::canHaveRoles(const Problem &problem, const Machine &target) {
  return target.hasWarpgroups() && target.copies >= TileCopies::Bulk &&
         (problem.getElementBits() == 16 || problem.multipliesQuantized()) &&
         !problem.isDequantized();
}

int64_t flash::choosePackedHeads(const Problem &problem, const Machine &target,
                                 const Schedule &given) {
  if (given.packedHeads)
    return *given.packedHeads;
  bool mayBeFew = problem.queries
                      ? *problem.queries <= mostPackedQueries
                      : problem.hasPackedRows && problem.keysInPages;
  if (!target.isGpu() || !problem.group || !mayBeFew ||
      problem.multipliesQuantized())
    return 1;
  Problem packed = problem;
  packed.packedHeads = std::min(*problem.group, mostPackedHeads);
  for (; packed.packedHeads > 1; --packed.packedHeads) {
    if (*problem.group % packed.packedHeads != 0)
      continue;
    int64_t rows = given.queryTile
                       ? *given.queryTile
                       : *chooseSchedule(packed, target, given).queryTile;
    if (rows >= packed.packedHeads)
      return packed.packedHeads;
  }
  return 1;
}

/// What is wrong with the number of packed heads; empty if nothing is.
static std::string findPackingFault(const Problem &problem,
                                    const Schedule &schedule) {
  int64_t packed = schedule.getPackedHeads();
  if (packed == 1)
    return "";
  if (!problem.group)
    return "packed_heads needs types that say how many heads there are";
  if (*problem.group % packed == 0)
    return "";
  int64_t nearest = std::min(*problem.group, packed);
  while (*problem.group % nearest != 0)
    --nearest;
  return formatv("packed_heads must divide the {0} query heads that read "
                 "the same keys, got {1}; the nearest is {2}",
                 *problem.group, packed, nearest);
}

/// What is wrong with the columns of the values; empty if nothing is. Fills
/// them in where a block of a GPU has not all.
static std::string completeValueColumns(const Problem &problem,
                                        const Machine &target,
                                        Schedule &schedule) {
  int64_t all = problem.valueDim,
          columns = getDefaultValueColumns(
              all, getMostValueColumns(problem, schedule));
  if (!schedule.valueColumns && target.isGpu() && columns < all)
    schedule.valueColumns = columns;
  return findValueColumnsFault(all, schedule.valueColumns.value_or(all));
}

static Schedule chooseTiles(const Problem &problem, const Machine &target,
                            const Schedule &given) {
  if (!target.isGpu())
    return chooseCpuSchedule(problem);
  if (std::optional<Schedule> ofFewRows =
          chooseForFewRows(problem, target, given))
    return *ofFewRows;
  // Given tiles may be such that only warps without roles can have them.
  bool hasRoles = given.features
                      ? given.hasRoles()
                      : canBeWarpgroupTiles(given.queryTile.value_or(0),
                                            given.keyTile.value_or(0));
  if (!hasRoles || !canHaveRoles(problem, target) ||
      !hasSm90Tiles(problem, target, given)) {
    LLVM_DEBUG(llvm::dbgs() << "warps without roles: "
                            << (hasRoles ? "of the target or the element type\n"
                                         : "of the given tiles or features\n"));
    return chooseSm80Schedule(problem, target);
  }
  Schedule schedule = chooseSm90Schedule(problem, target, given);
  // One warpgroup has none to alternate with.
  if (given.queryTile == rowsOfWarpgroup &&
      !schedule.has(ScheduleFeatures::DivideColumns))
    schedule.features = *schedule.features & ~ScheduleFeatures::PingPong;
  if (given.stages == 1 &&
      haveKeysValues(problem, getValueColumns(problem, schedule)))
    schedule.features = *schedule.features & ~ScheduleFeatures::Overlap;
  return schedule;
}

Schedule flash::chooseSchedule(const Problem &problem, const Machine &target,
                               const Schedule &given) {
  Schedule schedule = chooseTiles(problem, target, given);
  if (target.isGpu())
    fitToLengths(problem, target, given, schedule);
  if (problem.packedHeads > 1)
    schedule.packedHeads = problem.packedHeads;
  return schedule;
}

std::string flash::completeSchedule(const Problem &problem,
                                    const Machine &target, Schedule &schedule) {
  // Where no features are proposed, there are none to leave out.
  schedule.leftOut = ScheduleFeatures::None;
  if (std::string fault = findPackingFault(problem, schedule); !fault.empty())
    return fault;
  if (std::string fault = schedule.findFault(); !fault.empty())
    return fault;
  if (std::string fault = schedule.findForeignKey(ScheduleOwner::Attention);
      !fault.empty())
    return fault;
  if (std::string fault = completeValueColumns(problem, target, schedule);
      !fault.empty())
    return fault;
  if (!target.isGpu())
    return "";
  if (std::string fault = findElementFault(problem, target); !fault.empty())
    return fault;
  std::string fault = schedule.hasRoles() && canHaveRoles(problem, target)
                          ? completeSm90Schedule(problem, target, schedule)
                          : completeSm80Schedule(problem, target, schedule);
  if (!schedule.splitCtas && !schedule.numSplits && !schedule.splitKeys)
    schedule.numSplits = 1;
  return fault;
}
