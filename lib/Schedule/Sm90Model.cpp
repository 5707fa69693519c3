//===- Sm90Model.cpp - Tiles for wgmma and bulk copies --------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CostModel.h"
#include "ModelParts.h"
#include "flash/Schedule/ValueColumns.h"
#include "flash/Schedule/Warpgroups.h"
#include "flash/Support/HeadDim.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "flash-schedule"

using namespace flash;
using llvm::ArrayRef, llvm::formatv, llvm::SmallVector;

namespace {

// The keys that a step of a product sums over (wgmma k16), and the columns that
// its result can have. A block has at most three warpgroups beside the one that
// copies: more leave each thread too few registers.
constexpr int64_t keysPerStep = 16, maxKeyTile = 256,
                  maxQueryTile = 3 * rowsOfWarpgroup;
// Of elements of 8 bits: the keys of a step, and what head dimensions are
// multiples of, as rows are copied in multiples of 16 bytes.
constexpr int64_t quantizedKeysPerStep = 32, quantizedColumns = 16;
// The keys of a short tile, the bytes that it has at least, so that enough are
// on their way, and up to how many keys of a multiprocessor it is faster where
// these are all that it waits for (docs/lab,
// 2026-11-30-short-tiles-of-keys.md).
constexpr int64_t shortKeyTile = 64, leastBytesOfShortTile = 16 << 10,
                  mostKeysInShortTiles = 4096;
// With so many keys of a block, warpgroups that divide the columns of values
// alternate between tiles: a pair of tiles begins later than one
// (docs/lab, 2026-11-30-warpgroups-that-alternate.md).
constexpr int64_t leastAlternatingKeys = 1536;
// Shared memory that the barriers of a block's rings need, rounded up.
constexpr int64_t barrierBytesPerBlock = 1024;
// A panel of a tile in shared memory (128-byte swizzle), through which results
// are stored.
constexpr int64_t panelBytesPerRow = 128;
// Registers of a thread: what addresses, the state of the rows and the softmax
// need beside the tiles; and what ptxas keeps beside the result of a product,
// which needs all its registers at once. Both as assembled for all head
// dimensions (test/Ptxas).
constexpr int64_t registersBesideTiles = 24, registersBesideResult = 30;

constexpr ScheduleFeatures specialized = ScheduleFeatures::SpecializeWarps |
                                         ScheduleFeatures::LazyRescale |
                                         ScheduleFeatures::BulkStore;
constexpr ScheduleFeatures overlapped = specialized | ScheduleFeatures::Overlap;
constexpr ScheduleFeatures divided = ScheduleFeatures::SpecializeWarps |
                                     ScheduleFeatures::BulkStore |
                                     ScheduleFeatures::DivideColumns;
constexpr ScheduleFeatures pingPong = overlapped | ScheduleFeatures::PingPong;

/// Tiles for head dimensions up to a bound and numbers of keys of a query
/// between bounds, best first; as measured on an H200 (docs/lab).
struct Candidate {
  int64_t maxHeadDim, minKeysPerQuery, maxKeysPerQuery, queryTile, keyTile;
  ScheduleFeatures features;
  std::optional<int64_t> stages = {}, ctasPerSm = {};
};
constexpr Candidate candidates[] = {
    {72, 0, unlimited, 192, 128, pingPong | ScheduleFeatures::Persistent},
    {96, 2048, unlimited, 192, 96, pingPong | ScheduleFeatures::Persistent},
    {96, 0, unlimited, 128, 128, pingPong | ScheduleFeatures::Persistent},
    {104, 0, unlimited, 192, 96, pingPong | ScheduleFeatures::Persistent},
    {128, 2048, unlimited, 192, 80, overlapped | ScheduleFeatures::Persistent},
    {128, 0, unlimited, 128, 128, pingPong | ScheduleFeatures::Persistent},
    {192, 0, unlimited, 128, 96, pingPong | ScheduleFeatures::Persistent},
    {256, 0, unlimited, 128, 64, overlapped | ScheduleFeatures::Persistent}};
// Rows of a masked program differ in length, and so do blocks. Where rows are
// short, more of them at a time fill the gaps between tiles. A causal mask
// leaves a query half of the keys.
constexpr Candidate maskedCandidates[] = {
    {64, 0, 288, 64, 64, overlapped | ScheduleFeatures::Persistent, 2, 3},
    {64, 0, 768, 128, 64, specialized | ScheduleFeatures::Persistent, 3, 2},
    {64, 0, 768, 128, 128, pingPong | ScheduleFeatures::Persistent},
    {56, 0, unlimited, 192, 96, pingPong | ScheduleFeatures::Persistent},
    {64, 0, unlimited, 192, 128, pingPong | ScheduleFeatures::Persistent},
    {72, 0, unlimited, 192, 96, pingPong | ScheduleFeatures::Persistent},
    {96, 1024, unlimited, 192, 96, pingPong | ScheduleFeatures::Persistent},
    {96, 0, unlimited, 128, 128, pingPong | ScheduleFeatures::Persistent},
    {104, 0, unlimited, 192, 96, pingPong | ScheduleFeatures::Persistent},
    {128, 3072, unlimited, 192, 80, overlapped | ScheduleFeatures::Persistent},
    {128, 0, unlimited, 128, 128, pingPong | ScheduleFeatures::Persistent},
    {192, 0, unlimited, 128, 96, pingPong | ScheduleFeatures::Persistent},
    {256, 0, 768, 128, 64,
     specialized | ScheduleFeatures::PingPong | ScheduleFeatures::Persistent},
    {256, 0, unlimited, 128, 64, pingPong | ScheduleFeatures::Persistent}};
/// The same for elements of 8 bits, whose products with values need registers
/// of their own beside the accumulator. As it is multiplied at each step
/// anyway, it is always rescaled.
constexpr ScheduleFeatures quantized =
    ScheduleFeatures::SpecializeWarps | ScheduleFeatures::BulkStore |
    ScheduleFeatures::Overlap | ScheduleFeatures::Persistent;
constexpr ScheduleFeatures quantizedPingPong =
    quantized | ScheduleFeatures::PingPong;
constexpr Candidate quantizedCandidates[] = {
    {64, 0, unlimited, 192, 96, quantizedPingPong},
    {128, 0, unlimited, 128, 128, quantized},
    {largestHeadDim, 0, unlimited, 128, 64, quantizedPingPong}};
constexpr Candidate maskedQuantizedCandidates[] = {
    {64, 0, unlimited, 192, 96, quantizedPingPong},
    {128, 0, unlimited, 128, 128, quantizedPingPong},
    {largestHeadDim, 0, unlimited, 128, 64, quantizedPingPong}};
} // namespace

