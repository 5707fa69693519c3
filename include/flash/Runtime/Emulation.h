//===- Emulation.h - Rings of block programs on the CPU ---------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `tile-emulate` makes a program call: the rings of each block, which
// check that their stages are used in the order that the tile dialect
// prescribes. No dependency on LLVM.
//
// `where` is the name and location of an operation, for messages; it must
// outlive the block.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_EMULATION_H
#define FLASH_RUNTIME_EMULATION_H

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace flash::emulation {

/// Rows in global memory, each contiguous. Rows from `rows` on do not exist.
struct TileSource {
  const void *data;
  int64_t rowStride; ///< In bytes.
  int64_t rows;
  /// If rows are packed, so many are `packedStride` apart, and `rowStride` is
  /// the distance to the next as many.
  int64_t packed = 1, packedStride = 0;
};

/// A tile in memory, row after row.
struct TileStorage {
  void *data;
  int64_t rows, rowBytes;
};

/// Fills the tile; rows that do not exist become zero.
void copyTile(const TileStorage &destination, const TileSource &source);

/// The right to read the tile of one step of a ring, until its release.
using Lease = int64_t;

/// Something that a role did, with its numbers by their names: what it does to
/// a step of a ring, or an operation that reads one. Of blocks without roles
/// `role` is empty.
struct Event {
  const char *kind;
  std::string role, where;
  std::vector<std::pair<const char *, int64_t>> numbers;
  const void *source = nullptr; ///< Of a copy.
};

/// From now on, what the block of number 0 does is recorded for every launch.
void startRecording();
/// What was recorded, in an order in which it may have happened.
std::vector<Event> stopRecording();

/// The rings of one thread block, which its roles (concurrent parts) share.
/// Functions that return false, or a lease of 0, have failed: the role has to
/// stop, as have all others, whose calls then fail too.
class Block {
public:
  /// `number` is the index of the block in its grid.
  explicit Block(int64_t number);

  /// Adds a ring of `stages` tiles, which lie one after the other from `first`
  /// on, and returns its number. A stage is free when as many `readers` have
  /// released it, and full when as many `copies` have filled a part each.
  int64_t addRing(const TileStorage &first, int64_t stages, const char *where,
                  int64_t readers = 1, int64_t copies = 1);

  /// Waits until the stage of the step is free.
  bool acquire(int64_t ring, int64_t step, const char *where);
  /// Records the copy, which `wait` carries out.
  bool copy(int64_t ring, int64_t step, const TileSource &source,
            const char *where, int64_t part = 0);
  /// Before and after the caller itself writes the stage of the step.
  bool startPut(int64_t ring, int64_t step, const char *where);
  bool endPut(int64_t ring, int64_t step, const char *where);
  /// Waits until the copy of the step has been started, and completes it.
  Lease wait(int64_t ring, int64_t step, const char *where);
  /// Says that the tile of the step, which has been waited for, was checked.
  bool setChecked(int64_t ring, int64_t step, const char *where);
  /// Waits until it was.
  Lease waitChecked(int64_t ring, int64_t step, const char *where);
  /// Frees the stage and overwrites it.
  bool release(int64_t ring, int64_t step, const char *where);
  /// Records an operation that changes no ring, and reads a tile of this lease.
  void note(Lease lease, const char *where);

  /// Whether the tile may still be read. Lease 0 is of no ring, and always
  /// good.
  bool checkLease(Lease lease, const char *where);
  /// Whether indices first .. first + count - 1 exist in a dimension.
  bool checkRange(int64_t first, int64_t count, int64_t dimension, int64_t size,
                  const char *where);

  /// Whether a block of this `rank` may add when so many others have added.
  bool checkRank(int64_t rank, int64_t count, const char *where);

  /// The number of the tile that the block takes as its `step`-th, for all of
  /// its roles: the next count, which is one more then.
  int64_t claim(int64_t step, int32_t &count);

  /// From now on there are so many roles.
  void startRoles(unsigned count);
  /// The calling thread is this role until it ends.
  void enterRole(const char *name, int64_t warps, int64_t registers);
  /// Ends one of the roles.
  bool finishRole();
  /// Ends the block: all stages must be free.
  bool finish();

  /// The message of the first failure.
  const char *getFailure() const { return failure.c_str(); }

private:
  enum class State { Free, Acquired, Putting, Filling, Full };
  struct Stage {
    State state = State::Free;
    /// The step whose tile is in the stage or, if it is free, will be next.
    int64_t step;
    TileStorage storage;
    /// The source of each part that has been copied and not been waited for.
    std::vector<std::optional<TileSource>> sources;
    bool isChecked = false;
    int64_t releases = 0;
  };
  struct Ring {
    std::vector<Stage> stages;
    const char *where;
    int64_t readers;
  };

  /// The stage of a step; null, with a message, if there cannot be one.
  Stage *find(int64_t ring, int64_t step, const char *where);
  void record(const char *kind, const char *where,
              std::initializer_list<std::pair<const char *, int64_t>> numbers,
              const void *source = nullptr) const;
  /// The stage of a step that has been acquired and not been filled yet.
  Stage *findAcquired(int64_t ring, int64_t step, const char *where);
  std::string describe(int64_t ring, int64_t step) const;
  /// Waits until the stage has the step's tile and `condition` holds.
  template <typename Condition>
  Lease waitForTile(int64_t ring, int64_t step, const char *where,
                    Condition condition, const char *missing);
  bool fail(const std::string &message);
  bool fail(const char *where, const std::string &message);
  bool deadlock();
  /// Wakes waiting roles, since something has changed.
  void notify();
  /// Waits until `condition` holds. If nobody is left who could make it so,
  /// that is a failure, which `message` explains.
  template <typename Condition>
  bool waitUntil(std::unique_lock<std::mutex> &lock, Condition condition,
                 const char *where, const std::string &message);

  const int64_t number;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Ring> rings;
  std::vector<int64_t> claimed; ///< Of each step so far.
  std::string failure;
  unsigned roles = 1, running = 1; ///< All, and those that have not ended.
  /// Why roles wait, of those that have looked at the state since it changed.
  std::vector<std::string> waiting;
  uint64_t changes = 0;
};

} // namespace flash::emulation

