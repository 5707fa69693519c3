//===- GradModel.cpp - Tiles of gradients ---------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelParts.h"
#include "flash/Schedule/Warpgroups.h"
#include "flash/Support/HeadDim.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "flash-schedule"

using namespace flash;
using llvm::formatv;

// Stages where the schedule does not say.
static constexpr int64_t defaultStages = 2;

// Registers of a thread that addresses, rows of statistics and elements that
// are being computed need beside the tiles (as assembled, test/Ptxas).
static constexpr int64_t registersBesideTiles = 32;

// The statistics of a step of queries are copied as rows of eight, and a tile
// in shared memory has a multiple of eight rows.
static constexpr int64_t queryStepMultiple = 64;

// Bytes of an element, f32, of a gradient that blocks add up in memory.
static constexpr int64_t bytesOfSum = 4;

// Shared memory that the barriers of a block's rings need, rounded up.
static constexpr int64_t barrierBytesPerBlock = 1024;

namespace {
/// Tiles for head dimensions up to a bound, where warps have roles.
struct Candidate {
  int64_t maxHeadDim, queryTile, keyStep, keyTile, queryStep, stages;
  /// Where the program of keys has other stages, and where it is two.
  std::optional<int64_t> keyProgramStages = {}, keyPrograms = {};
  /// What the one program has besides.
  ScheduleFeatures fused = ScheduleFeatures::None;
};

/// Where one program is faster than two (H200, docs/schedules.md).
struct Gain {
  /// Multiples of 16 above the bound of the line before; others have no such
  /// program.
  int64_t maxHeadDim;
  /// From which length on, without a mask and with one, and from how many heads
  /// of all batches: blocks of a head add in order. Never, if absent.
  std::optional<int64_t> shortest;
  int64_t shortestMasked, fewestHeads;
  /// The same lengths where scores are kept, and each program would compute
  /// them again; never, if absent, where there are no registers for them.
  std::optional<int64_t> shortestKept, shortestMaskedKept;
  /// How many keys a query sees at least where a mask leaves ranges and there
  /// is no score function: in narrower windows most tiles are masked.
  int64_t fewestKeys;
  /// Whether there are registers for elements of each query and key.
  bool readsPairs;
  /// Up to how many heads that share keys it pays where tiles have lists: of
  /// more, blocks wait for each other.
  int64_t largestGroupOfLists;
  /// How many queries lists have at least where it pays: of fewer, a tile waits
  /// for its first additions and has no others.
  int64_t fewestQueriesOfLists = 0;
};
} // namespace

/// How many keys a query sees at least under other masks. The number is of a
/// sample of queries: under a causal mask of 512 keys it is 509.
static constexpr int64_t fewestKeysOfQuery = 500;

/// Rows shorter than this, without a mask and with one, need so many tiles of
/// keys instead of heads.
static constexpr int64_t longRow = 2048, longMaskedRow = 1024,
                         fewestTilesOfShortRows = 1024;

static constexpr ScheduleFeatures features =
    ScheduleFeatures::SpecializeWarps | ScheduleFeatures::BulkStore;

static constexpr Candidate candidates[] = {{64, 128, 128, 128, 64, 2},
                                           {128, 128, 64, 128, 64, 2},
                                           {192, 128, 64, 128, 64, 2, 2, 2},
                                           {256, 128, 48, 128, 64, 2, 1, 2}};

static constexpr ScheduleFeatures claimed =
    ScheduleFeatures::DeferProducts | ScheduleFeatures::Persistent;

/// The candidates for one program, which has no tiles of queries of its own.
static constexpr Candidate fusedCandidates[] = {
    {64, 128, 128, 128, 128, 2, {}, {}, claimed}, {192, 128, 128, 128, 64, 2}};

static constexpr Gain gains[] = {
    {64, 512, 512, 4, {}, {}, 0, false, unlimited},
    {80, 1024, 2048, 16, 1024, 1024, 2000, false, 0},
    {96, 1024, 2048, 16, 1024, 1024, 2000, false, 0},
    {112, 1024, 2048, 16, 1024, 1024, 2000, false, 0},
    {128, 1024, 2048, 16, 512, 1024, 500, true, 1, 1024}};

