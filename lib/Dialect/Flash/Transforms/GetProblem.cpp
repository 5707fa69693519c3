//===- GetProblem.cpp - What the schedule of an op is for -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/Transforms/GetProblem.h"

#include "ListedTiles.h"
#include "flash/Analysis/MaskTiles.h"
#include "flash/Analysis/ScoreDependence.h"
#include "flash/Analysis/ScoreRegion.h"
#include "flash/Machine/TargetAttr.h"
#include "flash/Schedule/Models.h"
#include "flash/Schedule/Warpgroups.h"
#include "flash/Support/ElementType.h"
#include "flash/Support/HeadDim.h"
#include "flash/Support/StripCasts.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

/// The tiles of programs of gradients where a schedule is still to be chosen,
/// and the steps of the queries that they visit.
static constexpr int64_t typicalTile = 128, typicalSteps[] = {128, 64};

/// Longer ones have no use, and do not fit into a GPU's registers.
static int64_t getLargestKeyTile(const Machine &machine) {
  return machine.isGpu() ? 256 : 1024;
}

/// The rows of a tensor of such sizes, if it is known.
static std::optional<int64_t> getRows(ArrayRef<int64_t> sizes) {
  int64_t size = sizes[sizes.size() - 2];
  return ShapedType::isDynamic(size) ? std::nullopt : std::optional(size);
}

static void setQuerySizes(Problem &problem, ArrayRef<int64_t> query) {
  problem.queries = getRows(query);
  ArrayRef<int64_t> heads = query.drop_back(2);
  if (!heads.empty() && !ShapedType::isDynamic(heads.back()))
    problem.headsOfBatch = heads.back();
  if (llvm::any_of(heads, ShapedType::isDynamic))
    return;
  constexpr int64_t most = std::numeric_limits<uint32_t>::max();
  problem.heads = 1;
  for (int64_t size : heads)
    problem.heads = llvm::SaturatingMultiply<uint32_t>(*problem.heads,
                                                       std::min(size, most));
}

std::optional<int64_t> flash::countQueryTiles(RankedTensorType query,
                                              const Schedule &schedule) {
  Problem problem;
  setQuerySizes(problem, query.getShape());
  problem.packedHeads = schedule.getPackedHeads();
  return problem.countQueryTiles(*schedule.queryTile);
}

/// Whether the mask leaves ranges of tiles, both ways, whatever lengths the
/// data have.
static bool leavesRangesOf(AttentionOpInterface op, MaskAttrInterface mask,
                           int64_t queryTile, int64_t keyTile) {
  auto getLength = [](Value lengths,
                      RankedTensorType rows) -> std::optional<int64_t> {
    if (lengths)
      return std::nullopt;
    return getRows(rows.getShape());
  };
  return leavesRanges(mask, queryTile, keyTile,
                      getLength(op.getQueryLengths(), op.getQuery().getType()),
                      getLength(op.getKeyLengths(), op.getKey().getType()));
}

/// The type of the elements that are read of keys or values.
static Type getElementInMemory(Value rows) {
  if (auto dequantize = rows.getDefiningOp<DequantizeOp>())
    rows = dequantize.getSource();
  return getElementTypeOrSelf(rows);
}

bool flash::areColumnsOfKeys(Value key, Value value) {
  key = stripCasts(key);
  value = stripCasts(value);
  if (value == key)
    return true;
  // Lengths of keys and values agree, so that it has all rows.
  auto slice = value.getDefiningOp<tensor::ExtractSliceOp>();
  return slice && stripCasts(slice.getSource()) == key &&
         slice.hasUnitStride() &&
         llvm::all_of(slice.getMixedOffsets(), isZeroInteger);
}

bool flash::canMultiplyE4M3(Operation *op) {
  Machine machine = getMachine(op);
  return machine.hasWarpgroups() && machine.copies >= TileCopies::Bulk;
}

