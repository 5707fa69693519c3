//===- TuningTable.h - Schedules that were measured to be best --*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tuning file has a JSON object in each line (docs/tuning.md).
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SCHEDULE_TUNINGTABLE_H
#define FLASH_SCHEDULE_TUNINGTABLE_H

#include "flash/Machine/Machine.h"
#include "flash/Schedule/Problem.h"
#include "flash/Schedule/Schedule.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace flash {

/// The class of programs that a measured schedule is for.
struct TuningKey {
  std::string device, target, dtype, mask;
  int64_t headDim = 0, valueDim = 0;
  bool hasScore = false, hasLengths = false, isGradient = false;
  /// For gradients, see Problem.
  bool sumsByDistance = false;
  /// Least powers of two, from 128, that are not exceeded; none for sizes that
  /// are known at run time only.
  std::optional<int64_t> queries, keys;
  /// The least power of two, from 32, that no query's number of keys exceeds: a
  /// window of 64 is not one of 4096.
  std::optional<int64_t> keysPerQuery;
  /// Whether tiles of 128 queries are fewer than the multiprocessors.
  std::optional<bool> hasFewBlocks;

  static TuningKey get(const Problem &problem, const Machine &target,
                       llvm::StringRef device);

  bool operator==(const TuningKey &other) const;
};

struct TuningEntry {
  TuningKey key;
  Schedule schedule;
  /// What was measured, and what the model's schedule took.
  double seconds = 0, defaultSeconds = 0;
  /// In the file, from 1.
  unsigned line = 0;
};

class TuningTable {
public:
  /// Errors name the line: "NAME:3: ...".
  static llvm::Expected<TuningTable> parse(llvm::StringRef text,
                                           llvm::StringRef name);
  static llvm::Expected<TuningTable> load(llvm::StringRef path);
  /// What is compiled in.
  static const TuningTable &getShipped();

  const TuningEntry *find(const TuningKey &key) const;
  /// Replaces the entry of the same key.
  void insert(TuningEntry entry);
  void print(llvm::raw_ostream &os) const;

  /// The devices of all entries, each once.
  std::vector<std::string> getDevices() const;

private:
  std::vector<TuningEntry> entries;
};

} // namespace flash

#endif // FLASH_SCHEDULE_TUNINGTABLE_H
