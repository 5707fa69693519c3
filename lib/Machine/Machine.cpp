//===- Machine.cpp - What a machine can do --------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Machine/Machine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <type_traits>

using namespace flash;
using llvm::formatv;
using llvm::StringLiteral;
using llvm::StringRef;

namespace {
/// A key of `#flash.target`: a number, or a word for each value.
struct Key {
  StringLiteral name;
  int64_t least, most;
  int64_t (*get)(const Machine &);
  void (*set)(Machine &, int64_t);
  llvm::ArrayRef<StringLiteral> words = {};
  /// Whether it says which instructions there are: a chip has no more than its
  /// description says.
  bool isOfChip = false;
};
} // namespace

static constexpr StringLiteral productWords[] = {"none", "m16n8k8", "m16n8k16",
                                                 "warpgroup"};
static constexpr StringLiteral copyWords[] = {"loads", "async", "bulk"};

template <auto Member>
static constexpr Key makeKey(StringLiteral name, int64_t least, int64_t most,
                             llvm::ArrayRef<StringLiteral> words = {},
                             bool isOfChip = false) {
  return {name,
          least,
          most,
          [](const Machine &machine) {
            return static_cast<int64_t>(machine.*Member);
          },
          [](Machine &machine, int64_t value) {
            using Value = std::decay_t<decltype(machine.*Member)>;
            machine.*Member = static_cast<Value>(value);
          },
          words,
          isOfChip};
}

/// A multiprocessor has more than any GPU so far with this many.
static constexpr int64_t mostRegisters = 1 << 20, mostSharedBytes = 1 << 20;

static const Key keys[] = {
    makeKey<&Machine::multiprocessors>("multiprocessors", 1,
                                       mostMultiprocessors),
    makeKey<&Machine::registers>("registers", 1, mostRegisters),
    makeKey<&Machine::registersPerThread>("registers_per_thread", 1, 255),
    makeKey<&Machine::sharedBytesPerBlock>("shared_bytes_per_block", 1,
                                           mostSharedBytes),
    makeKey<&Machine::portableSharedBytesPerBlock>(
        "portable_shared_bytes_per_block", 1, mostSharedBytes),
    makeKey<&Machine::reservedSharedBytesPerBlock>(
        "reserved_shared_bytes_per_block", 0, mostSharedBytes),
    makeKey<&Machine::products>("products", 0, std::size(productWords) - 1,
                                productWords, /*isOfChip=*/true),
    makeKey<&Machine::copies>("copies", 0, std::size(copyWords) - 1, copyWords,
                              /*isOfChip=*/true),
    makeKey<&Machine::convertsE4M3>("converts_e4m3", 0, 1, {},
                                    /*isOfChip=*/true),
    makeKey<&Machine::hasDependentLaunches>("dependent_launches", 0, 1, {},
                                            /*isOfChip=*/true),
};

static std::string getText(const Key &key, int64_t value) {
  return key.words.empty() ? llvm::itostr(value)
                           : std::string(key.words[value]);
}

std::string Machine::set(StringRef key, StringRef value) {
  if (!isGpu())
    return formatv("the target {0} has no keys; GPUs have", name);
  const Key *known =
      llvm::find_if(keys, [&](const Key &k) { return k.name == key; });
  if (known == std::end(keys))
    return formatv(
        "unknown key '{0}'; the keys are {1}", key,
        llvm::join(llvm::map_range(keys, [](const Key &k) { return k.name; }),
                   ", "));
  int64_t number;
  if (!known->words.empty()) {
    const StringLiteral *word = llvm::find(known->words, value);
    if (word == known->words.end())
      return formatv("{0} is one of {1}; got {2}", key,
                     llvm::join(known->words, ", "), value);
    number = word - known->words.begin();
  } else if (value.getAsInteger(10, number) || number < known->least ||
             number > known->most) {
    return formatv("{0} must be from {1} to {2}, got {3}", key, known->least,
                   known->most, value);
  }
  // A name is that of a description.
  int64_t most = known->get(*findMachine(name));
  if (known->isOfChip && number > most)
    return formatv("{0} must be at most {1} for {2}, whose chip lacks the "
                   "instructions, got {3}",
                   key, getText(*known, most), name, value);
  known->set(*this, number);
  return "";
}

void Machine::forEach(
    llvm::function_ref<void(StringRef, StringRef)> call) const {
  for (const Key &key : keys)
    call(key.name, getText(key, key.get(*this)));
}

std::string Machine::findProductFault(StringRef element) const {
  if (!isGpu() || products >= MatrixProducts::M16N8K16)
    return "";
  if (products == MatrixProducts::None)
    return formatv("the target {0} has no products of matrices; use cpu", name);
  if (element == "f16")
    return "";
  return formatv("the tensor cores of {0} multiply f16, and not {1}; use f16, "
                 "the target sm_80 or later, or cpu",
                 name, element);
}

bool Machine::operator==(const Machine &other) const {
  return name == other.name && llvm::all_of(keys, [&](const Key &key) {
           return key.get(*this) == key.get(other);
         });
}

llvm::hash_code flash::hash_value(const Machine &machine) {
  llvm::hash_code code = llvm::hash_value(machine.name);
  for (const Key &key : keys)
    code = llvm::hash_combine(code, key.get(machine));
  return code;
}

llvm::ArrayRef<Machine> flash::getGpus() {
  return getMachines().drop_until(
      [](const Machine &machine) { return machine.isGpu(); });
}

const Machine *flash::findMachine(StringRef name) {
  const Machine *found = llvm::find_if(
      getMachines(), [&](const Machine &m) { return m.name == name; });
  return found == getMachines().end() ? nullptr : found;
}

const Machine &flash::getCpu() { return *findMachine("cpu"); }

const Machine &flash::getDefaultGpu() { return *findMachine("sm_90a"); }

const Machine *flash::findNearestGpu(int64_t computeCapability,
                                     int64_t sharedBytesPerBlock) {
  const Machine *nearest = nullptr;
  for (const Machine &gpu : getGpus()) {
    if (gpu.computeCapability == computeCapability)
      return &gpu;
    if (gpu.isPortable && gpu.computeCapability < computeCapability &&
        gpu.sharedBytesPerBlock <= sharedBytesPerBlock &&
        (!nearest || gpu.sharedBytesPerBlock >= nearest->sharedBytesPerBlock))
      nearest = &gpu;
  }
  return nearest;
}

static std::string list(llvm::ArrayRef<Machine> machines) {
  auto names = llvm::map_range(machines.drop_back(),
                               [](const Machine &m) { return m.name; });
  return (llvm::join(names, ", ") + " and " + machines.back().name).str();
}

std::string flash::listMachines() { return list(getMachines()); }

std::string flash::listGpus() { return list(getGpus()); }