/// The same for wide gradients, of up to so many columns of keys and values
/// together, for which there are registers. Where keys or values have fewer
/// than so many, ptxas lets each product wait for the one before.
static constexpr int64_t mostWideColumns = 320, fewestWideColumns = 112;
static constexpr Gain wideGain = {192, 512, 1024, 16, {}, {}, 1000, false, 0};

/// Columns of keys and values whose gradients one program without roles sums
/// up.
static constexpr int64_t mostColumnsTogether = 512;

/// The sums of diagonals may take so many times the memory of the gradients of
/// queries.
static constexpr int64_t mostOfDiagonals = 2;

/// The queries of a step whose diagonals one warp adds up in time, and up to
/// which length of masked rows it pays where they are more: shorter rows have
/// other things to wait for.
static constexpr int64_t stepOfOneWarp = 64, longestOfOneWarp = 2048;

/// From which length on one program pays if it sums up diagonals: another one
/// would compute all scores again.
static constexpr int64_t shortestOfDiagonals = 512;

/// The longest tile of keys, which may be begun last, may have one part of so
/// many of the work of all heads: while it ends most multiprocessors have
/// nothing left to do, with 132 of them for nearly a third of the time.
static constexpr int64_t fewestPartsOfWork = 440;

/// Up to how many heads that share keys it pays if a mask in a region takes
/// part beside another mask: of more, shorter lists wait for longer ones.
static constexpr int64_t largestGroupInRegion = 2;

/// The first of the candidates that the problem has room in; null if there is
/// none.
static const Candidate *findCandidate(const Problem &problem,
                                      llvm::ArrayRef<Candidate> candidates) {
  int64_t dim = std::max(problem.headDim, problem.valueDim);
  const auto *found = llvm::find_if(
      candidates, [&](const Candidate &c) { return dim <= c.maxHeadDim; });
  return found == candidates.end() ? nullptr : found;
}

/// Whether sums of diagonals pay, and there is memory for them: a row of f32
/// for each pair of tiles.
static bool paysToSumDiagonals(const Problem &problem,
                               const Candidate &candidate) {
  if (!problem.sumsByDistance || !problem.leavesRanges || !problem.keys ||
      !problem.queries || areGradientsWide(problem.headDim + problem.valueDim))
    return false;
  // Two warps add up the diagonals of steps of 128 queries, and where some keys
  // may be left out one of these looks for what is not finite.
  bool leavesKeysOut = problem.isMasked || problem.hasLengths ||
                       *problem.keys % candidate.keyTile != 0;
  if (candidate.queryStep > stepOfOneWarp && leavesKeysOut &&
      (!problem.isMasked || *problem.keys > longestOfOneWarp))
    return false;
  int64_t sumsOfPair = candidate.keyTile + candidate.queryStep,
          sumsOfStep =
              llvm::divideCeil(*problem.keys, candidate.keyTile) * sumsOfPair;
  return sumsOfStep <= mostOfDiagonals * candidate.queryStep * problem.headDim;
}

/// Whether one program is faster than two where tiles of keys have lists of
/// queries, with ranks that are data.
static bool paysToFuseLists(const Problem &problem, const Gain &gain,
                            int64_t keyTile) {
  // A mask that is read for each pair of a query and a key may leave a tile
  // anything.
  if (problem.masksInRegion && problem.readsPairs)
    return false;
  int64_t largestGroup = gain.largestGroupOfLists;
  if (problem.masksInRegion && largestGroup)
    largestGroup = *problem.meanQueriesPerKey == *problem.queries
                       ? unlimited
                       : largestGroupInRegion;
  if (problem.group.value_or(1) > largestGroup ||
      problem.queriesInTilesPerKey.value_or(unlimited) <
          gain.fewestQueriesOfLists)
    return false;
  std::optional<int64_t> heads =
      problem.heads ? problem.heads : problem.headsOfBatch;
  int64_t tiles = llvm::divideCeil(*problem.keys, keyTile);
  return !heads || *problem.mostQueriesPerKey * fewestPartsOfWork <=
                       *problem.meanQueriesPerKey * *heads * tiles;
}

