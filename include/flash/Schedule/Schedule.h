//===- Schedule.h - How an attention is cut into tiles ----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The only code that knows the keys of a schedule: how they are read, checked,
// merged and printed. `#flash.schedule`, flash-run's `--schedule`, the option
// of flash-select-schedule and the tuning files are made of it.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SCHEDULE_SCHEDULE_H
#define FLASH_SCHEDULE_SCHEDULE_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/Operation.h"
#include "llvm/Support/Error.h"

#include "flash/Schedule/ScheduleEnums.h.inc"

namespace flash {

/// What a schedule is of: an attention, all kernels of its gradients, or one
/// kernel at level 1 and below.
enum class ScheduleOwner : uint8_t { Attention = 1, Gradients = 2, Kernel = 4 };

/// The most that `split_ctas` may be.
constexpr int64_t mostSplitCtas = 65536;

/// The values of the keys; absent where nobody says. #flash.schedule documents
/// what they mean.
struct Schedule {
  /// Values of the key `products`: separate programs of gradients over queries
  /// and over keys, which both compute scores, or one program. Separate
  /// programs have seven products, and eight with `keyPrograms = 2`.
  static constexpr int64_t separatePrograms = 7, oneProgram = 5;

  std::optional<int64_t> queryTile, keyTile, queryStep, keyStep, products,
      keyPrograms, packedHeads, valueColumns, warps, stages, queryStages,
      keyProgramStages, ctasPerSm;
  std::optional<ScheduleFeatures> features;
  /// What the features are without, where `features` is left to others.
  ScheduleFeatures leftOut = ScheduleFeatures::None;
  std::optional<int64_t> blockMap, numSplits, splitCtas, splitKeys;

  bool isEmpty() const { return *this == Schedule(); }
  /// For gradients, the queries that the program over tiles of keys visits at a
  /// time, and the keys that the program over tiles of queries visits.
  int64_t getQueryStep() const { return queryStep.value_or(*queryTile); }
  int64_t getKeyStep() const { return keyStep.value_or(*keyTile); }
  /// Whether gradients are one program over tiles of keys, with five products.
  bool isFused() const { return products == oneProgram; }
  /// How many query heads share a tile, which then has so many queries of each.
  int64_t getPackedHeads() const { return packedHeads.value_or(1); }
  int64_t getQueriesOfTile() const { return *queryTile / getPackedHeads(); }
  /// Whether it says what only block programs have.
  bool isOfBlocks() const;
  /// Whether it has any of `feature`.
  bool has(ScheduleFeatures feature) const {
    return features && bitEnumContainsAny(*features, feature);
  }
  /// Whether warps have roles, and with that any feature.
  bool hasRoles() const {
    return features.value_or(ScheduleFeatures::None) != ScheduleFeatures::None;
  }
  /// Whether blocks of that one program add to the gradients of queries in
  /// order; without roles, one unit after the other adds in place.
  bool addsInOrder() const {
    return isFused() && has(ScheduleFeatures::SpecializeWarps);
  }

  /// Reads the value of a key, such as "64" for "query_tile" and
  /// "specialize_warps|overlap" or "-overlap" for "features". Returns what is
  /// wrong with the key or its value; empty if nothing is.
  std::string set(llvm::StringRef key, llvm::StringRef value);
  /// What is wrong with the values; empty if nothing is.
  std::string findFault() const;
  /// Says which key is not one of `owner`'s, and which are; empty if all are.
  std::string findForeignKey(ScheduleOwner owner) const;
  /// The keys that one kernel has.
  Schedule ofKernel() const;
  /// Reads "query_tile=64,key_tile=128"; nothing of an empty text.
  static llvm::Expected<Schedule> parse(llvm::StringRef text);

  /// This schedule, with what it leaves out taken from `lower`. Keys that
  /// follow from the tiles (warps, stages, query_stages, key_program_stages,
  /// ctas_per_sm) are taken only if the tiles are the same; `num_splits`,
  /// `split_ctas` and `split_keys` exclude each other.
  Schedule over(const Schedule &lower) const;

  /// Calls `visit` with each key that has a value, in the order of the
  /// attribute.
  void
  forEach(llvm::function_ref<void(llvm::StringRef key, llvm::StringRef value)>
              visit) const;
  /// As `parse` reads it.
  std::string str() const;

  bool operator==(const Schedule &other) const;
};

llvm::hash_code hash_value(const Schedule &schedule);

namespace detail {
struct ScheduleAttrStorage : mlir::AttributeStorage {
  using KeyTy = Schedule;

  explicit ScheduleAttrStorage(const Schedule &value) : value(value) {}
  bool operator==(const KeyTy &key) const { return value == key; }
  static llvm::hash_code hashKey(const KeyTy &key) { return hash_value(key); }
  static ScheduleAttrStorage *
  construct(mlir::AttributeStorageAllocator &allocator, const KeyTy &key) {
    return new (allocator.allocate<ScheduleAttrStorage>())
        ScheduleAttrStorage(key);
  }

  Schedule value;
};
} // namespace detail

} // namespace flash

#define GET_ATTRDEF_CLASSES
#include "flash/Schedule/ScheduleAttr.h.inc"

namespace flash {

/// The schedule of a parallel loop over tiles or of a kernel, its attribute
/// `flash.schedule`; an empty one if it has none.
Schedule getSchedule(mlir::Operation *op);

/// Gives a loop or kernel the attribute; none if the schedule is empty.
void setSchedule(mlir::Operation *op, const Schedule &schedule);

/// The warps that share a tile of queries where no schedule says: as many as it
/// has groups of 16, up to four. More would share the tiles of keys in shared
/// memory, but each reads all of them.
int64_t getDefaultWarps(int64_t queryTile);

} // namespace flash

#endif // FLASH_SCHEDULE_SCHEDULE_H