bool flash::multipliesQuantized(std::optional<Precision> precision,
                                std::optional<ScheduleAttr> schedule) {
  return precision == Precision::FP8 && schedule &&
         schedule->getValue().hasRoles();
}

Problem flash::getProblem(AttentionOpInterface op) {
  return getProblem(op, op.getQuery().getType().getShape(),
                    op.getKey().getType().getShape());
}

Problem flash::getProblem(AttentionOpInterface op, ArrayRef<int64_t> query,
                          ArrayRef<int64_t> key) {
  Problem problem;
  problem.element = op.getQuery().getType().getElementType();
  problem.keyElement = getElementInMemory(op.getKey());
  problem.valueElement = getElementInMemory(op.getValue());
  problem.queryElement = getElementInMemory(op.getQuery());
  if (op.getPrecision() == Precision::FP8 && canMultiplyE4M3(op))
    problem.element = problem.queryElement;
  if (op.getPrecision())
    problem.precision = stringifyPrecision(*op.getPrecision());
  else
    llvm::raw_string_ostream(problem.precision) << problem.element;
  // Schedules are measured for the elements that are read.
  if (problem.isDequantized())
    llvm::raw_string_ostream(problem.precision)
        << "_of_" << problem.keyElement << "_" << problem.valueElement;
  problem.headDim = op.getHeadDim();
  problem.valueDim = op.getValueDim();
  // Values of 8 bits that are multiplied have a layout of their own.
  problem.valuesOfKeys = areColumnsOfKeys(op.getKey(), op.getValue()) &&
                         !problem.multipliesQuantized();
  setQuerySizes(problem, query);
  problem.keys = getRows(key);
  problem.group = op.getGroup();
  if (op.getSchedule())
    problem.packedHeads = op.getSchedule()->getValue().getPackedHeads();
  problem.isGradient = isa<AttentionGradOp>(op);
  problem.hasScore = changesScore(op.getScore());
  problem.keepsScores = problem.isGradient && !isLinearInScore(op.getScore());
  problem.readsPairs = readsPairs(op.getScore());
  if (auto grad = dyn_cast<AttentionGradOp>(op.getOperation()))
    problem.sumsByDistance =
        !op.getQueryLengths() && !op.getKeyLengths() &&
        hasSumByDistance(op.getScore(), grad.getCaptured());
  problem.hasLengths =
      op.getLengths() || op.getQueryLengths() || op.getKeyLengths();
  problem.keysVary = op.getLengths() || op.getKeyLengths();
  for (auto [rows, length] : {std::pair(Value(op.getQuery()), &problem.queries),
                              {op.getKey(), &problem.keys}}) {
    auto address = AddressOpInterface::ofRows(rows);
    // Each batch has pages of its own, or may have.
    if (!address || address.getContiguousRows())
      continue;
    problem.hasPackedRows = true;
    // A sequence of the mean length stands for those that share the rows.
    if (!problem.isGradient && *length && !ShapedType::isDynamic(query[0]))
      *length = llvm::divideCeil(**length, std::max<int64_t>(query[0], 1));
  }
  problem.keysInPages = static_cast<bool>(UnpageOp::ofRows(op.getKey()));
  problem.masksInRegion = masksElements(op.getScore());
  problem.isMasked = op.getMask() || problem.masksInRegion;
  if (problem.isGradient && problem.isMasked)
    problem.leavesRanges =
        !problem.masksInRegion && llvm::all_of(typicalSteps, [&](int64_t step) {
          return leavesRangesOf(op, *op.getMask(), step, typicalTile);
        });
  if (problem.masksInRegion)
    problem.mask = "region";
  else if (op.getMask())
    problem.mask = cast<Attribute>(*op.getMask())
                       .getAbstractAttribute()
                       .getName()
                       .rsplit('.')
                       .second.str();
  setKeysPerQuery(problem, op);
  return problem;
}

