//===- Sm90Schedule.cpp - Tiles for wgmma and bulk copies -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FewTiles.h"
#include "KeySplits.h"
#include "ScheduleModels.h"
#include "flash/Dialect/Tile/IR/Warpgroups.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

namespace {
using tile::rowsOfWarpgroup, tile::warpsOfWarpgroup;

// The keys that a step of a product sums over. A block has at most three
// warpgroups beside the one that copies.
constexpr int64_t keysOfStep = 16;
constexpr int64_t largestKeyTile = 256, largestQueryTile = 3 * rowsOfWarpgroup;
// What a block alone may have on compute capability 9.0, and what its barriers
// need of it.
constexpr int64_t sharedLimit = 227 * 1024, barrierBytes = 1024;
// Of the tiles of shared memory, where they are that wide.
constexpr int64_t bytesOfPanelRow = 128;
// What addresses, the state of the rows and the softmax need beside the tiles.
constexpr int64_t otherRegisters = 24;

constexpr ScheduleFeatures specialized = ScheduleFeatures::SpecializeWarps |
                                         ScheduleFeatures::LazyRescale |
                                         ScheduleFeatures::BulkStore;
constexpr ScheduleFeatures overlapped = specialized | ScheduleFeatures::Overlap;
constexpr ScheduleFeatures inTurns = overlapped | ScheduleFeatures::PingPong;

/// Tiles for head dimensions up to a bound and numbers of keys of a query
/// between bounds, best first; as measured on an H200 (docs/benchmarks.md).
struct Candidate {
  int64_t largestDim, leastKeys, mostKeys, queryTile, keyTile;
  ScheduleFeatures features;
  std::optional<int64_t> stages = {}, residentBlocks = {};
};
constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();
constexpr Candidate candidates[] = {
    {64, 0, unlimited, 192, 128, inTurns | ScheduleFeatures::Persistent},
    {104, 0, unlimited, 128, 128, inTurns | ScheduleFeatures::Persistent},
    {128, 2048, unlimited, 192, 80, overlapped | ScheduleFeatures::Persistent},
    {128, 0, unlimited, 128, 128, inTurns | ScheduleFeatures::Persistent},
    {192, 0, unlimited, 128, 96, inTurns | ScheduleFeatures::Persistent},
    {256, 0, unlimited, 128, 64, overlapped | ScheduleFeatures::Persistent}};
// Rows of a masked program differ in length, and so do blocks. Where rows are
// short, more of them at a time fill the gaps between tiles. A causal mask
// leaves a query half of the keys.
constexpr Candidate maskedCandidates[] = {
    {64, 0, 288, 64, 64, overlapped | ScheduleFeatures::Persistent, 2, 3},
    {64, 0, 768, 128, 64, specialized | ScheduleFeatures::Persistent, 3, 2},
    {64, 0, 768, 128, 128, inTurns | ScheduleFeatures::Persistent},
    {56, 0, unlimited, 192, 96, inTurns | ScheduleFeatures::Persistent},
    {64, 0, unlimited, 192, 128, inTurns | ScheduleFeatures::Persistent},
    {104, 0, unlimited, 128, 128, inTurns | ScheduleFeatures::Persistent},
    {128, 3072, unlimited, 192, 80, overlapped | ScheduleFeatures::Persistent},
    {128, 0, unlimited, 128, 128, inTurns | ScheduleFeatures::Persistent},
    {192, 0, unlimited, 128, 96, inTurns | ScheduleFeatures::Persistent},
    {256, 0, 768, 128, 64,
     specialized | ScheduleFeatures::PingPong | ScheduleFeatures::Persistent},
    {256, 0, unlimited, 128, 64, inTurns | ScheduleFeatures::Persistent}};
} // namespace

bool flash::hasSm90Schedule(AttentionOp op) {
  return op.getQuery().getType().getElementTypeBitWidth() == 16;
}

bool flash::canHaveSm90Tiles(int64_t queryTile, int64_t keyTile) {
  return queryTile % rowsOfWarpgroup == 0 && queryTile <= largestQueryTile &&
         keyTile % keysOfStep == 0 && keyTile <= largestKeyTile;
}

