//===- Schedule.cpp - How an attention is cut into tiles ------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Schedule/Schedule.h"

#include "flash/Machine/Machine.h"
#include "flash/Support/HeadDim.h"
#include "flash/Support/NearestName.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <utility>

#include "flash/Schedule/ScheduleEnums.cpp.inc"

using namespace flash;
using llvm::StringRef;

namespace {
/// Whose key it is, and what its value may be.
struct Key {
  llvm::StringLiteral name;
  /// A set of `ScheduleOwner`.
  unsigned owners;
  /// Null for `features`, the only key that is no number.
  std::optional<int64_t> Schedule::*number = nullptr;
  int64_t least = 1, most = 1, multiple = 1;
  /// Whether it is chosen for a pair of tiles and says nothing of others.
  bool followsTiles = false;
};

constexpr int64_t mostSplitKeys = 1 << 20;

constexpr unsigned ofAttention = unsigned(ScheduleOwner::Attention),
                   ofGradients = unsigned(ScheduleOwner::Gradients),
                   ofKernel = unsigned(ScheduleOwner::Kernel),
                   ofBoth = ofAttention | ofGradients;

// A new key is a line here, a member in Schedule.h, a sentence in Schedule.td,
// and the pass that reads it.
constexpr Key keys[] = {
    {"query_tile", ofBoth, &Schedule::queryTile, 8, 1024, 8},
    {"key_tile", ofBoth, &Schedule::keyTile, 8, 1024, 8},
    {"query_step", ofGradients, &Schedule::queryStep, 8, 1024, 8},
    {"key_step", ofGradients, &Schedule::keyStep, 8, 1024, 8},
    {"products", ofGradients, &Schedule::products, Schedule::oneProgram,
     Schedule::separatePrograms},
    {"key_programs", ofGradients, &Schedule::keyPrograms, 1, 2},
    {"packed_heads", ofAttention, &Schedule::packedHeads, 1, 1024},
    {"value_columns", ofAttention, &Schedule::valueColumns, headDimMultiple,
     largestHeadDim, headDimMultiple, /*followsTiles=*/true},
    {"warps", ofAttention | ofKernel, &Schedule::warps, 1, 32, 1,
     /*followsTiles=*/true},
    {"stages", ofBoth | ofKernel, &Schedule::stages, 1, 16, 1,
     /*followsTiles=*/true},
    {"query_stages", ofAttention | ofKernel, &Schedule::queryStages, 1, 2, 1,
     /*followsTiles=*/true},
    {"key_program_stages", ofGradients, &Schedule::keyProgramStages, 1, 16, 1,
     /*followsTiles=*/true},
    {"ctas_per_sm", ofBoth | ofKernel, &Schedule::ctasPerSm, 1, 4, 1,
     /*followsTiles=*/true},
    {"features", ofBoth | ofKernel},
    {"block_map", ofBoth, &Schedule::blockMap, 0, 1},
    {"num_splits", ofAttention, &Schedule::numSplits, 1, 256},
    {"split_ctas", ofAttention, &Schedule::splitCtas, 1, mostSplitCtas},
    // Of the tile of keys a multiple, which findFault knows.
    {"split_keys", ofAttention, &Schedule::splitKeys, 8, mostSplitKeys}};

// Features that do nothing in programs of the others.
constexpr ScheduleFeatures featuresOfAttention =
                               ScheduleFeatures::LazyRescale |
                               ScheduleFeatures::SkipRows |
                               ScheduleFeatures::DivideColumns,
                           featuresOfGradients =
                               ScheduleFeatures::DeferProducts |
                               ScheduleFeatures::SumDiagonals;

// How the keys are split: one of these at most.
constexpr std::optional<int64_t> Schedule::*splitKinds[] = {
    &Schedule::numSplits, &Schedule::splitCtas, &Schedule::splitKeys};
} // namespace

/// Reads "-overlap|-ping_pong", each of them with its sign.
static std::optional<ScheduleFeatures> symbolizeLeftOut(StringRef text) {
  auto leftOut = ScheduleFeatures::None;
  for (StringRef item : llvm::split(text, '|')) {
    std::optional<ScheduleFeatures> feature;
    if (item.consume_front("-"))
      feature = symbolizeScheduleFeatures(item);
    if (!feature || *feature == ScheduleFeatures::None)
      return std::nullopt;
    leftOut |= *feature;
  }
  return leftOut;
}

/// What is wrong with the value of a key that is a number.
static std::string findFault(const Key &key, int64_t value) {
  if (value >= key.least && value <= key.most && value % key.multiple == 0)
    return "";
  if (key.multiple == 1)
    return llvm::formatv("{0} must be from {1} to {2}, got {3}", key.name,
                         key.least, key.most, value);
  int64_t nearest =
      llvm::alignTo(std::clamp(value, key.least, key.most), key.multiple);
  return llvm::formatv("{0} must be a multiple of {1} from {2} to {3}, got "
                       "{4}; the nearest is {5}",
                       key.name, key.multiple, key.least, key.most, value,
                       nearest);
}