void flash::setKeysPerQuery(Problem &problem, AttentionOpInterface op) {
  if (!problem.queries || !problem.keys)
    return;
  KeysOfQuery keys = {*problem.keys, *problem.keys};
  if (op.getMask())
    keys = estimateKeysOfQuery(*op.getMask(), *problem.queries, *problem.keys);
  problem.meanKeysPerQuery = keys.mean;
  problem.mostKeysPerQuery = keys.most;
  if (!problem.isGradient)
    return;
  KeysOfQuery queries = {*problem.queries, *problem.queries};
  if (op.getMask())
    queries =
        estimateQueriesOfKey(*op.getMask(), *problem.queries, *problem.keys);
  problem.meanQueriesPerKey = queries.mean;
  problem.mostQueriesPerKey = queries.most;
  if (!problem.leavesRanges && op.getMask())
    problem.queriesInTilesPerKey =
        estimateQueriesOfKey(*op.getMask(), *problem.queries, *problem.keys,
                             typicalTile)
            .mean;
}

FailureOr<Schedule> flash::parseSchedule(Operation *op, StringRef text) {
  llvm::Expected<Schedule> parsed = Schedule::parse(text);
  if (!parsed)
    return emitError(op->getLoc(), "the schedule that is given: ")
           << llvm::toString(parsed.takeError());
  return *parsed;
}

std::string flash::findFusionFault(AttentionGradOp op,
                                   const Schedule &schedule) {
  if (schedule.addsInOrder() && schedule.has(ScheduleFeatures::Persistent) &&
      !schedule.has(ScheduleFeatures::ClaimTiles) &&
      op.getQuery().getDefiningOp<AddressOpInterface>())
    return "products = 5 claims its tiles by the counts of queries, which "
           "packed rows may have none of; write persistent|claim_tiles, or "
           "leave persistent out of the features";
  bool sumsDiagonals = schedule.has(ScheduleFeatures::SumDiagonals);
  if (schedule.isFused() && !schedule.addsInOrder() &&
      (op.getQueryLengths() || op.getKeyLengths()))
    return "products = 5 without specialize_warps needs equal lengths in all "
           "batches, and takes no query_lengths and no key_lengths; choose "
           "products = 7";
  if (sumsDiagonals && !(schedule.addsInOrder() &&
                         hasSumByDistance(op.getScore(), op.getCaptured())))
    return "sum_diagonals needs products = 5 and a captured tensor in wrt that "
           "is read at the distance of query and key and added to the score; "
           "leave it out of the features";
  if (sumsDiagonals && (op.getQueryLengths() || op.getKeyLengths()))
    return "sum_diagonals needs equal lengths in all batches, and takes no "
           "query_lengths and no key_lengths; leave it out of the features";
  // Without roles, one tile of keys after the other adds, in place.
  if (!schedule.addsInOrder())
    return "";
  int64_t keyTile = *schedule.keyTile, queryStep = schedule.getQueryStep();
  // Each warpgroup has 64 rows of a sum: of queries, or of a part of their
  // columns.
  int64_t columns = headDimMultiple * keyTile / queryStep;
  if (keyTile % queryStep != 0 || op.getHeadDim() % columns != 0)
    return llvm::formatv(
        "products = 5 needs a query_step that divides the key_tile, {0}, and "
        "with a query_step of {1} a head dimension that is a multiple of {2}, "
        "got {3}; choose such tiles, or products = 7",
        keyTile, queryStep, columns, op.getHeadDim());
  if (sumsDiagonals && (keyTile != rowsOfDiagonals ||
                        (queryStep != keyTile && 2 * queryStep != keyTile)))
    return llvm::formatv("sum_diagonals needs a key_tile of {0} and a "
                         "query_step of {0} or {1}, got {2} and {3}",
                         rowsOfDiagonals, rowsOfDiagonals / 2, keyTile,
                         queryStep);
  if (op.getKeyTiles() || (op.getQueryTiles() && !op.getQueryTileRanks()))
    return "products = 5 goes through lists of tiles of queries that have "
           "ranks; leave out blocks and query_blocks, or choose products = 7";
  bool hasLists = op.getQueryTiles() ||
                  needsBlockMap(op, schedule, getTilesOverKeys(schedule));
  if (sumsDiagonals && hasLists)
    return "sum_diagonals needs a mask that leaves each tile of keys one range "
           "of tiles of queries, without lists; leave it out of the features";
  // Tiles that go through shared memory have such columns.
  constexpr int64_t columnMultiple = 16;
  if (op.getHeadDim() % columnMultiple != 0)
    return llvm::formatv("products = 5 needs a head dimension that is a "
                         "multiple of {0}, got {1}; choose products = 7",
                         columnMultiple, op.getHeadDim());
  if (!hasLists && !leavesRangesOf(op, op.getMaskOrFull(), queryStep, keyTile))
    return llvm::formatv(
        "products = 5 needs a mask that leaves each tile of queries one range "
        "of tiles of keys, and the other way round; choose {0}products = 7",
        // Lists are of batches of equal lengths.
        op.getQueryLengths() || op.getKeyLengths() ? "" : "block_map = 1, or ");
  return "";
}