/// Whether warpgroups that divide the columns of values alternate between tiles
/// of keys: where these are the values, too, there is no mask, and a key has so
/// many queries that products take longer than reading it. A mask may leave all
/// keys (`hasMaskedTiles`), but that is an estimate, of the first head: under a
/// mask of each head warpgroups could not alternate, and a warning would say
/// so.
static bool paysToAlternate(const Problem &problem, const Machine &target,
                            const Schedule &schedule, const Schedule &given) {
  std::optional<int64_t> keys = problem.mostKeysPerQuery,
                         tiles = problem.countQueryTiles(rowsOfWarpgroup);
  if (!schedule.has(ScheduleFeatures::DivideColumns) ||
      !haveKeysValues(problem, getValueColumns(problem, schedule)) ||
      problem.isMasked || given.stages.value_or(2) % 2 != 0 ||
      !problem.queries || !problem.group || !keys || !tiles ||
      std::min(*problem.queries, rowsOfWarpgroup) * *problem.group <
          rowsOfWarpgroup)
    return false;
  int64_t ofMultiprocessor = llvm::SaturatingMultiply<uint64_t>(*tiles, *keys) /
                             target.multiprocessors;
  return std::min(*keys, ofMultiprocessor) >= leastAlternatingKeys;
}

/// Tiles for wider heads than the candidates are of: of 64 queries, whose
/// columns of values two warpgroups divide, or if they are too many blocks of
/// one warpgroup, with as many keys as shared memory has room for; nothing if
/// it has for none. `given` may have fewer columns, no warpgroups that divide
/// them, or other stages.
static std::optional<Candidate> makeWideCandidate(const Problem &problem,
                                                  const Machine &target,
                                                  const Schedule &given) {
  Schedule wanted;
  wanted.valueColumns = given.valueColumns;
  bool divides =
      mayDivideColumns(given.valueColumns.value_or(problem.valueDim)) &&
      (given.features ? given.has(ScheduleFeatures::DivideColumns)
                      : !bitEnumContainsAny(given.leftOut,
                                            ScheduleFeatures::DivideColumns));
  wanted.features =
      (divides ? divided : specialized) | ScheduleFeatures::Persistent;
  // Where values are columns of the keys, steps that overlap would need the
  // memory of the keys that are copied meanwhile.
  if (!haveKeysValues(problem, getValueColumns(problem, wanted)))
    wanted.features = *wanted.features | ScheduleFeatures::Overlap;
  if (paysToAlternate(problem, target, wanted, given))
    wanted.features = *wanted.features | ScheduleFeatures::PingPong;
  // Stages that leave room for no tile are a fault of the schedule, and no
  // reason for warps without roles.
  for (bool hasGivenStages : {true, false})
    for (int64_t keyTile : {64, 48, 32, 16}) {
      Candidate wide = {largestHeadDim,  0,       unlimited,
                        rowsOfWarpgroup, keyTile, *wanted.features};
      Schedule schedule = wanted;
      schedule.queryTile = wide.queryTile;
      schedule.keyTile = keyTile;
      if (hasGivenStages) {
        schedule.stages = given.stages;
        schedule.queryStages = given.queryStages;
      }
      if (completeSm90Schedule(problem, target, schedule).empty())
        return wide;
    }
  return std::nullopt;
}