/// Where one program was measured beside two; null for head dimensions for
/// which it was not.
static const Gain *findGain(const Problem &problem) {
  int64_t dim = problem.headDim, columns = dim + problem.valueDim;
  if (dim % rowsOfWarp || problem.valueDim % rowsOfWarp)
    return nullptr;
  if (areGradientsWide(columns))
    return columns <= mostWideColumns &&
                   std::min(dim, problem.valueDim) >= fewestWideColumns &&
                   std::max(dim, problem.valueDim) <= wideGain.maxHeadDim
               ? &wideGain
               : nullptr;
  const Gain *gain = llvm::find_if(
      gains, [&](const Gain &each) { return dim <= each.maxHeadDim; });
  return dim == problem.valueDim && gain != std::end(gains) ? gain : nullptr;
}

/// Whether one program is faster than two where warps have roles, as far as
/// that was measured.
static bool paysToFuse(const Problem &problem) {
  auto refuse = [](llvm::StringRef reason) {
    LLVM_DEBUG(llvm::dbgs() << "two programs of gradients: " << reason << "\n");
    return false;
  };
  const Candidate *candidate = findCandidate(problem, fusedCandidates);
  const Gain *gain = findGain(problem);
  bool areSizesKnown = problem.queries && problem.keys;
  if (!candidate || !gain || (!areSizesKnown && !problem.hasPackedRows) ||
      (problem.readsPairs && !gain->readsPairs))
    return refuse("not measured for these head dimensions, sizes and reads");
  std::optional<int64_t> shortest =
      problem.isMasked ? gain->shortestMasked : gain->shortest;
  if (problem.keepsScores)
    shortest = problem.isMasked ? gain->shortestMaskedKept : gain->shortestKept;
  // Tiles of many sequences keep all multiprocessors busy, whatever their
  // lengths are.
  if (problem.hasPackedRows)
    return (shortest && problem.leavesRanges) ||
           refuse("there are no registers, or lists of tiles");
  if (paysToSumDiagonals(problem, *candidate))
    shortest = std::min(shortest.value_or(unlimited), shortestOfDiagonals);
  int64_t length = std::min(*problem.queries, *problem.keys),
          keysOfQuery = *problem.mostKeysPerQuery;
  int64_t fewestKeys = 0;
  if (problem.hasScore)
    fewestKeys = fewestKeysOfQuery;
  else if (problem.leavesRanges)
    fewestKeys = gain->fewestKeys;
  bool isNarrow = problem.isMasked && keysOfQuery < fewestKeys;
  if (!shortest || length < *shortest || isNarrow ||
      (!problem.leavesRanges &&
       !paysToFuseLists(problem, *gain, candidate->keyTile)))
    return refuse("rows are short or narrow, or lists do not pay");
  if (!problem.heads)
    return true;
  bool isShort = length < (problem.isMasked ? longMaskedRow : longRow);
  int64_t tiles = *problem.heads * llvm::divideCeil(length, candidate->keyTile);
  bool hasEnough = isShort ? tiles >= fewestTilesOfShortRows
                           : *problem.heads >= gain->fewestHeads;
  return hasEnough || refuse("there are few heads");
}

/// A tile of queries or keys and a step of the others, which are in shared
/// memory together where warps have no roles.
static int64_t getBytesOfPair(const Problem &problem, int64_t rows,
                              int64_t step) {
  int64_t bytes = 0;
  for (int64_t columns : {problem.headDim, problem.valueDim})
    bytes += problem.getTileBytes(rows, columns) +
             problem.getTileBytes(step, columns);
  return bytes;
}

