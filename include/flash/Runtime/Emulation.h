//===- Emulation.h - Rings of block programs on the CPU ---------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs that the pass `tile-emulate` has changed call these functions. They
// execute the rings of each thread block, and check that stages are used in the
// order that the tile dialect prescribes. This file does not depend on LLVM.
//
// The parameter `where` of many functions is the name and location of an
// operation, for messages and events. It must live as long as the block.
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

/// Rows in global memory, each of them contiguous.
struct TileSource {
  const void *data;
  /// The bytes from the start of a row to the start of the next row, or of the
  /// next group of `packed` rows.
  int64_t rowStride;
  /// The number of rows that exist.
  int64_t rows;
  /// For packed GQA: the number of rows of a group, and the bytes from one row
  /// of the group to the next. Row r is row r % packed of the group r / packed.
  int64_t packed = 1, packedStride = 0;
};

/// A tile in memory: `rows` rows of `rowBytes` bytes, one after the other.
struct TileStorage {
  void *data;
  int64_t rows, rowBytes;
};

/// Copies the rows of `source` to the tile. Rows of the tile that do not exist
/// in `source` become zero.
void copyTile(const TileStorage &destination, const TileSource &source);

/// The right to read the tile of one step of a ring, until the stage is
/// released. 0 stands for no ring.
using Lease = int64_t;

/// An action of a role: a change of the stage of a step, an operation that
/// reads a tile, or the start of the role.
struct Event {
  /// "ring", "role", "acquire", "copy", "put", "wait", "check", "release", or
  /// "do" for other operations.
  const char *kind;
  /// The name of the role is empty in blocks without roles.
  std::string role, where;
  /// Numbers with their names. The first one is the number of the launch,
  /// "launch", from 0.
  std::vector<std::pair<const char *, int64_t>> numbers;
  /// The memory from which a "copy" copies.
  const void *source = nullptr;
};

/// Starts to record the events of block 0 of each launch, and drops events that
/// were recorded before.
void startRecording();
/// Ends the recording. Returns the events in an order in which they may have
/// happened. May be called once for each `startRecording`.
std::vector<Event> stopRecording();

/// The rings of one thread block. Its roles, which run on threads of their own,
/// share the object and may call its functions at the same time. A function
/// that returns false, or a lease of 0, has failed. The role then has to stop.
/// All other roles have to stop, too: their calls fail from then on.
class Block {
public:
  /// `number` is the index of the block in its grid.
  explicit Block(int64_t number);

  /// Adds a ring of `stages` tiles, and returns its number, from 0. The tiles
  /// are contiguous in memory, one after the other, and `first` is the first of
  /// them. A stage becomes free when `readers` roles have released it, and full
  /// when each of `copies` copies has filled its part: an equal number of its
  /// rows.
  int64_t addRing(const TileStorage &first, int64_t stages, const char *where,
                  int64_t readers = 1, int64_t copies = 1);

  /// Waits until the stage of the step is free, and takes it. Fails if the step
  /// was acquired before, or if no role is left that could release the stage.
  bool acquire(int64_t ring, int64_t step, const char *where);
  /// Starts the copy of a part of the tile of a step that was acquired. `wait`
  /// carries it out, so `source` must stay valid until then. `part` is from 0
  /// to below the number of copies of the ring.
  bool copy(int64_t ring, int64_t step, const TileSource &source,
            const char *where, int64_t part = 0);
  /// To be called before and after the caller itself writes the tile of a step
  /// that was acquired.
  bool startPut(int64_t ring, int64_t step, const char *where);
  bool endPut(int64_t ring, int64_t step, const char *where);
  /// Waits until all copies of the step were started, or until `endPut`, and
  /// carries the copies out. Fails if the step was released before, or if no
  /// role is left that could fill the stage.
  Lease wait(int64_t ring, int64_t step, const char *where);
  /// Marks the tile of the step as checked. The stage must be full, that is, a
  /// role must have waited for it.
  bool setChecked(int64_t ring, int64_t step, const char *where);
  /// As `wait`, but until the tile is marked as checked.
  Lease waitChecked(int64_t ring, int64_t step, const char *where);
  /// Releases the stage of the step, which must be full. When all readers of
  /// the ring have done so, the stage is free for the step after all other
  /// stages, and its bytes are overwritten with 0xFF.
  bool release(int64_t ring, int64_t step, const char *where);
  /// Records an operation that changes no ring. It reads the tile of `lease`; a
  /// lease of 0 stands for no tile.
  void note(Lease lease, const char *where);