static bool isWide(const Problem &problem) {
  return !problem.multipliesQuantized() &&
         std::max(problem.headDim, problem.valueDim) >
             std::rbegin(candidates)->maxHeadDim;
}

bool flash::hasSm90Tiles(const Problem &problem, const Machine &target,
                         const Schedule &given) {
  return !isWide(problem) || makeWideCandidate(problem, target, given);
}

bool flash::canBeWarpgroupTiles(int64_t queryTile, int64_t keyTile) {
  return queryTile % rowsOfWarpgroup == 0 && queryTile <= maxQueryTile &&
         keyTile % keysPerStep == 0 && keyTile <= maxKeyTile;
}

/// The schedule that `candidate` is, with tiles of at most `queryTile`.
static Schedule makeSchedule(const Candidate &candidate, int64_t queryTile) {
  Schedule schedule;
  schedule.queryTile = std::min(candidate.queryTile, queryTile);
  schedule.keyTile = candidate.keyTile;
  schedule.features = candidate.features;
  schedule.stages = candidate.stages;
  schedule.ctasPerSm = candidate.ctasPerSm;
  if (schedule.queryTile == rowsOfWarpgroup &&
      !schedule.has(ScheduleFeatures::DivideColumns))
    schedule.features = *schedule.features & ~ScheduleFeatures::PingPong;
  return schedule;
}