/// How many keys a query has, if that is known.
static std::optional<KeysOfQuery> getKeysOfQuery(AttentionOp op) {
  RankedTensorType query = op.getQuery().getType(), key = op.getKey().getType();
  int64_t queries = query.getDimSize(query.getRank() - 2),
          keys = key.getDimSize(key.getRank() - 2);
  if (ShapedType::isDynamic(queries) || ShapedType::isDynamic(keys))
    return std::nullopt;
  if (!op.getMask())
    return KeysOfQuery{keys, keys};
  return estimateKeysOfQuery(*op.getMask(), queries, keys);
}

/// The schedule that `candidate` is, with tiles of at most `queryTile`.
static Schedule makeSchedule(const Candidate &candidate, int64_t queryTile) {
  Schedule schedule;
  schedule.queryTile = std::min(candidate.queryTile, queryTile);
  schedule.keyTile = candidate.keyTile;
  schedule.features = candidate.features;
  schedule.stages = candidate.stages;
  schedule.residentBlocks = candidate.residentBlocks;
  if (schedule.queryTile == rowsOfWarpgroup)
    schedule.features = *schedule.features & ~ScheduleFeatures::PingPong;
  return schedule;
}

/// Those of `fits`, best first, that differ in their tiles of queries, with at
/// most `mostQueries`, and the smallest one with one warpgroup.
static SmallVector<Schedule> getTiles(ArrayRef<const Candidate *> fits,
                                      int64_t mostQueries) {
  SmallVector<const Candidate *> tiles;
  for (const Candidate *fit : fits) {
    bool isThere = llvm::any_of(tiles, [&](const Candidate *other) {
      return other->queryTile == fit->queryTile;
    });
    if (!isThere && !fit->residentBlocks)
      tiles.push_back(fit);
  }
  const Candidate *smallest =
      *llvm::min_element(tiles, [](const Candidate *a, const Candidate *b) {
        return a->queryTile < b->queryTile;
      });
  SmallVector<Schedule> schedules;
  for (const Candidate *tile : tiles)
    if (tile->queryTile <= mostQueries)
      schedules.push_back(makeSchedule(*tile, tile->queryTile));
  schedules.push_back(makeSchedule(*smallest, rowsOfWarpgroup));
  return schedules;
}

Schedule flash::chooseSm90Schedule(AttentionOp op) {
  int64_t dim = std::max(op.getHeadDim(), op.getValueDim());
  RankedTensorType query = op.getQuery().getType();
  int64_t queries = query.getDimSize(query.getRank() - 2);
  std::optional<KeysOfQuery> keys = getKeysOfQuery(op);
  ArrayRef<Candidate> all =
      op.getMask() ? ArrayRef(maskedCandidates) : ArrayRef(candidates);
  // Whether there are tiles for all blocks that are to share multiprocessors.
  auto hasEnough = [&](const Candidate &c) {
    std::optional<int64_t> tiles = countQueryTiles(query, c.queryTile);
    return !c.residentBlocks ||
           (tiles && *tiles >= *c.residentBlocks * multiprocessors);
  };
  SmallVector<const Candidate *> fits;
  for (const Candidate &c : all) {
    bool isAny = c.leastKeys == 0 && c.mostKeys == unlimited;
    bool isBetween =
        keys && keys->mean >= c.leastKeys && keys->mean <= c.mostKeys;
    if (dim <= c.largestDim && (isAny || isBetween) && hasEnough(c))
      fits.push_back(&c);
  }
  // A tile need not be longer than the queries there are.
  int64_t mostQueries = largestQueryTile;
  if (!ShapedType::isDynamic(queries))
    mostQueries = std::clamp<int64_t>(llvm::alignTo(queries, rowsOfWarpgroup),
                                      rowsOfWarpgroup, largestQueryTile);
  Schedule schedule = makeSchedule(*fits.front(), mostQueries);
  if (keys && !schedule.residentBlocks && hasFewTiles(op, *schedule.queryTile))
    return chooseForFewTiles(op, *keys, getTiles(fits, mostQueries));
  // To leave the number of units to sizes that are not known costs registers,
  // which only a block of one warpgroup has left. Then all units run at once,
  // and no block goes on to another tile.
  std::optional<int64_t> tiles = countQueryTiles(query, *schedule.queryTile);
  bool mayShareKeys = tiles ? *tiles <= multiprocessors / 2
                            : schedule.queryTile == rowsOfWarpgroup;
  if (mayShareKeys) {
    schedule.units = multiprocessors;
    schedule.features = *schedule.features & ~ScheduleFeatures::Persistent;
  }
  return schedule;
}

