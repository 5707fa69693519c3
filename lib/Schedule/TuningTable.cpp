//===- TuningTable.cpp - Schedules that were measured to be best ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Schedule/TuningTable.h"

#include "flash/Support/InputFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MathExtras.h"

using namespace flash;
using llvm::createStringError;
using llvm::formatv;
using llvm::StringRef;
namespace json = llvm::json;

// Shorter sequences are one class, and so are fewer keys of a query.
static constexpr int64_t minLengthClass = 128, minKeysPerQueryClass = 32;
// Queries of the tiles that are few or many.
static constexpr int64_t queriesPerBlock = 128;

/// The least power of two, from `least`, that is not exceeded.
static std::optional<int64_t> getClass(std::optional<int64_t> length,
                                       int64_t least) {
  if (!length || *length > (int64_t(1) << 62))
    return std::nullopt;
  return std::max<int64_t>(llvm::PowerOf2Ceil(*length), least);
}

TuningKey TuningKey::get(const Problem &problem, const Machine &target,
                         StringRef device) {
  TuningKey key;
  key.device = device.str();
  key.target = target.name.str();
  key.dtype = problem.precision;
  key.mask = problem.mask;
  key.headDim = problem.headDim;
  key.valueDim = problem.valueDim;
  key.hasScore = problem.hasScore;
  key.hasLengths = problem.hasLengths;
  key.isGradient = problem.isGradient;
  key.sumsByDistance = problem.sumsByDistance;
  key.queries = getClass(problem.queries, minLengthClass);
  key.keys = getClass(problem.keys, minLengthClass);
  key.keysPerQuery = getClass(problem.mostKeysPerQuery, minKeysPerQueryClass);
  // A CPU's table does not depend on it, but has the key.
  int64_t multiprocessors =
      target.isGpu() ? target.multiprocessors : getDefaultGpu().multiprocessors;
  if (std::optional<int64_t> blocks = problem.countQueryTiles(queriesPerBlock))
    key.hasFewBlocks = *blocks < multiprocessors;
  return key;
}

bool TuningKey::operator==(const TuningKey &other) const {
  auto tie = [](const TuningKey &k) {
    return std::tie(k.device, k.target, k.dtype, k.mask, k.headDim, k.valueDim,
                    k.hasScore, k.hasLengths, k.isGradient, k.sumsByDistance,
                    k.queries, k.keys, k.keysPerQuery, k.hasFewBlocks);
  };
  return tie(*this) == tie(other);
}

namespace {

/// One line of a file.
class EntryReader {
public:
  EntryReader(const json::Object &object) : object(object) {}

  llvm::Expected<TuningEntry> read();

private:
  /// Keeps the first fault.
  void fail(const llvm::Twine &message) {
    if (fault.empty())
      fault = message.str();
  }
  const json::Value *take(StringRef name) {
    ++taken;
    const json::Value *value = object.get(name);
    if (!value)
      fail("'" + name + "' is missing");
    return value;
  }
  void readText(StringRef name, std::string &field) {
    if (const json::Value *value = take(name)) {
      auto text = value->getAsString();
      if (!text || text->empty())
        return fail("'" + name + "' must be a text");
      field = text->str();
    }
  }
  void readFlag(StringRef name, bool &field) {
    if (const json::Value *value = take(name)) {
      auto flag = value->getAsBoolean();
      if (!flag)
        return fail("'" + name + "' must be true or false");
      field = *flag;
    }
  }
  void readTime(StringRef name, double &seconds) {
    if (const json::Value *value = take(name)) {
      auto number = value->getAsNumber();
      if (!number || !(*number > 0))
        return fail("'" + name + "' must be a number of milliseconds");
      seconds = *number * 1e-3;
    }
  }
  void readSize(StringRef name, int64_t &field) {
    if (const json::Value *value = take(name)) {
      auto size = value->getAsInteger();
      if (!size || *size < 1)
        return fail("'" + name + "' must be a positive integer");
      field = *size;
    }
  }
  void readLength(StringRef name, int64_t least,
                  std::optional<int64_t> &field) {
    const json::Value *value = take(name);
    if (!value || value->getAsNull())
      return;
    auto length = value->getAsInteger();
    if (!length || *length < least || !llvm::isPowerOf2_64(*length))
      return fail(formatv("'{0}' must be a power of two from {1} on, or null "
                          "for lengths that are known at run time only",
                          name, least));
    field = *length;
  }
  void readBlocks(std::optional<bool> &field) {
    const json::Value *value = take("blocks");
    if (!value || value->getAsNull())
      return;
    auto text = value->getAsString();
    if (!text || (*text != "few" && *text != "many"))
      return fail("'blocks' must be \"few\", \"many\" or null");
    field = *text == "few";
  }
  void readSchedule(Schedule &schedule);

  const json::Object &object;
  size_t taken = 0;
  std::string fault;
};

} // namespace

void EntryReader::readSchedule(Schedule &schedule) {
  const json::Value *value = take("schedule");
  if (!value)
    return;
  const json::Object *keys = value->getAsObject();
  if (!keys)
    return fail("'schedule' must be an object such as {\"query_tile\": 128, "
                "\"key_tile\": 64}");
  for (const auto &[name, value] : *keys) {
    std::string text;
    if (auto integer = value.getAsInteger())
      text = std::to_string(*integer);
    else if (auto features = value.getAsString();
             features && name == "features")
      text = features->str();
    else
      return fail("'" + StringRef(name) + "' of the schedule must be " +
                  (name == "features"
                       ? "a list such as \"specialize_warps|overlap\""
                       : "an integer"));
    if (std::string wrong = schedule.set(name, text); !wrong.empty())
      return fail(wrong);
  }
  if (!schedule.queryTile || !schedule.keyTile)
    return fail("the schedule needs query_tile and key_tile");
  if (std::string wrong = schedule.findFault(); !wrong.empty())
    return fail(wrong);
}