static Schedule chooseTiles(const Problem &problem, const Machine &target,
                            bool isFused) {
  // The gradients of a tile of keys and of values are in registers together:
  // up to D = Dv = 128 they need no spills (test/Ptxas), in f32 up to 64; wider
  // ones do.
  bool is32Bits = problem.getElementBits() == 32;
  bool isWide = problem.headDim + problem.valueDim > (is32Bits ? 128 : 256);
  int64_t largestQueryTile = target.isGpu() ? 32 : 64;
  int64_t largestKeyTile = target.isGpu() && isWide ? 32 : 64;
  auto fit = [](std::optional<int64_t> length, int64_t largest) {
    if (!length || *length >= largest)
      return largest;
    return std::max<int64_t>(llvm::alignTo(*length, rowsOfWarp), rowsOfWarp);
  };
  Schedule schedule;
  schedule.queryTile = fit(problem.queries, largestQueryTile);
  schedule.keyTile = fit(problem.keys, largestKeyTile);
  // Tiles of a head add in place.
  if (!target.isGpu()) {
    schedule.products = Schedule::oneProgram;
    return schedule;
  }
  auto fitsBeside = [&](int64_t rows, int64_t step) {
    return getBytesOfPair(problem, rows, step) <=
           target.portableSharedBytesPerBlock;
  };
  if (!fitsBeside(*schedule.queryTile, *schedule.keyTile))
    schedule.keyStep = rowsOfWarp;
  if (!fitsBeside(*schedule.keyTile, *schedule.queryTile))
    schedule.queryStep = rowsOfWarp;
  for (auto tile : {&Schedule::queryTile, &Schedule::keyTile})
    if (!fitsBeside(*(schedule.*tile), rowsOfWarp))
      schedule.*tile = rowsOfWarp;
  // The gradients of a tile of keys and of values spill thousands of bytes
  // together, and hundreds alone.
  if (!isFused && problem.headDim + problem.valueDim > mostColumnsTogether)
    schedule.keyPrograms = 2;
  return schedule;
}

Schedule flash::chooseGradSchedule(const Problem &problem,
                                   const Machine &target,
                                   const Schedule &given) {
  // Given features say whether there is one program.
  bool isFused = given.products || given.features || given.keyPrograms
                     ? given.isFused()
                     : paysToFuse(problem);
  const Candidate *candidate = findCandidate(
      problem, isFused ? llvm::ArrayRef(fusedCandidates) : candidates);
  // Given tiles may be such that only warps without roles can have them.
  auto canBe = [](std::optional<int64_t> tile, std::optional<int64_t> step) {
    return canBeWarpgroupTiles(tile.value_or(0), step.value_or(0));
  };
  bool hasRoles = given.features ? given.hasRoles()
                                 : canBe(given.queryTile, given.keyStep) &&
                                       canBe(given.keyTile, given.queryStep);
  if (!candidate || !hasRoles || !canHaveRoles(problem, target))
    return chooseTiles(problem, target, isFused);
  Schedule schedule;
  schedule.queryTile = candidate->queryTile;
  schedule.keyTile = candidate->keyTile;
  schedule.queryStep = candidate->queryStep;
  schedule.keyStep = candidate->keyStep;
  schedule.stages = candidate->stages;
  schedule.keyProgramStages = candidate->keyProgramStages;
  schedule.keyPrograms = candidate->keyPrograms;
  schedule.features = features;
  if (isFused) {
    schedule.products = Schedule::oneProgram;
    *schedule.features |= candidate->fused;
    bool isWide = areGradientsWide(problem.headDim + problem.valueDim);
    // Which sequence a tile is of, and how long it is, depends on the data, and
    // so do lists of what a region masks. Beside wide gradients there are no
    // registers for claims, and no stage for deferred products.
    if (!isWide && (problem.hasPackedRows || problem.masksInRegion))
      *schedule.features |=
          ScheduleFeatures::Persistent | ScheduleFeatures::ClaimTiles;
    if (!isWide && !problem.leavesRanges)
      *schedule.features |= ScheduleFeatures::DeferProducts;
    if (paysToSumDiagonals(problem, *candidate))
      *schedule.features |= ScheduleFeatures::SumDiagonals;
  }
  // Masked programs have no registers left for it, and neither have programs of
  // open sizes (as assembled, test/Ptxas). One program with a score function or
  // lengths was not timed. Tiles are taken as they become free.
  bool isPlain = !problem.hasScore && !problem.hasLengths;
  if (!problem.isMasked && problem.queries && problem.keys &&
      (isPlain || !isFused))
    *schedule.features |= ScheduleFeatures::Persistent;
  return schedule;
}