/// The schedules of `fits`, best first, that differ in their tiles of queries,
/// with at least `leastQueries` and at most `mostQueries`, and the smallest one
/// with one warpgroup.
static std::vector<Schedule> getTiles(ArrayRef<const Candidate *> fits,
                                      int64_t leastQueries,
                                      int64_t mostQueries) {
  SmallVector<const Candidate *> tiles;
  for (const Candidate *fit : fits) {
    bool isThere = llvm::any_of(tiles, [&](const Candidate *other) {
      return other->queryTile == fit->queryTile;
    });
    if (!isThere && !fit->ctasPerSm)
      tiles.push_back(fit);
  }
  const Candidate *smallest =
      *llvm::min_element(tiles, [](const Candidate *a, const Candidate *b) {
        return a->queryTile < b->queryTile;
      });
  std::vector<Schedule> schedules;
  for (const Candidate *tile : tiles)
    if (tile->queryTile >= leastQueries && tile->queryTile <= mostQueries)
      schedules.push_back(makeSchedule(*tile, tile->queryTile));
  if (rowsOfWarpgroup >= leastQueries)
    schedules.push_back(makeSchedule(*smallest, rowsOfWarpgroup));
  return schedules;
}

Schedule flash::chooseSm90Schedule(const Problem &problem,
                                   const Machine &target,
                                   const Schedule &given) {
  int64_t dim = std::max(problem.headDim, problem.valueDim);
  // A block may have some columns of the values alone, and of keys there is
  // room for as many as candidates are of.
  if (problem.multipliesQuantized() &&
      problem.headDim <= std::rbegin(candidates)->maxHeadDim)
    dim = getValueColumns(problem, given);
  std::optional<int64_t> keys = problem.meanKeysPerQuery;
  ArrayRef<Candidate> all =
      problem.isMasked ? ArrayRef(maskedCandidates) : ArrayRef(candidates);
  if (problem.multipliesQuantized())
    all = problem.isMasked ? maskedQuantizedCandidates : quantizedCandidates;
  // Whether there are tiles for all blocks that are to share multiprocessors.
  auto hasEnough = [&](const Candidate &c) {
    std::optional<int64_t> tiles = problem.countQueryTiles(c.queryTile);
    return !c.ctasPerSm ||
           (tiles && *tiles >= *c.ctasPerSm * target.multiprocessors);
  };
  SmallVector<const Candidate *> fits;
  for (const Candidate &c : all) {
    bool isAny = c.minKeysPerQuery == 0 && c.maxKeysPerQuery == unlimited;
    bool isBetween =
        keys && *keys >= c.minKeysPerQuery && *keys <= c.maxKeysPerQuery;
    // With three warpgroups a thread has no registers for a mask's program, nor
    // for the numbers of pages.
    bool hasRegisters = !(problem.masksInRegion || problem.keysInPages) ||
                        c.queryTile <= 2 * rowsOfWarpgroup;
    if (dim <= c.maxHeadDim && (isAny || isBetween) && hasEnough(c) &&
        hasRegisters)
      fits.push_back(&c);
  }
  std::optional<Candidate> wide;
  if (isWide(problem)) {
    wide = makeWideCandidate(problem, target, given);
    fits.push_back(&*wide);
  }
  // A tile need not be longer than the queries there are.
  int64_t mostQueries = maxQueryTile;
  if (std::optional<int64_t> rows = problem.countRows())
    mostQueries = std::clamp<int64_t>(llvm::alignTo(*rows, rowsOfWarpgroup),
                                      rowsOfWarpgroup, maxQueryTile);
  // With packed heads a tile has whole queries, which may leave rows empty.
  auto isShorter = [&](int64_t queryTile) {
    return problem.queries && queryTile >= problem.packedHeads &&
           problem.countQueryTiles(queryTile) ==
               problem.countQueryTiles(mostQueries);
  };
  while (problem.packedHeads > 1 && mostQueries > rowsOfWarpgroup &&
         isShorter(mostQueries - rowsOfWarpgroup))
    mostQueries -= rowsOfWarpgroup;
  Schedule schedule = makeSchedule(*fits.front(), mostQueries);
  // A block that is left with the longest keys reads alone, with as much on its
  // way as there is room for.
  if (problem.keysVary && !schedule.ctasPerSm && mostQueries == rowsOfWarpgroup)
    schedule = getTiles(fits, rowsOfWarpgroup, rowsOfWarpgroup).back();
  LLVM_DEBUG(llvm::dbgs() << fits.size() << " candidates of " << all.size()
                          << " fit, the first with " << schedule.str()
                          << " of at most " << mostQueries << " queries\n");
  bool areFew = keys && !schedule.ctasPerSm &&
                hasFewTiles(problem, target, *schedule.queryTile);
  // For wide heads no tile may have room for all that are packed.
  std::vector<Schedule> tilesOfFew;
  if (areFew)
    tilesOfFew = getTiles(fits, problem.packedHeads, mostQueries);
  // Where one tile has all queries of a head, a block waits for its keys: the
  // first of them come sooner in short tiles, and of many keys long tiles have
  // more on its way.
  if (areFew && mostQueries == rowsOfWarpgroup &&
      problem.getTileBytes(shortKeyTile, problem.headDim) >=
          leastBytesOfShortTile &&
      *keys * *problem.countQueryTiles(rowsOfWarpgroup) <=
          mostKeysInShortTiles * target.multiprocessors)
    for (Schedule &tile : tilesOfFew)
      tile.keyTile = std::min(*tile.keyTile, shortKeyTile);
  if (!tilesOfFew.empty())
    schedule = chooseForFewTiles(problem, target, tilesOfFew);
  // How long the tiles of a wave are depends on the data, so that whichever
  // multiprocessor is free takes the next one; few need nothing to count them.
  if (schedule.has(ScheduleFeatures::Persistent)) {
    bool hasLists =
        problem.masksInRegion && paysToListTiles(problem, target, schedule);
    if (problem.hasPackedRows && areFew)
      *schedule.features ^= ScheduleFeatures::Persistent;
    else if (problem.hasPackedRows || (hasLists && !areFew))
      *schedule.features |= ScheduleFeatures::ClaimTiles;
    // A sequence may have one query, and ends anywhere in a tile.
    if (problem.hasPackedRows && *schedule.queryTile > rowsOfWarpgroup)
      *schedule.features |= ScheduleFeatures::SkipRows;
  }
  if (areFew)
    return schedule;
  // To leave the number of blocks to sizes that are not known costs registers,
  // which only a block of one warpgroup has left. Then all blocks run at once,
  // and no block goes on to another tile.
  std::optional<int64_t> tiles = problem.countQueryTiles(*schedule.queryTile);
  int64_t valueBlocks = countValueBlocks(problem, schedule);
  bool maySplitKeys =
      tiles ? *tiles * valueBlocks <= target.multiprocessors / 2
            : schedule.queryTile == rowsOfWarpgroup && !problem.hasPackedRows;
  if (maySplitKeys) {
    LLVM_DEBUG(llvm::dbgs() << "keys are split: "
                            << (tiles ? "few tiles of queries\n"
                                      : "open sizes, and one warpgroup\n"));
    schedule.splitCtas = target.multiprocessors;
    *schedule.features &=
        ~(ScheduleFeatures::Persistent | ScheduleFeatures::ClaimTiles);
  }
  return schedule;
}

