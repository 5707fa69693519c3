//===- Schedule.h - How an attention is cut into tiles ----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The keys of a schedule, and how they are read, checked, merged and printed.
// `#flash.schedule`, flash-run's `--schedule`, the option of
// flash-select-schedule and the tuning files all use this code.
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

/// What a schedule belongs to: an attention, all kernels of its gradients, or
/// one kernel at level 1 and below.
enum class ScheduleOwner : uint8_t { Attention = 1, Gradients = 2, Kernel = 4 };

/// The largest value of `split_ctas`.
constexpr int64_t mostSplitCtas = 65536;

/// The values of the keys. A key without a value is left to the compiler. The
/// documentation of #flash.schedule says what each key means.
struct Schedule {
  /// Values of the key `products`. Gradients are computed either by separate
  /// programs, one over tiles of queries and one over tiles of keys, which both
  /// compute the scores, or by one program. Separate programs compute seven
  /// products, or eight with `keyPrograms = 2`.
  static constexpr int64_t separatePrograms = 7, oneProgram = 5;

  std::optional<int64_t> queryTile, keyTile, queryStep, keyStep, products,
      keyPrograms, packedHeads, valueColumns, warps, stages, queryStages,
      keyProgramStages, ctasPerSm;
  std::optional<ScheduleFeatures> features;
  /// The features that are taken away from the proposed ones, where `features`
  /// itself has no value.
  ScheduleFeatures leftOut = ScheduleFeatures::None;
  std::optional<int64_t> blockMap, numSplits, splitCtas, splitKeys;

  bool isEmpty() const { return *this == Schedule(); }
  /// For gradients: how many queries the program over tiles of keys visits at a
  /// time, and how many keys the program over tiles of queries visits.
  /// `queryTile` and `keyTile` must have values, as for `getQueriesOfTile`.
  int64_t getQueryStep() const { return queryStep.value_or(*queryTile); }
  int64_t getKeyStep() const { return keyStep.value_or(*keyTile); }
  /// Whether gradients are one program over tiles of keys, with five products.
  bool isFused() const { return products == oneProgram; }
  /// How many query heads share a tile of queries, which then has
  /// `getQueriesOfTile` queries of each.
  int64_t getPackedHeads() const { return packedHeads.value_or(1); }
  int64_t getQueriesOfTile() const { return *queryTile / getPackedHeads(); }
  /// Whether a key has a value that only block programs understand.
  bool isOfBlocks() const;
  /// Whether `features` has a value that contains any of `feature`.
  bool has(ScheduleFeatures feature) const {
    return features && bitEnumContainsAny(*features, feature);
  }
  /// Whether two warpgroups that divide the columns of values alternate between
  /// tiles of keys.
  bool alternatesTiles() const {
    return has(ScheduleFeatures::DivideColumns) &&
           has(ScheduleFeatures::PingPong);
  }
  /// Whether warps have roles. Every feature implies this.
  bool hasRoles() const {
    return features.value_or(ScheduleFeatures::None) != ScheduleFeatures::None;
  }
  /// Whether gradients are one program whose blocks run at the same time and
  /// add to the gradients of queries in a fixed order. Without roles, such a
  /// program is over heads of keys, and adds in place.
  bool addsInOrder() const {
    return isFused() && has(ScheduleFeatures::SpecializeWarps);
  }

  /// Reads the value of a key, such as "64" for "query_tile" and
  /// "specialize_warps|overlap" or "-overlap" for "features". Returns an error
  /// message if the key is unknown, if it has a value already, or if the value
  /// is malformed or out of range; otherwise an empty string.
  std::string set(llvm::StringRef key, llvm::StringRef value);
  /// Returns an error message if a value is out of range or if two values
  /// exclude each other; otherwise an empty string.
  std::string findFault() const;
  /// Returns an error message that names a key which `owner` does not have, and
  /// the keys that it has, or features that do nothing in its programs; empty
  /// if `owner` has all keys with values, and the features.
  std::string findForeignKey(ScheduleOwner owner) const;
  /// A copy that keeps the values of the keys which a kernel has.
  Schedule ofKernel() const;
  /// Reads a text such as "query_tile=64,key_tile=128"; an empty text is an
  /// empty schedule. Fails where `set` or `findFault` does.
  static llvm::Expected<Schedule> parse(llvm::StringRef text);

  /// Whether this schedule, where only some keys have values, may be
  /// completed by one that was measured: it says nothing else of the tiles and
  /// of whether warps have roles.
  bool agreesWith(const Schedule &measured) const;
  /// How far the tiles of queries and of keys are from the ones of `other`, in
  /// powers of two. Schedules are 1 further apart if warps of one have roles,
  /// and of the other not. Both must have tiles.
  double getDistanceTo(const Schedule &other) const;
  /// This schedule, in which keys without a value have the values of `lower`.
  /// Keys that depend on the tiles (value_columns, warps, stages, query_stages,
  /// key_program_stages, ctas_per_sm) are taken only if the tiles are the same.
  /// None of `num_splits`, `split_ctas` and `split_keys` is taken if this
  /// schedule has one of them.
  Schedule over(const Schedule &lower) const;

  /// Calls `visit` with each key that has a value, in the order of the
  /// attribute.
  void
  forEach(llvm::function_ref<void(llvm::StringRef key, llvm::StringRef value)>
              visit) const;
  /// The text that `parse` reads as this schedule.
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

/// The attribute `flash.schedule` of a parallel loop over tiles or of a kernel;
/// an empty schedule if there is no such attribute.
Schedule getSchedule(mlir::Operation *op);

/// Sets the attribute `flash.schedule` of a loop or a kernel. An empty schedule
/// removes it.
void setSchedule(mlir::Operation *op, const Schedule &schedule);

/// The number of warps that share a tile of queries where no schedule says: one
/// for each 16 queries, up to four. More warps would share the tiles of keys in
/// shared memory, but each of them would read all of these tiles.
int64_t getDefaultWarps(int64_t queryTile);

} // namespace flash

#endif // FLASH_SCHEDULE_SCHEDULE_H