/// The positive number that fits and is nearest to `tile`, of two the larger
/// one; there is one.
static int64_t getNearest(int64_t tile, function_ref<bool(int64_t)> fits) {
  for (int64_t distance = 0;; ++distance)
    for (int64_t other : {tile + distance, tile - distance})
      if (other > 0 && fits(other))
        return other;
}

namespace {
/// A tile of a schedule, the block that it must divide, and what it is a
/// multiple of.
struct TileOfBlock {
  StringRef name;
  std::optional<int64_t> Schedule::*key;
  StringRef blockName;
  int64_t block, multiple;
};
} // namespace

std::string flash::findBlockFault(std::optional<ArrayRef<int64_t>> blockSizes,
                                  const Schedule &schedule, bool isGradient,
                                  int64_t queryMultiple, int64_t keyMultiple) {
  if (!blockSizes)
    return "";
  if (schedule.splitKeys)
    return "split_keys makes ranges of keys, and blocks are lists of tiles; "
           "write num_splits instead, with every n-th tile of a list in a "
           "split";
  if (schedule.getPackedHeads() > 1)
    return "lists of blocks that are given are of one head each; leave out "
           "packed_heads";
  if (isGradient && schedule.addsInOrder())
    return "products = 5 goes through lists of tiles of queries that have "
           "ranks, which lists that are given have not; choose products = 7";
  int64_t queries = (*blockSizes)[0], keys = (*blockSizes)[1];
  // Steps that a schedule does not say are as long as tiles.
  const TileOfBlock tiles[] = {
      {"query_tile", &Schedule::queryTile, "queries", queries, queryMultiple},
      {"key_tile", &Schedule::keyTile, "keys", keys, keyMultiple},
      {"query_step", &Schedule::queryStep, "queries", queries, queryMultiple},
      {"key_step", &Schedule::keyStep, "keys", keys, keyMultiple}};
  for (const TileOfBlock &tile : tiles) {
    std::optional<int64_t> size = schedule.*tile.key;
    if (!size || (tile.block % *size == 0 && *size % tile.multiple == 0))
      continue;
    if (tile.block % tile.multiple != 0)
      return llvm::formatv("blocks have a multiple of {0} {1}, got {2}; the "
                           "nearest is {3}",
                           tile.multiple, tile.blockName, tile.block,
                           llvm::alignTo(tile.block, tile.multiple));
    return llvm::formatv("{0} must divide the {1} {2} of a block, got {3}; "
                         "the nearest is {4}",
                         tile.name, tile.block, tile.blockName, *size,
                         getNearest(*size, [&](int64_t divisor) {
                           return tile.block % divisor == 0 &&
                                  divisor % tile.multiple == 0;
                         }));
  }
  return "";
}

/// What the keys of a tile are a multiple of: tensor cores sum over as many at
/// a time.
static int64_t getKeyMultiple(AttentionOpInterface op, const Machine &machine) {
  return machine.isGpu()
             ? ElementType::find(op.getQuery().getType())->productStep
             : tileMultiple;
}