namespace {
/// A program over tiles of `rows` queries or keys, which visits `step` of the
/// others at a time, by the names of both in the schedule.
struct Program {
  llvm::StringLiteral rowsName, stepName;
  int64_t rows, step, stages;
  /// Columns of the gradients that are summed up in registers.
  int64_t gradColumns;
  /// What a tile of rows and one of a step have in shared memory.
  int64_t rowBytes, stepBytes;
  /// Products of a step in registers at the same time.
  int64_t products;
  /// The columns of the gradients of queries where one program has all
  /// gradients: they go to others through shared memory as the gradients of
  /// scores do, in parts of columns that are one below the other; else 0.
  int64_t queryColumns = 0;

  int64_t getWarpgroups() const { return rows / rowsOfWarpgroup; }
  /// A thread's registers for the tiles of a step. Of 64 rows each of 128
  /// threads has half as many elements as there are columns; what is multiplied
  /// next is rounded to 16 bits.
  int64_t getStepRegisters() const {
    if (queryColumns == 0)
      return products * step / 2 + step / 4;
    // One product after the other, beside scores that are rounded.
    if (areGradientsWide(gradColumns))
      return std::max(step / 2 + step / 4,
                      step * queryColumns / (128 * getWarpgroups()));
    // Scores and their gradients are rounded before the gradients of queries
    // are computed.
    return std::max(products * step / 2,
                    products * step / 4 +
                        step * queryColumns / (128 * getWarpgroups()));
  }
};
} // namespace

/// What is wrong with the program where warps have roles; empty if nothing is.
static std::string findFault(const Problem &problem, const Machine &target,
                             const Schedule &schedule, const Program &program) {
  if (!canBeWarpgroupTiles(program.rows, rowsOfWarp))
    return formatv("{0} must be 64, 128 or 192 where warps have roles, got {1}",
                   program.rowsName, program.rows);
  if (!canBeWarpgroupTiles(rowsOfWarpgroup, program.step))
    return formatv("{0} must be a multiple of 16 up to 256 where warps have "
                   "roles, got {1}",
                   program.stepName, program.step);
  int64_t warpgroups = program.getWarpgroups();
  if (warpgroups == 1 && schedule.has(ScheduleFeatures::PingPong))
    return formatv("ping_pong takes two or three warpgroups, so {0} must be "
                   "128 or 192, got {1}",
                   program.rowsName, program.rows);
  if (program.queryColumns > 0 && areGradientsWide(program.gradColumns) &&
      schedule.has(ScheduleFeatures::DeferProducts))
    return formatv(
        "defer_products needs two stages of the gradients of scores, "
        "for which products = {0} has no room beside gradients of "
        "more than 256 columns together; leave it out of the "
        "features",
        Schedule::oneProgram);
  int64_t blocks = schedule.ctasPerSm.value_or(1);
  int64_t registers = program.getStepRegisters() + program.gradColumns / 2 +
                      registersBesideTiles;
  int64_t available = getRoleRegisters(target, warpgroups, blocks).consumer;
  bool isFused = program.queryColumns > 0;
  if (registers > available)
    return formatv("the products of a {0} of {1} and the gradients need {2} "
                   "registers of a thread, and with {3} warpgroups there are "
                   "{4}; choose {5}{6}",
                   program.stepName, program.step, registers, warpgroups,
                   available,
                   isFused && program.step <= queryStepMultiple
                       ? ""
                       : formatv("a smaller {0}, or ", program.stepName).str(),
                   isFused ? "products = 7" : "key_programs = 2");
  int64_t bytes = program.rowBytes + program.stages * program.stepBytes;
  if (program.queryColumns > 0)
    bytes +=
        getStagesOfSharedProducts(areGradientsWide(program.gradColumns)) *
            problem.getTileBytes(program.rows, program.step) +
        getSharedTileBytes(program.rows,
                           program.step * program.queryColumns / program.rows,
                           bytesOfSum);
  int64_t limit = std::max<int64_t>(0, getSharedLimit(target, blocks) -
                                           barrierBytesPerBlock);
  if (bytes > limit)
    return formatv("tiles of a {0} of {1} and steps of {2} need {3} bytes of "
                   "shared memory, and a block may have {4}; choose smaller "
                   "ones or fewer stages{5}",
                   program.rowsName, program.rows, program.step, bytes, limit,
                   isFused ? ", or products = 7" : "");
  return "";
}