/// What elements of 8 bits have no kernel for; empty if they have one.
static std::string findQuantizedFault(const Problem &problem,
                                      const Schedule &schedule) {
  if (!problem.multipliesQuantized())
    return "";
  if (*schedule.keyTile % quantizedKeysPerStep != 0)
    return formatv(
        "key_tile must be a multiple of {0} for precision(fp8), got "
        "{1}; the nearest is {2}",
        quantizedKeysPerStep, *schedule.keyTile,
        std::min(llvm::alignTo(*schedule.keyTile, quantizedKeysPerStep),
                 uint64_t(maxKeyTile)));
  for (int64_t columns : {problem.headDim, problem.valueDim})
    if (columns % quantizedColumns != 0)
      return formatv("precision(fp8) takes head dimensions that are multiples "
                     "of {0}, got {1}; leave it out, or use {2}",
                     quantizedColumns, columns,
                     llvm::alignTo(columns, quantizedColumns));
  if (schedule.has(ScheduleFeatures::DivideColumns))
    return "precision(fp8) is of warpgroups that have all columns of a block; "
           "leave divide_columns out, or choose value_columns";
  if (schedule.has(ScheduleFeatures::LazyRescale))
    return "lazy_rescale leaves exponentials as large as 2^8, and with "
           "precision(fp8) they are that large without it; leave it out of "
           "the features";
  return "";
}