/// The nearest tile that fits and that the machine can have.
static std::optional<int64_t>
findNearestTile(AttentionOpInterface op, const Machine &machine, int64_t tile,
                function_ref<bool(int64_t)> fits) {
  int64_t multiple = getKeyMultiple(op, machine);
  std::optional<int64_t> nearest;
  for (int64_t other = multiple; other <= getLargestKeyTile(machine);
       other += multiple)
    if (fits(other) &&
        (!nearest || std::abs(other - tile) <= std::abs(*nearest - tile)))
      nearest = other;
  return nearest;
}

/// The most pages of a tile, where each page is copied by itself: as many as
/// the largest tile of a GPU has of its smallest pages, of 8 rows.
static constexpr int64_t mostPagesOfTile = 32;

/// Why tiles of keys or values cannot be parts of pages, or several pages.
static std::string findPageFault(AttentionOpInterface op,
                                 const Machine &machine,
                                 const Schedule &schedule) {
  SmallVector<int64_t, 2> pages;
  for (Value rows : {op.getKey(), op.getValue()})
    if (auto address = AddressOpInterface::ofRows(rows))
      if (std::optional<int64_t> page = address.getContiguousRows())
        pages.push_back(*page);
  auto fits = [&](int64_t page, int64_t tile) {
    // Pages fill groups of a GPU's shared memory, which a swizzle changes
    // alike.
    bool areWhole = !machine.isGpu() || page % tileMultiple == 0;
    return page % tile == 0 ||
           (tile % page == 0 && tile / page <= mostPagesOfTile && areWhole);
  };
  auto findNearest = [&](int64_t tile, ArrayRef<int64_t> pages) {
    return findNearestTile(op, machine, tile, [&](int64_t tile) {
      return llvm::all_of(pages,
                          [&](int64_t page) { return fits(page, tile); });
    });
  };
  int64_t tile = schedule.keyTile.value_or(1); // 1 fits.
  const int64_t *unfit =
      llvm::find_if(pages, [&](int64_t page) { return !fits(page, tile); });
  if (unfit == pages.end())
    return "";
  if (std::optional<int64_t> nearest = findNearest(tile, pages))
    return llvm::formatv(
        "key_tile must divide the {0} rows of a page, or be a multiple of "
        "them, of up to {3} pages, got {1}; the nearest is {2}",
        *unfit, tile, *nearest, mostPagesOfTile);
  // There is none for some pages, or none for both kinds.
  const int64_t *alone = llvm::find_if(
      pages, [&](int64_t page) { return !findNearest(tile, page); });
  bool isAlone = alone != pages.end();
  int64_t page = isAlone ? *alone : pages.front(), other = pages.back();
  int64_t nearest = getNearest(page, [&](int64_t rows) {
    return findNearest(tile, {rows, isAlone ? rows : other}).has_value();
  });
  return llvm::formatv(
      "there is no key_tile for pages of {0} rows{1}: it is a multiple of {2} "
      "up to {3} that divides the rows of a page or is a multiple of them{4}; "
      "the nearest is {5}",
      page, isAlone ? "" : llvm::formatv(" beside pages of {0}", other).str(),
      getKeyMultiple(op, machine), getLargestKeyTile(machine),
      machine.isGpu() ? ", which on a GPU are a multiple of 8" : "", nearest);
}

std::string flash::findTileFault(AttentionOpInterface op,
                                 const Machine &machine,
                                 const Schedule &schedule) {
  std::string fault = findBlockFault(
      op.getBlockSizes(), schedule, isa<AttentionGradOp>(op.getOperation()),
      machine.isGpu() ? rowsOfWarp : tileMultiple, getKeyMultiple(op, machine));
  return fault.empty() ? findPageFault(op, machine, schedule) : fault;
}