bool Schedule::isOfBlocks() const {
  Schedule rest = *this;
  rest.queryTile = rest.keyTile = rest.packedHeads = rest.blockMap =
      rest.products = std::nullopt;
  return !rest.isEmpty();
}

std::string Schedule::set(StringRef name, StringRef value) {
  const Key *key =
      llvm::find_if(keys, [&](const Key &k) { return k.name == name; });
  if (key == std::end(keys)) {
    auto names = llvm::map_to_vector(
        keys, [](const Key &k) { return StringRef(k.name); });
    return llvm::formatv(
        "a schedule has no key '{0}'; the keys are {1}; the nearest is {2}",
        name, llvm::join(names, ", "), getNearestName(name, names));
  }
  if (key->number ? bool(this->*key->number)
                  : features || leftOut != ScheduleFeatures::None)
    return llvm::formatv("{0} is given twice", name);
  if (!key->number) {
    features = symbolizeScheduleFeatures(value);
    if (features)
      return "";
    if (auto without = symbolizeLeftOut(value)) {
      leftOut = *without;
      return "";
    }
    return llvm::formatv(
        "'{0}' is no list of features such as "
        "specialize_warps|overlap, nor one of features to leave out, each with "
        "its minus, such as -overlap|-ping_pong; the features are {1}, or "
        "none",
        value,
        stringifyScheduleFeatures(ScheduleFeatures(
            2 * uint32_t(ScheduleFeatures::DivideColumns) - 1)));
  }
  int64_t number;
  if (value.getAsInteger(10, number))
    return llvm::formatv("{0} needs a number, got '{1}'", name, value);
  this->*key->number = number;
  return ::findFault(*key, number);
}

std::string Schedule::findFault() const {
  for (const Key &key : keys)
    if (key.number && this->*key.number)
      if (std::string fault = ::findFault(key, *(this->*key.number));
          !fault.empty())
        return fault;
  if (products && *products != oneProgram && *products != separatePrograms)
    return llvm::formatv("products must be {0} or {1}, got {2}", oneProgram,
                         separatePrograms, *products);
  if (isFused() && keyPrograms.value_or(1) != 1)
    return llvm::formatv("products = {0} makes one program, and key_programs = "
                         "{1} makes several; leave out one of the keys",
                         oneProgram, *keyPrograms);
  if (has(ScheduleFeatures::ClaimTiles) &&
      !(has(ScheduleFeatures::Persistent) &&
        has(ScheduleFeatures::SpecializeWarps)))
    return "claim_tiles says how blocks that persist, with warps that have "
           "roles, take tiles; write "
           "specialize_warps|persistent|claim_tiles, or leave it out";
  if (has(ScheduleFeatures::SkipRows) &&
      !has(ScheduleFeatures::SpecializeWarps))
    return "skip_rows lets warpgroups without rows give back what the warps "
           "that copy wait for; write specialize_warps|skip_rows, or leave it "
           "out";
  if (has(ScheduleFeatures::DivideColumns) &&
      (!has(ScheduleFeatures::SpecializeWarps) ||
       has(ScheduleFeatures::LazyRescale)))
    return "divide_columns lets one of two warpgroups compute the scores for "
           "both; it needs specialize_warps, and goes without lazy_rescale";
  if (alternatesTiles() && has(ScheduleFeatures::Overlap))
    return "warpgroups that divide columns alternate between tiles under "
           "ping_pong; this goes without overlap";
  if (queryTile && getPackedHeads() > *queryTile)
    return llvm::formatv("packed_heads must be at most query_tile, which has a "
                         "row for each, got {0} and {1}",
                         *packedHeads, *queryTile);
  if (numSplits && splitCtas)
    return "num_splits says what split_ctas leaves to the sizes; write one of "
           "them";
  if (splitKeys && (numSplits || splitCtas))
    return llvm::formatv(
        "split_keys says how long splits are, and {0} how many "
        "there are; write one of them",
        numSplits ? "num_splits" : "split_ctas");
  if (splitKeys && keyTile && *splitKeys % *keyTile != 0)
    return llvm::formatv("split_keys must be a multiple of key_tile, got {0} "
                         "and {1}; the nearest is {2}",
                         *splitKeys, *keyTile,
                         std::min(llvm::alignTo(*splitKeys, *keyTile),
                                  llvm::alignDown(mostSplitKeys, *keyTile)));
  return "";
}

std::string Schedule::findForeignKey(ScheduleOwner owner) const {
  auto isOwned = [&](const Key &key) { return key.owners & unsigned(owner); };
  std::string names, foreign;
  for (const Key &key : keys)
    if (isOwned(key))
      names += (names.empty() ? "" : ", ") + key.name.str();
    else if (foreign.empty() && this->*key.number)
      foreign = key.name.str();
  StringRef ofOwner = owner == ScheduleOwner::Attention   ? "an attention"
                      : owner == ScheduleOwner::Gradients ? "gradients"
                                                          : "one kernel";
  if (!foreign.empty())
    return llvm::formatv("a schedule of {0} has no key '{1}'; its keys are {2}",
                         ofOwner, foreign, names);
  // A kernel has the features of the operation before it.
  ScheduleFeatures others =
      owner == ScheduleOwner::Attention   ? featuresOfGradients
      : owner == ScheduleOwner::Gradients ? featuresOfAttention
                                          : ScheduleFeatures::None;
  if (!has(others))
    return "";
  return llvm::formatv("the features {0} do nothing in a schedule of {1}; "
                       "leave them out",
                       stringifyScheduleFeatures(*features & others), ofOwner);
}