/// What a block with these tiles has too few of; empty if it has enough. Fills
/// in query_stages.
static std::string findResourceFault(const Problem &problem,
                                     const Machine &target,
                                     Schedule &schedule) {
  bool divides = schedule.has(ScheduleFeatures::DivideColumns);
  int64_t valueColumns = getValueColumns(problem, schedule);
  // The warpgroups that compute.
  int64_t warpgroups = divides ? 2 : *schedule.queryTile / rowsOfWarpgroup;
  // Columns of the warpgroup that computes the scores: no fewer than the
  // other's.
  int64_t ownColumns =
      divides ? getFirstColumns(valueColumns,
                                panelBytesPerRow / problem.getElementBytes())
              : valueColumns;
  int64_t blocks = schedule.ctasPerSm.value_or(1);
  int64_t sharedBytesOfBlock = std::max<int64_t>(
      0, getSharedLimit(target, blocks) - barrierBytesPerBlock);

  // Each of 128 threads has half as many elements of 64 rows as there are
  // columns; probabilities are rounded to the elements that are multiplied.
  int64_t registers = *schedule.keyTile / 2 +
                      *schedule.keyTile * problem.getElementBytes() / 8 +
                      ownColumns / 2 + registersBesideTiles;
  // What a step adds to the accumulator is a tile of its own.
  if (problem.multipliesQuantized())
    registers += ownColumns / 2;
  int64_t available = getRoleRegisters(target, warpgroups, blocks).consumer;
  if (registers > available) {
    std::string ofBlocks;
    if (blocks > 1)
      ofBlocks = formatv(" in each of {0} CTAs per SM", blocks);
    return formatv(
        "scores, probabilities and accumulator of 64 queries and {0} keys "
        "need {1} registers of a thread, and with {2} warpgroups{3} "
        "there are {4}; choose a smaller key_tile or fewer value_columns",
        *schedule.keyTile, registers, warpgroups, ofBlocks, available);
  }
  int64_t columns = std::max(*schedule.keyTile, ownColumns);
  int64_t result = columns / 2 + registersBesideResult;
  int64_t start = getStartRegisters(target, warpgroups, blocks);
  if (result > start)
    return formatv("a product with {0} columns needs {1} registers of a "
                   "thread, and threads start with {2}; choose fewer "
                   "ctas_per_sm",
                   columns, result, start);
  // The next queries are copied early where there is room for them, beside
  // results on their way.
  if (!schedule.queryStages) {
    Schedule wide = schedule;
    wide.queryStages = 2;
    bool hasStage = schedule.has(ScheduleFeatures::BulkStore);
    int64_t stageBytes = hasStage ? *schedule.queryTile * panelBytesPerRow : 0;
    bool isWide =
        schedule.has(ScheduleFeatures::Persistent) &&
        getSharedBytes(problem, wide) + stageBytes <= sharedBytesOfBlock;
    schedule.queryStages = isWide ? 2 : 1;
  }
  int64_t bytes = getSharedBytes(problem, schedule);
  if (bytes > sharedBytesOfBlock)
    return formatv("the tiles need {0} bytes of shared memory, and a block may "
                   "have {1}; choose smaller tiles or fewer stages",
                   bytes, sharedBytesOfBlock);
  return "";
}