/// Replaces the tile of keys of a proposal by the nearest that fits to pages,
/// for which the model chooses the rest; of two, by one whose warps have roles
/// or not as before.
static void fitToPages(AttentionOpInterface op, const Problem &problem,
                       const Machine &machine, const Schedule &given,
                       Schedule &schedule) {
  if (given.keyTile)
    return;
  double least = std::numeric_limits<double>::infinity();
  const Schedule proposed = schedule;
  llvm::SmallDenseSet<std::pair<int64_t, int64_t>> seen;
  auto tryTile = [&](int64_t tile, std::optional<int64_t> queryTile = {}) {
    Schedule known = given;
    known.keyTile = tile;
    if (queryTile)
      known.queryTile = queryTile;
    if (!seen.insert({tile, queryTile.value_or(0)}).second ||
        !findPageFault(op, machine, known).empty())
      return;
    Schedule fit = known.over(chooseSchedule(problem, machine, known));
    double distance = fit.getDistanceTo(proposed);
    if (distance < least && completeSchedule(problem, machine, fit).empty()) {
      least = distance;
      schedule = fit;
    }
  };
  const std::vector<Schedule> candidates = listSchedules(problem, machine);
  for (const Schedule &candidate : candidates)
    tryTile(*candidate.keyTile);
  if (!std::isinf(least))
    return;
  // Pages to which none of these fits have others, if any, which may leave
  // room for fewer queries than the model takes.
  for (int64_t tile = getKeyMultiple(op, machine);
       tile <= getLargestKeyTile(machine);
       tile += getKeyMultiple(op, machine)) {
    tryTile(tile);
    if (!given.queryTile)
      for (const Schedule &candidate : candidates)
        tryTile(tile, candidate.queryTile);
  }
}

void flash::fitTiles(AttentionOpInterface op, const Problem &problem,
                     const Machine &machine, const Schedule &given,
                     Schedule &schedule) {
  if (findTileFault(op, machine, schedule).empty())
    return;
  // A CPU can have any tiles, each by itself.
  if (!machine.isGpu()) {
    for (auto tile : {&Schedule::queryTile, &Schedule::keyTile,
                      &Schedule::queryStep, &Schedule::keyStep}) {
      if (!(schedule.*tile) || given.*tile)
        continue;
      std::optional<int64_t> nearest =
          findNearestTile(op, machine, *(schedule.*tile), [&](int64_t size) {
            Schedule alone;
            alone.*tile = size;
            return findTileFault(op, machine, alone).empty();
          });
      if (nearest)
        schedule.*tile = nearest;
    }
    return;
  }
  if (!op.getBlockSizes())
    return fitToPages(op, problem, machine, given, schedule);
  auto complete = problem.isGradient ? completeGradSchedule : completeSchedule;
  double least = std::numeric_limits<double>::infinity();
  Schedule proposed = schedule;
  for (const Schedule &candidate : listSchedules(problem, machine)) {
    Schedule fit = given.over(candidate);
    double distance = fit.getDistanceTo(proposed);
    if (distance < least && fit.isFused() == proposed.isFused() &&
        complete(problem, machine, fit).empty() &&
        findTileFault(op, machine, fit).empty()) {
      least = distance;
      schedule = fit;
    }
  }
}

std::string flash::proposeSchedule(AttentionGradOp op, const Problem &problem,
                                   const Machine &machine, Schedule &schedule) {
  auto propose = [&](const Schedule &given) {
    schedule = given.over(chooseGradSchedule(problem, machine, given));
    fitTiles(op, problem, machine, given, schedule);
    std::string fault = completeGradSchedule(problem, machine, schedule);
    if (fault.empty())
      fault = findTileFault(op, machine, schedule);
    return fault.empty() ? findFusionFault(op, schedule) : fault;
  };
  Schedule given = schedule;
  std::string fault = propose(given);
  // One program is a proposal, which may not go with what is given.
  if (!fault.empty() && schedule.isFused() && !given.products) {
    given.products = Schedule::separatePrograms;
    fault = propose(given);
  }
  return fault;
}