  /// Whether the tile of the lease may still be read. True for a lease of 0.
  bool checkLease(Lease lease, const char *where);
  /// Whether the indices from `first` to first + count - 1 exist in dimension
  /// `dimension`, which has `size` elements. True if `count` is not positive.
  bool checkRange(int64_t first, int64_t count, int64_t dimension, int64_t size,
                  const char *where);

  /// For ordered additions: whether a block of rank `rank` may add, after
  /// `count` other blocks have added. Both numbers must be equal.
  bool checkRank(int64_t rank, int64_t count, const char *where);

  /// The number of the tile that the block processes in its step `step`, from
  /// 0. The first role that calls this for a step takes the value of `count`,
  /// which all blocks share, and increments it. The other roles get the same
  /// number.
  int64_t claim(int64_t step, int32_t &count);

  /// Says that the block has `count` roles from now on. All of them run at the
  /// same time.
  void startRoles(unsigned count);
  /// Says that the calling thread executes the role `name`, until `finishRole`.
  /// `name` must live that long. `warps` and `registers`, of a thread, are only
  /// recorded.
  void enterRole(const char *name, int64_t warps, int64_t registers);
  /// Ends the role of the calling thread. Fails if all other roles that have
  /// not ended wait, since none of them can continue.
  bool finishRole();
  /// Ends the block. Fails if a stage is not free.
  bool finish();

  /// The message of the failure after which functions fail; empty if there was
  /// none.
  const char *getFailure() const { return failure.c_str(); }

private:
  enum class State { Free, Acquired, Putting, Filling, Full };
  struct Stage {
    State state = State::Free;
    /// The step whose tile is in the stage or, if the stage is free, the step
    /// that acquires it next.
    int64_t step;
    TileStorage storage;
    /// The source of each part whose copy was started and not carried out yet.
    std::vector<std::optional<TileSource>> sources;
    bool isChecked = false;
    /// The number of readers that have released the stage.
    int64_t releases = 0;
  };
  struct Ring {
    std::vector<Stage> stages;
    const char *where;
    int64_t readers;
  };

  /// The stage that the step uses. Null, after a failure, if the step is out of
  /// range or if the block has failed before.
  Stage *find(int64_t ring, int64_t step, const char *where);
  void record(const char *kind, const char *where,
              std::initializer_list<std::pair<const char *, int64_t>> numbers,
              const void *source = nullptr) const;
  /// The stage of a step that was acquired and was not filled yet; null, after
  /// a failure, if the step is in another state.
  Stage *findAcquired(int64_t ring, int64_t step, const char *where);
  std::string describe(int64_t ring, int64_t step) const;
  /// Waits until the stage has the tile of the step and `condition` holds, and
  /// carries out its copies. `missing` is the participle for the message if
  /// that never happens, such as "copied".
  template <typename Condition>
  Lease waitForTile(int64_t ring, int64_t step, const char *where,
                    Condition condition, const char *missing);
  bool fail(const std::string &message);
  bool fail(const char *where, const std::string &message);
  bool deadlock();
  /// Wakes all waiting roles, because the state has changed.
  void notify();
  /// Waits until `condition` holds. Fails with `message` if all other roles
  /// wait or have ended, so that none is left that could change the state, or
  /// if another part of the program has failed.
  template <typename Condition>
  bool waitUntil(std::unique_lock<std::mutex> &lock, Condition condition,
                 const char *where, const std::string &message);

  const int64_t number;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Ring> rings;
  std::vector<int64_t> claimed; ///< The tile of each step so far.
  std::string failure;
  /// The number of roles, and the number of roles that have not ended.
  unsigned roles = 1, running = 1;
  /// Why roles wait: an entry for each role that has found, since the last
  /// change of the state, that it has to wait.
  std::vector<std::string> waiting;
  uint64_t changes = 0; ///< The number of changes of the state.
};

} // namespace flash::emulation

extern "C" {

/// The functions of `Block` for compiled programs, which pass a pointer to the
/// block as `block`. `flash_emulation_begin` makes a block, and
/// `flash_emulation_end` finishes and destroys it. Other pointers to memory
/// (the tiles of a ring, sources, and the counter of `flash_emulation_claim`)
/// are passed as integers, since MLIR has them as integers.
/// `flash_emulation_fetch` is `copyTile`. If a function fails, the running
/// kernel fails with the message (`flash_runtime_failure`), and the function
/// does not return.
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