std::string flash::completeSm90Schedule(const Problem &problem,
                                        const Machine &target,
                                        Schedule &schedule) {
  if (!schedule.has(ScheduleFeatures::SpecializeWarps))
    return formatv("the features {0} need specialize_warps too",
                   stringifyScheduleFeatures(*schedule.features));
  if (!canBeWarpgroupTiles(*schedule.queryTile, keysPerStep))
    return formatv("query_tile must be 64, 128 or 192 where warps have roles, "
                   "got {0}; the nearest is {1}",
                   *schedule.queryTile,
                   std::clamp<int64_t>(llvm::alignDown(*schedule.queryTile +
                                                           rowsOfWarpgroup / 2,
                                                       rowsOfWarpgroup),
                                       rowsOfWarpgroup, maxQueryTile));
  if (!canBeWarpgroupTiles(rowsOfWarpgroup, *schedule.keyTile))
    return formatv("key_tile must be a multiple of 16 up to 256 where warps "
                   "have roles, got {0}; the nearest is {1}",
                   *schedule.keyTile,
                   std::min(llvm::alignTo(*schedule.keyTile, keysPerStep),
                            uint64_t(maxKeyTile)));
  bool divides = schedule.has(ScheduleFeatures::DivideColumns);
  int64_t valueColumns = getValueColumns(problem, schedule);
  if (std::string fault = findQuantizedFault(problem, schedule); !fault.empty())
    return fault;
  if (divides && !mayDivideColumns(valueColumns))
    return formatv("divide_columns is of blocks with more than {0} and up to "
                   "{1} columns of values, got {2}; leave it out of the "
                   "features",
                   mostValueColumns, mostDividedColumns, valueColumns);
  if (divides && *schedule.queryTile != rowsOfWarpgroup)
    return formatv("divide_columns is of 64 queries that two warpgroups share, "
                   "so query_tile must be 64, got {0}",
                   *schedule.queryTile);
  int64_t warps = *schedule.queryTile / rowsOfWarp;
  if (schedule.warps && schedule.warps != warps)
    return formatv("a query_tile of {0} needs {1} warps where warps have "
                   "roles, got {2}",
                   *schedule.queryTile, warps, *schedule.warps);
  schedule.warps = warps;
  if (*schedule.queryTile == rowsOfWarpgroup && !divides &&
      schedule.has(ScheduleFeatures::PingPong))
    return formatv("ping_pong takes two or three warpgroups, so query_tile "
                   "must be 128 or 192, got {0}",
                   *schedule.queryTile);
  if (!schedule.stages)
    schedule.stages = 2;
  // The next scores are multiplied while the values of a step are in use.
  if (schedule.stages == 1 && schedule.has(ScheduleFeatures::Overlap) &&
      haveKeysValues(problem, valueColumns))
    return "overlap needs 2 stages where values are columns of the keys, got "
           "1; choose stages = 2, or leave overlap out of the features";
  if (schedule.alternatesTiles() && !haveKeysValues(problem, valueColumns))
    return "ping_pong beside divide_columns is of values that are columns of "
           "the keys; leave one of the features out";
  if (schedule.alternatesTiles() && *schedule.stages % 2 != 0)
    return formatv("ping_pong beside divide_columns takes tiles of keys in "
                   "pairs, so stages must be even, got {0}; the "
                   "nearest is {1}",
                   *schedule.stages, *schedule.stages + 1);
  std::string fault = findResourceFault(problem, target, schedule);
  if (fault.empty())
    return "";
  auto fits = [&](Schedule &smaller) {
    return findResourceFault(problem, target, smaller).empty();
  };
  std::string choice = nameSmaller(
      schedule, "key_tile", &Schedule::keyTile,
      problem.multipliesQuantized() ? quantizedKeysPerStep : keysPerStep, fits);
  if (!choice.empty())
    return fault + choice;
  Schedule blocks = schedule;
  blocks.valueColumns = valueColumns;
  return fault + nameSmaller(blocks, "value_columns", &Schedule::valueColumns,
                             headDimMultiple, [&](Schedule &smaller) {
                               return *smaller.valueColumns ==
                                          getDefaultValueColumns(
                                              problem.valueDim,
                                              *smaller.valueColumns) &&
                                      fits(smaller);
                             });
}