extern "C" {

/// The functions of `Block` for compiled programs. Pointers to memory are
/// integers, since that is how MLIR hands them out. A failure abandons the
/// running kernel.
void *flash_emulation_begin(int64_t number);
void flash_emulation_end(void *block);
void flash_emulation_start_roles(void *block, int64_t count);
void flash_emulation_enter_role(void *block, int64_t warps, int64_t registers,
                                const char *name);
void flash_emulation_finish_role(void *block);
int64_t flash_emulation_ring(void *block, int64_t storage, int64_t stages,
                             int64_t rows, int64_t rowBytes, int64_t readers,
                             int64_t copies, const char *where);
void flash_emulation_acquire(void *block, int64_t ring, int64_t step,
                             const char *where);
void flash_emulation_copy_async(void *block, int64_t ring, int64_t step,
                                int64_t part, int64_t source, int64_t rowStride,
                                int64_t rows, int64_t packed,
                                int64_t packedStride, const char *where);
void flash_emulation_start_put(void *block, int64_t ring, int64_t step,
                               const char *where);
void flash_emulation_end_put(void *block, int64_t ring, int64_t step,
                             const char *where);
int64_t flash_emulation_wait(void *block, int64_t ring, int64_t step,
                             const char *where);
void flash_emulation_set_checked(void *block, int64_t ring, int64_t step,
                                 const char *where);
int64_t flash_emulation_wait_checked(void *block, int64_t ring, int64_t step,
                                     const char *where);
void flash_emulation_release(void *block, int64_t ring, int64_t step,
                             const char *where);
void flash_emulation_check_lease(void *block, int64_t lease, const char *where);
void flash_emulation_note(void *block, int64_t lease, const char *where);
void flash_emulation_check_range(void *block, int64_t first, int64_t count,
                                 int64_t dimension, int64_t size,
                                 const char *where);
int64_t flash_emulation_claim(void *block, int64_t step, int64_t count,
                              const char *where);
void flash_emulation_check_rank(void *block, int64_t rank, int64_t count,
                                const char *where);
void flash_emulation_fetch(int64_t destination, int64_t tileRows,
                           int64_t rowBytes, int64_t source, int64_t rowStride,
                           int64_t rows, int64_t packed, int64_t packedStride);

} // extern "C"

#endif // FLASH_RUNTIME_EMULATION_H
