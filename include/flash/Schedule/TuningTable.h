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

/// The class of programs for which a measured schedule is used.
struct TuningKey {
  /// The name of the device, such as "NVIDIA H200", and of the target, such as
  /// "sm_90a"; `Problem::precision` and `Problem::mask`.
  std::string device, target, dtype, mask;
  int64_t headDim = 0, valueDim = 0;
  bool hasScore = false, hasLengths = false, isGradient = false;
  /// `Problem::sumsByDistance`.
  bool sumsByDistance = false;
  /// The numbers of queries and keys, each rounded up to a power of two that is
  /// at least 128. None for numbers that are known at run time only.
  std::optional<int64_t> queries, keys;
  /// `Problem::mostKeysPerQuery`, rounded up to a power of two that is at least
  /// 32; none if it is not known. It distinguishes a sliding window of 64 keys
  /// from one of 4096.
  std::optional<int64_t> keysPerQuery;
  /// Whether all heads together have fewer tiles of 128 queries than the GPU
  /// has multiprocessors. For a CPU, the default GPU is used. None if the
  /// number of tiles is not known.
  std::optional<bool> hasFewBlocks;

  /// The class of a program for `target` on the device of this name.
  static TuningKey get(const Problem &problem, const Machine &target,
                       llvm::StringRef device);

  bool operator==(const TuningKey &other) const;
};

/// A measured schedule, a line of a tuning file.
struct TuningEntry {
  TuningKey key;
  Schedule schedule;
  /// The seconds that a run of the program took in the median, with `schedule`
  /// and with the model's schedule.
  double seconds = 0, defaultSeconds = 0;
  /// The number of the line in the file, from 1; 0 if the entry was not read
  /// from a file.
  unsigned line = 0;
};

/// Measured schedules, at most one for each class of programs.
class TuningTable {
public:
  /// Reads the lines of a tuning file; empty lines are ignored. It is an error
  /// if a line is no object with the keys of an entry, or if two lines are for
  /// the same class of programs. Messages begin with `name` and the number of
  /// the line, as in "NAME:3: ...".
  static llvm::Expected<TuningTable> parse(llvm::StringRef text,
                                           llvm::StringRef name);
  /// Reads a tuning file.
  static llvm::Expected<TuningTable> load(llvm::StringRef path);

  /// The entry of a class of programs; null if there is none. The pointer is
  /// valid until an entry is inserted.
  const TuningEntry *find(const TuningKey &key) const;
  /// Adds an entry. It replaces the entry of the same class of programs, if
  /// there is one.
  void insert(TuningEntry entry);
  /// Prints the table as `parse` reads it, with times of four digits.
  void print(llvm::raw_ostream &os) const;

  /// The devices of all entries, each once.
  std::vector<std::string> getDevices() const;

private:
  std::vector<TuningEntry> entries;
};

} // namespace flash

#endif // FLASH_SCHEDULE_TUNINGTABLE_H