LogicalResult flash::completeSm90Schedule(AttentionOp op, Schedule &schedule) {
  auto refuse = [&]() { return op.emitOpError("cannot be scheduled: "); };
  if (!schedule.has(ScheduleFeatures::SpecializeWarps))
    return refuse() << "the features "
                    << stringifyScheduleFeatures(*schedule.features)
                    << " need specialize_warps too";
  if (!canHaveSm90Tiles(*schedule.queryTile, keysOfStep))
    return refuse() << "query_tile must be 64, 128 or 192 where warps have "
                       "roles, got "
                    << *schedule.queryTile << "; the nearest is "
                    << std::min(
                           llvm::alignTo(*schedule.queryTile, rowsOfWarpgroup),
                           uint64_t(largestQueryTile));
  if (!canHaveSm90Tiles(rowsOfWarpgroup, *schedule.keyTile))
    return refuse() << "key_tile must be a multiple of 16 up to 256 where "
                       "warps have roles, got "
                    << *schedule.keyTile << "; the nearest is "
                    << std::min(llvm::alignTo(*schedule.keyTile, keysOfStep),
                                uint64_t(largestKeyTile));
  int64_t warpgroups = *schedule.queryTile / rowsOfWarpgroup;
  int64_t warps = warpsOfWarpgroup * warpgroups;
  if (schedule.warps && schedule.warps != warps)
    return refuse() << "a query_tile of " << *schedule.queryTile << " needs "
                    << warps << " warps where warps have roles, got "
                    << *schedule.warps;
  schedule.warps = warps;
  if (warpgroups == 1 && schedule.has(ScheduleFeatures::PingPong))
    return refuse() << "ping_pong takes two or three warpgroups, so query_tile "
                       "must be 128 or 192, got "
                    << *schedule.queryTile;
  if (!schedule.stages)
    schedule.stages = 2;
  if (!schedule.units && !schedule.splits)
    schedule.splits = 1;
  int64_t blocks = schedule.residentBlocks.value_or(1);
  int64_t sharedBytesOfBlock =
      tile::getSharedLimit(sharedLimit, blocks) - barrierBytes;

  // Of 64 rows each of 128 threads has half as many elements as there are
  // columns; weights are rounded to 16 bits.
  int64_t registers = *schedule.keyTile / 2 + *schedule.keyTile / 4 +
                      op.getValueDim() / 2 + otherRegisters;
  int64_t available = tile::getRoleRegisters(warpgroups, blocks).consumer;
  if (registers > available)
    return refuse() << "scores, weights and accumulator of 64 queries and "
                    << *schedule.keyTile << " keys need " << registers
                    << " registers of a thread, and with " << warpgroups
                    << " warpgroups"
                    << (blocks > 1 ? " in each of " + std::to_string(blocks) +
                                         " resident blocks"
                                   : "")
                    << " there are " << available
                    << "; choose a smaller key_tile";
  // A product needs all registers of its result at once, and the assembler
  // keeps some more, of those that threads start with.
  constexpr int64_t registersBesideResult = 30;
  int64_t start = tile::getStartRegisters(warpgroups, blocks);
  int64_t result =
      std::max(*schedule.keyTile, op.getValueDim()) / 2 + registersBesideResult;
  if (result > start)
    return refuse() << "a product with "
                    << std::max(*schedule.keyTile, op.getValueDim())
                    << " columns needs " << result
                    << " registers of a thread, and threads start with "
                    << start << "; choose fewer resident_blocks";
  // The next queries are copied early where there is a place for them, beside
  // one for results on their way.
  if (!schedule.queryStages) {
    Schedule wide = schedule;
    wide.queryStages = 2;
    bool hasStage = schedule.has(ScheduleFeatures::BulkStore);
    int64_t stageBytes = hasStage ? *schedule.queryTile * bytesOfPanelRow : 0;
    bool isWide = schedule.has(ScheduleFeatures::Persistent) &&
                  getSharedBytes(op, wide) + stageBytes <= sharedBytesOfBlock;
    schedule.queryStages = isWide ? 2 : 1;
  }
  int64_t bytes = getSharedBytes(op, schedule);
  if (bytes > sharedBytesOfBlock)
    return refuse() << "the tiles need " << bytes
                    << " bytes of shared memory, and a block may have "
                    << sharedBytesOfBlock
                    << "; choose smaller tiles or fewer stages";
  return success();
}