Schedule Schedule::ofKernel() const {
  Schedule kernel = *this;
  for (const Key &key : keys)
    if (!(key.owners & ::ofKernel))
      (kernel.*key.number).reset();
  return kernel;
}

llvm::Expected<Schedule> Schedule::parse(StringRef text) {
  Schedule schedule;
  auto fail = [](const std::string &fault) {
    return llvm::createStringError(fault);
  };
  if (text.empty())
    return schedule;
  for (StringRef item : llvm::split(text, ',')) {
    auto [key, value] = item.split('=');
    if (item.empty())
      return fail(llvm::formatv("'{0}' has an empty item; write them separated "
                                "by single commas",
                                text));
    if (std::string fault = schedule.set(key, value); !fault.empty())
      return fail(fault);
  }
  if (std::string fault = schedule.findFault(); !fault.empty())
    return fail(fault);
  return schedule;
}

/// Whether a schedule says no other tiles than `other` has.
static bool allowsTilesOf(const Schedule &schedule, const Schedule &other) {
  return (!schedule.queryTile || schedule.queryTile == other.queryTile) &&
         (!schedule.keyTile || schedule.keyTile == other.keyTile);
}

bool Schedule::agreesWith(const Schedule &measured) const {
  return allowsTilesOf(*this, measured) &&
         (!features || hasRoles() == measured.hasRoles());
}

double Schedule::getDistanceTo(const Schedule &other) const {
  double distance = hasRoles() == other.hasRoles() ? 0 : 1;
  for (auto size : {&Schedule::queryTile, &Schedule::keyTile})
    distance += std::abs(std::log2(static_cast<double>(*(this->*size)) /
                                   static_cast<double>(*(other.*size))));
  return distance;
}

Schedule Schedule::over(const Schedule &lower) const {
  Schedule merged = *this;
  bool hasSameTiles = allowsTilesOf(*this, lower);
  for (const Key &key : keys) {
    if (!key.number || merged.*key.number ||
        (key.followsTiles && !hasSameTiles))
      continue;
    merged.*key.number = lower.*key.number;
  }
  if (!features) {
    merged.leftOut |= lower.leftOut;
    merged.features = lower.features;
  }
  if (merged.features) {
    // Only persistent blocks claim tiles.
    if (bitEnumContainsAny(merged.leftOut, ScheduleFeatures::Persistent))
      merged.leftOut |= ScheduleFeatures::ClaimTiles;
    *merged.features &= ~std::exchange(merged.leftOut, ScheduleFeatures::None);
  }
  if (llvm::any_of(splitKinds, [&](auto kind) { return this->*kind; }))
    for (auto kind : splitKinds)
      merged.*kind = this->*kind;
  return merged;
}

/// Writes what symbolizeLeftOut reads.
static std::string stringifyLeftOut(ScheduleFeatures leftOut) {
  std::string names = stringifyScheduleFeatures(leftOut);
  return "-" + llvm::join(llvm::split(names, '|'), "|-");
}

void Schedule::forEach(
    llvm::function_ref<void(StringRef key, StringRef value)> visit) const {
  for (const Key &key : keys) {
    if (!key.number) {
      if (features)
        visit(key.name, stringifyScheduleFeatures(*features));
      else if (leftOut != ScheduleFeatures::None)
        visit(key.name, stringifyLeftOut(leftOut));
    } else if (this->*key.number) {
      visit(key.name, std::to_string(*(this->*key.number)));
    }
  }
}

std::string Schedule::str() const {
  std::string text;
  forEach([&](StringRef key, StringRef value) {
    text += (llvm::Twine(text.empty() ? "" : ",") + key + "=" + value).str();
  });
  return text;
}

bool Schedule::operator==(const Schedule &other) const {
  return features == other.features && leftOut == other.leftOut &&
         llvm::all_of(keys, [&](const Key &key) {
           return !key.number || this->*key.number == other.*key.number;
         });
}

llvm::hash_code flash::hash_value(const Schedule &schedule) {
  llvm::hash_code hash = llvm::hash_combine(schedule.features.has_value(),
                                            uint32_t(schedule.leftOut));
  if (schedule.features)
    hash = llvm::hash_combine(hash, uint32_t(*schedule.features));
  for (const Key &key : keys)
    if (key.number)
      hash = llvm::hash_combine(hash, (schedule.*key.number).value_or(-1));
  return hash;
}

int64_t flash::getDefaultWarps(int64_t queryTile) {
  for (int64_t warps : {4, 2})
    if (queryTile % (rowsOfWarp * warps) == 0)
      return warps;
  return 1;
}