/// The programs of a schedule where warps have roles.
static llvm::SmallVector<Program> getPrograms(const Problem &problem,
                                              const Schedule &schedule) {
  // Queries and gradients of outputs, or keys and values.
  auto getBytes = [&](int64_t rows) {
    return problem.getTileBytes(rows, problem.headDim) +
           problem.getTileBytes(rows, problem.valueDim);
  };
  int64_t queryTile = *schedule.queryTile, keyStep = schedule.getKeyStep(),
          keyTile = *schedule.keyTile, queryStep = schedule.getQueryStep();
  Program ofQueries = {
      "query_tile",     "key_step",      queryTile,           keyStep,
      *schedule.stages, problem.headDim, getBytes(queryTile), getBytes(keyStep),
      /*products=*/2};
  Program ofKeys = {"key_tile",
                    "query_step",
                    keyTile,
                    queryStep,
                    schedule.keyProgramStages.value_or(*schedule.stages),
                    problem.headDim + problem.valueDim,
                    getBytes(keyTile),
                    getBytes(queryStep),
                    /*products=*/2};
  if (schedule.isFused()) {
    ofKeys.queryColumns = problem.headDim;
    int64_t elementBytes = problem.getElementBytes(),
            rowBytes = problem.headDim * elementBytes;
    auto getDenseBytes = [&](int64_t rows, int64_t columns) {
      return getSharedTileBytes(rows, columns, elementBytes,
                                getSwizzleOfGradients(columns * elementBytes));
    };
    ofKeys.stepBytes = getDenseBytes(queryStep, problem.headDim) +
                       getDenseBytes(queryStep, problem.valueDim);
    int64_t keyBytes = getSharedTileBytes(
        keyTile, problem.headDim, elementBytes,
        getSwizzleOfParts(rowBytes, rowBytes * queryStep / keyTile));
    ofKeys.rowBytes = keyBytes + getDenseBytes(keyTile, problem.valueDim);
    // Where some are left out also the keys as they are, unless the others are
    // made where the gradients of queries go.
    if (!areGradientsWide(ofKeys.gradColumns) &&
        (problem.isMasked || problem.masksInRegion || problem.hasLengths))
      ofKeys.rowBytes += getDenseBytes(keyTile, problem.headDim);
    return {ofKeys};
  }
  if (schedule.keyPrograms.value_or(1) == 1)
    return {ofQueries, ofKeys};
  Program ofValues = ofKeys;
  ofKeys.gradColumns = problem.headDim;
  ofValues.gradColumns = problem.valueDim;
  ofValues.rowBytes = problem.getTileBytes(keyTile, problem.headDim);
  ofValues.products = 1;
  return {ofQueries, ofKeys, ofValues};
}

/// What is wrong with one of the programs where warps have roles.
static std::string findProgramFault(const Problem &problem,
                                    const Machine &target,
                                    const Schedule &schedule) {
  for (const Program &program : getPrograms(problem, schedule))
    if (std::string fault = ::findFault(problem, target, schedule, program);
        !fault.empty())
      return fault;
  return "";
}