llvm::Expected<TuningEntry> EntryReader::read() {
  TuningEntry entry;
  TuningKey &key = entry.key;
  readText("device", key.device);
  readText("target", key.target);
  readText("dtype", key.dtype);
  readSize("head_dim", key.headDim);
  readSize("value_dim", key.valueDim);
  readText("mask", key.mask);
  readFlag("score", key.hasScore);
  readFlag("lengths", key.hasLengths);
  // Only entries of gradients have these.
  if (object.get("gradients"))
    readFlag("gradients", key.isGradient);
  if (object.get("sums_by_distance"))
    readFlag("sums_by_distance", key.sumsByDistance);
  readLength("queries", minLengthClass, key.queries);
  readLength("keys", minLengthClass, key.keys);
  readLength("keys_per_query", minKeysPerQueryClass, key.keysPerQuery);
  readBlocks(key.hasFewBlocks);
  readSchedule(entry.schedule);
  readTime("ms", entry.seconds);
  readTime("default_ms", entry.defaultSeconds);
  if (fault.empty() && taken != object.size())
    fail("there is a key that entries do not have");
  if (!fault.empty())
    return createStringError(fault);
  return entry;
}

llvm::Expected<TuningTable> TuningTable::parse(StringRef text, StringRef name) {
  TuningTable table;
  auto fail = [&](int64_t line, const llvm::Twine &message) {
    return createStringError(formatv("{0}:{1}: {2}", name, line, message));
  };
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(text, name);
  for (llvm::line_iterator line(*buffer); !line.is_at_eof(); ++line) {
    if (line->trim().empty())
      continue;
    auto value = json::parse(*line);
    if (!value)
      return fail(line.line_number(),
                  "this is no JSON object: " + toString(value.takeError()));
    const json::Object *object = value->getAsObject();
    if (!object)
      return fail(line.line_number(), "a line must be one JSON object");
    auto entry = EntryReader(*object).read();
    if (!entry)
      return fail(line.line_number(), toString(entry.takeError()));
    if (const TuningEntry *before = table.find(entry->key))
      return fail(line.line_number(), "line " + llvm::Twine(before->line) +
                                          " is for the same programs");
    entry->line = line.line_number();
    table.entries.push_back(std::move(*entry));
  }
  return table;
}

llvm::Expected<TuningTable> TuningTable::load(StringRef path) {
  auto file = flash::readTextFile(path);
  if (!file)
    return createStringError(formatv("cannot read the tuning file '{0}': {1}",
                                     path, llvm::toString(file.takeError())));
  return parse((*file)->getBuffer(), path);
}

const TuningEntry *TuningTable::find(const TuningKey &key) const {
  auto found = llvm::find_if(
      entries, [&](const TuningEntry &entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

void TuningTable::insert(TuningEntry entry) {
  if (const TuningEntry *found = find(entry.key))
    entries[found - entries.data()] = std::move(entry);
  else
    entries.push_back(std::move(entry));
}

template <typename T> static json::Value orNull(const std::optional<T> &value) {
  return value ? json::Value(*value) : json::Value(nullptr);
}

void TuningTable::print(llvm::raw_ostream &os) const {
  for (const TuningEntry &entry : entries) {
    const TuningKey &key = entry.key;
    json::OStream line(os);
    // Not an `Object`, which would sort the keys.
    line.object([&] {
      line.attribute("device", key.device);
      line.attribute("target", key.target);
      line.attribute("dtype", key.dtype);
      line.attribute("head_dim", key.headDim);
      line.attribute("value_dim", key.valueDim);
      line.attribute("mask", key.mask);
      line.attribute("score", key.hasScore);
      line.attribute("lengths", key.hasLengths);
      if (key.isGradient)
        line.attribute("gradients", true);
      if (key.sumsByDistance)
        line.attribute("sums_by_distance", true);
      line.attribute("queries", orNull(key.queries));
      line.attribute("keys", orNull(key.keys));
      line.attribute("keys_per_query", orNull(key.keysPerQuery));
      line.attribute("blocks",
                     key.hasFewBlocks
                         ? json::Value(*key.hasFewBlocks ? "few" : "many")
                         : json::Value(nullptr));
      line.attributeObject("schedule", [&] {
        entry.schedule.forEach([&](StringRef name, StringRef value) {
          int64_t number;
          if (value.getAsInteger(10, number))
            line.attribute(name, value);
          else
            line.attribute(name, number);
        });
      });
      for (auto [name, seconds] :
           {std::pair("ms", entry.seconds),
            std::pair("default_ms", entry.defaultSeconds)}) {
        line.attributeBegin(name);
        // More digits than that are noise.
        line.rawValue([&, value = seconds](llvm::raw_ostream &os) {
          os << llvm::format("%.4g", value * 1e3);
        });
        line.attributeEnd();
      }
    });
    os << "\n";
  }
}

std::vector<std::string> TuningTable::getDevices() const {
  std::vector<std::string> devices;
  for (const TuningEntry &entry : entries)
    if (!llvm::is_contained(devices, entry.key.device))
      devices.push_back(entry.key.device);
  return devices;
}