std::string flash::completeGradSchedule(const Problem &problem,
                                        const Machine &target,
                                        Schedule &schedule) {
  if (std::string fault = schedule.findFault(); !fault.empty())
    return fault;
  // Where no features are proposed, there are none to leave out.
  schedule.leftOut = ScheduleFeatures::None;
  bool hasRoles = schedule.hasRoles() && canHaveRoles(problem, target);
  if (std::string fault = schedule.findForeignKey(ScheduleOwner::Gradients);
      !fault.empty())
    return fault;
  if (!hasRoles &&
      (schedule.stages || schedule.keyProgramStages || schedule.ctasPerSm))
    return "stages, key_program_stages and ctas_per_sm are of gradients whose "
           "warps have roles (specialize_warps, with the target sm_90a and "
           "elements of 16 bits); leave them out";
  if (schedule.isFused() && target.isGpu() &&
      !(hasRoles && schedule.has(ScheduleFeatures::SpecializeWarps)))
    return formatv(
        "products = {0} needs the CPU, or specialize_warps, with the "
        "target sm_90a, elements of 16 bits and head dimensions of at "
        "most 192 each and 320 together; choose products = {1}",
        Schedule::oneProgram, Schedule::separatePrograms);
  if (!target.isGpu())
    return "";
  if (std::string fault = findElementFault(problem, target); !fault.empty())
    return fault;
  for (auto [name, tile] : {std::pair("query_tile", *schedule.queryTile),
                            {"key_tile", *schedule.keyTile},
                            {"query_step", schedule.getQueryStep()},
                            {"key_step", schedule.getKeyStep()}})
    if (tile % rowsOfWarp != 0)
      return formatv("{0} must be a multiple of 16 on tensor cores, got "
                     "{1}; the nearest is {2}",
                     name, tile, llvm::alignTo(tile, rowsOfWarp));
  if (!hasRoles && schedule.hasRoles())
    return formatv("the features {0} need the target sm_90a and elements "
                   "of 16 bits",
                   stringifyScheduleFeatures(*schedule.features));
  if (!hasRoles) {
    int64_t bytes = std::max(
        getBytesOfPair(problem, *schedule.queryTile, schedule.getKeyStep()),
        getBytesOfPair(problem, *schedule.keyTile, schedule.getQueryStep()));
    if (bytes <= target.sharedBytesPerBlock)
      return "";
    int64_t least = getBytesOfPair(problem, rowsOfWarp, rowsOfWarp);
    std::string choice = "smaller tiles or steps";
    if (least > target.sharedBytesPerBlock) {
      int64_t most = llvm::alignDown((problem.headDim + problem.valueDim) *
                                         target.sharedBytesPerBlock / least,
                                     headDimMultiple);
      choice = formatv("head dimensions of at most {0} together, or cpu", most);
      if (problem.getElementBits() == 32 &&
          least / 2 <= target.sharedBytesPerBlock)
        choice = "elements of 16 bits, or cpu";
    }
    return formatv("tiles and steps of gradients need {0} bytes of shared "
                   "memory, and a block may have {1}; choose {2}",
                   bytes, target.sharedBytesPerBlock, choice);
  }
  if (!schedule.has(ScheduleFeatures::SpecializeWarps))
    return formatv("the features {0} need specialize_warps too",
                   stringifyScheduleFeatures(*schedule.features));
  // Others start all products that need no other first (tile-delay-waits).
  if (schedule.has(ScheduleFeatures::Overlap) &&
      schedule.keyPrograms.value_or(1) == 1)
    return "overlap is of a program that has the gradients of values alone; "
           "write key_programs = 2, or leave overlap out of the features";
  if (schedule.has(ScheduleFeatures::DeferProducts) && !schedule.isFused())
    return formatv("defer_products is of one program for all gradients; write "
                   "products = {0}, or leave defer_products out of the "
                   "features",
                   Schedule::oneProgram);
  if (int64_t step = schedule.getQueryStep(); step % queryStepMultiple != 0)
    return formatv("query_step must be a multiple of {0} where warps have "
                   "roles, got {1}; the nearest is {2}",
                   queryStepMultiple, step,
                   llvm::alignTo(step, queryStepMultiple));
  if (!schedule.stages)
    schedule.stages = defaultStages;
  std::string fault = findProgramFault(problem, target, schedule);
  if (fault.empty())
    return "";
  Schedule steps = schedule;
  steps.queryStep = schedule.getQueryStep();
  steps.keyStep = schedule.getKeyStep();
  // One of the choices is enough.
  for (auto [name, key, multiple] :
       {std::tuple("stages", &Schedule::stages, int64_t(1)),
        {"key_step", &Schedule::keyStep, rowsOfWarp},
        {"query_step", &Schedule::queryStep, queryStepMultiple}})
    if (std::string choice = nameSmaller(
            steps, name, key, multiple,
            [&](const Schedule &smaller) {
              return findProgramFault(problem, target, smaller).empty();
            });
        !choice.empty())
      return fault + choice;
  return fault;
}
