//===- Emulation.cpp - Rings of block programs on the CPU -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/Emulation.h"

#include "flash/Runtime/Cpu.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <new>

using namespace flash::emulation;

/// A lease is the ring's number plus one, and the step in so many bits.
static constexpr unsigned stepBits = 48;
static int64_t getRingOf(Lease lease) { return (lease >> stepBits) - 1; }
static int64_t getStepOf(Lease lease) {
  return lease & ((int64_t(1) << stepBits) - 1);
}

/// Makes what is read too early or too late show: all ones are a NaN in every
/// floating-point type.
static void poison(const TileStorage &tile) {
  std::memset(tile.data, 0xFF, tile.rows * tile.rowBytes);
}

void flash::emulation::copyTile(const TileStorage &destination,
                                const TileSource &source) {
  auto *to = static_cast<char *>(destination.data);
  auto *from = static_cast<const char *>(source.data);
  int64_t rows = std::clamp<int64_t>(source.rows, 0, destination.rows);
  for (int64_t row = 0; row < rows; ++row)
    std::memcpy(to + row * destination.rowBytes,
                from + row / source.packed * source.rowStride +
                    row % source.packed * source.packedStride,
                destination.rowBytes);
  std::memset(to + rows * destination.rowBytes, 0,
              (destination.rows - rows) * destination.rowBytes);
}

//===----------------------------------------------------------------------===//
// Recording
//===----------------------------------------------------------------------===//

static std::atomic<bool> isRecording;
static std::mutex recordMutex; ///< Guards the next two.
static std::vector<Event> recorded;
static int64_t launches;
static thread_local const char *currentRole = "";

void flash::emulation::startRecording() {
  std::lock_guard<std::mutex> lock(recordMutex);
  recorded.clear();
  launches = 0;
  isRecording = true;
}

std::vector<Event> flash::emulation::stopRecording() {
  std::lock_guard<std::mutex> lock(recordMutex);
  isRecording = false;
  return std::move(recorded);
}

Block::Block(int64_t number) : number(number) {
  // A role that failed has not ended.
  currentRole = "";
  std::lock_guard<std::mutex> lock(recordMutex);
  launches += number == 0;
}

/// Called while the block is locked, so that events have the order of their
/// effects.
void Block::record(
    const char *kind, const char *where,
    std::initializer_list<std::pair<const char *, int64_t>> numbers,
    const void *source) const {
  if (number != 0 || !isRecording)
    return;
  std::lock_guard<std::mutex> lock(recordMutex);
  Event &event =
      recorded.emplace_back(Event{kind, currentRole, where, {}, source});
  event.numbers.push_back({"launch", launches - 1});
  event.numbers.insert(event.numbers.end(), numbers);
}

void Block::note(Lease lease, const char *where) {
  // Most runs record nothing.
  if (!isRecording)
    return;
  std::lock_guard<std::mutex> lock(mutex);
  if (lease == 0)
    record("do", where, {});
  else
    record("do", where,
           {{"ring", getRingOf(lease)}, {"step", getStepOf(lease)}});
}

//===----------------------------------------------------------------------===//
// Messages and waiting
//===----------------------------------------------------------------------===//

std::string Block::describe(int64_t ring, int64_t step) const {
  const Ring &found = rings[ring];
  return "step " + std::to_string(step) + " (stage " +
         std::to_string(step % int64_t(found.stages.size())) + ") of the " +
         found.where;
}

bool Block::fail(const std::string &message) {
  failure = message + " (block " + std::to_string(number) + ")";
  notify();
  return false;
}

bool Block::fail(const char *where, const std::string &message) {
  return fail(std::string(where) + ": " + message);
}

bool Block::deadlock() {
  std::string message = "deadlock: all roles of the block wait or have ended";
  for (const std::string &reason : waiting)
    message += "; " + reason;
  return fail(message);
}

void Block::notify() {
  ++changes;
  waiting.clear();
  changed.notify_all();
}

template <typename Condition>
bool Block::waitUntil(std::unique_lock<std::mutex> &lock, Condition condition,
                      const char *where, const std::string &message) {
  while (failure.empty() && !condition()) {
    waiting.push_back(std::string(where) + ": " + message);
    if (waiting.size() == running)
      return roles == 1 ? fail(where, message) : deadlock();
    // A role may also fail out of the block's sight, by running out of memory.
    constexpr std::chrono::milliseconds patience(50);
    while (!changed.wait_for(lock, patience,
                             [&, seen = changes] { return changes != seen; }))
      if (flash::runtime::hasFailed())
        return fail("another part of the program has failed");
  }
  return failure.empty();
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

Block::Stage *Block::find(int64_t ring, int64_t step, const char *where) {
  if (!failure.empty())
    return nullptr;
  if (step < 0 || step >> stepBits != 0) {
    fail(where, "step " + std::to_string(step) + " of the " +
                    rings[ring].where +
                    " is out of range: steps count from 0 on");
    return nullptr;
  }
  return &rings[ring].stages[step % rings[ring].stages.size()];
}

int64_t Block::addRing(const TileStorage &first, int64_t stages,
                       const char *where, int64_t readers, int64_t copies) {
  std::lock_guard<std::mutex> lock(mutex);
  Ring &ring = rings.emplace_back();
  ring.where = where;
  ring.readers = readers;
  for (int64_t i = 0; i < stages; ++i) {
    TileStorage storage = first;
    storage.data =
        static_cast<char *>(first.data) + i * first.rows * first.rowBytes;
    std::vector<std::optional<TileSource>> sources(copies);
    ring.stages.push_back({State::Free, i, storage, sources, false, 0});
    poison(storage);
  }
  int64_t number = rings.size() - 1;
  record("ring", where,
         {{"ring", number},
          {"stages", stages},
          {"rows", first.rows},
          {"row_bytes", first.rowBytes}});
  return number;
}

bool Block::acquire(int64_t ring, int64_t step, const char *where) {
  std::unique_lock<std::mutex> lock(mutex);
  Stage *stage = find(ring, step, where);
  if (!stage)
    return false;
  if (step < stage->step ||
      (step == stage->step && stage->state != State::Free))
    return fail(where, describe(ring, step) + " is acquired a second time");
  int64_t previous = step - int64_t(rings[ring].stages.size());
  std::string alone = roles == 1 ? "deadlock: " : "";
  if (!waitUntil(
          lock,
          [&] { return stage->state == State::Free && stage->step == step; },
          where,
          alone + describe(ring, step) + " waits for the release of step " +
              std::to_string(previous)))
    return false;
  stage->state = State::Acquired;
  poison(stage->storage);
  record("acquire", where, {{"ring", ring}, {"step", step}});
  return true;
}

Block::Stage *Block::findAcquired(int64_t ring, int64_t step,
                                  const char *where) {
  Stage *stage = find(ring, step, where);
  if (!stage)
    return nullptr;
  const char *wrong =
      step < stage->step ? " was released before"
      : step > stage->step || stage->state == State::Free ? " was not acquired"
      : stage->state != State::Acquired ? " is copied a second time"
                                        : nullptr;
  if (wrong)
    fail(where, describe(ring, step) + wrong);
  return wrong ? nullptr : stage;
}

bool Block::copy(int64_t ring, int64_t step, const TileSource &source,
                 const char *where, int64_t part) {
  std::lock_guard<std::mutex> lock(mutex);
  Stage *stage = findAcquired(ring, step, where);
  if (!stage)
    return false;
  int64_t parts = stage->sources.size();
  if (part < 0 || part >= parts)
    return fail(where, describe(ring, step) + " has no part " +
                           std::to_string(part) + " of " +
                           std::to_string(parts));
  if (stage->sources[part])
    return fail(where, "part " + std::to_string(part) + " of " +
                           describe(ring, step) + " is copied a second time");
  stage->sources[part] = source;
  record("copy", where, {{"ring", ring}, {"step", step}, {"part", part}},
         source.data);
  for (const std::optional<TileSource> &other : stage->sources)
    if (!other)
      return true;
  stage->state = State::Filling;
  notify();
  return true;
}

bool Block::startPut(int64_t ring, int64_t step, const char *where) {
  std::lock_guard<std::mutex> lock(mutex);
  Stage *stage = findAcquired(ring, step, where);
  if (!stage)
    return false;
  stage->state = State::Putting;
  return true;
}

bool Block::endPut(int64_t ring, int64_t step, const char *where) {
  std::lock_guard<std::mutex> lock(mutex);
  Stage *stage = find(ring, step, where);
  if (!stage)
    return false;
  stage->state = State::Full;
  record("put", where, {{"ring", ring}, {"step", step}});
  notify();
  return true;
}

template <typename Condition>
Lease Block::waitForTile(int64_t ring, int64_t step, const char *where,
                         Condition condition, const char *missing) {
  std::unique_lock<std::mutex> lock(mutex);
  Stage *stage = find(ring, step, where);
  if (!stage)
    return 0;
  if (step < stage->step) {
    fail(where, describe(ring, step) + " was released before");
    return 0;
  }
  if (!waitUntil(
          lock, [&] { return stage->step == step && condition(*stage); }, where,
          describe(ring, step) + " was never " + missing))
    return 0;
  if (stage->state == State::Filling) {
    TileStorage part = stage->storage;
    part.rows /= int64_t(stage->sources.size());
    for (std::optional<TileSource> &source : stage->sources) {
      copyTile(part, *source);
      part.data = static_cast<char *>(part.data) + part.rows * part.rowBytes;
      source.reset();
    }
    stage->state = State::Full;
  }
  record("wait", where, {{"ring", ring}, {"step", step}});
  return (ring + 1) << stepBits | step;
}

Lease Block::wait(int64_t ring, int64_t step, const char *where) {
  auto isCopied = [](const Stage &stage) {
    return stage.state == State::Filling || stage.state == State::Full;
  };
  return waitForTile(ring, step, where, isCopied, "copied");
}

bool Block::setChecked(int64_t ring, int64_t step, const char *where) {
  std::lock_guard<std::mutex> lock(mutex);
  Stage *stage = find(ring, step, where);
  if (!stage)
    return false;
  if (step != stage->step || stage->state != State::Full)
    return fail(where, describe(ring, step) + " was not waited for");
  stage->isChecked = true;
  record("check", where, {{"ring", ring}, {"step", step}});
  notify();
  return true;
}

Lease Block::waitChecked(int64_t ring, int64_t step, const char *where) {
  auto isChecked = [](const Stage &stage) { return stage.isChecked; };
  return waitForTile(ring, step, where, isChecked, "checked");
}

bool Block::release(int64_t ring, int64_t step, const char *where) {
  std::lock_guard<std::mutex> lock(mutex);
  Stage *stage = find(ring, step, where);
  if (!stage)
    return false;
  if (step < stage->step)
    return fail(where, describe(ring, step) + " was released before");
  if (step > stage->step || stage->state != State::Full)
    return fail(where, describe(ring, step) + " was not waited for");
  record("release", where, {{"ring", ring}, {"step", step}});
  if (++stage->releases < rings[ring].readers)
    return true;
  poison(stage->storage);
  stage->state = State::Free;
  stage->step += rings[ring].stages.size();
  stage->isChecked = false;
  stage->releases = 0;
  notify();
  return true;
}

bool Block::checkLease(Lease lease, const char *where) {
  if (lease == 0)
    return true;
  std::lock_guard<std::mutex> lock(mutex);
  int64_t ring = getRingOf(lease), step = getStepOf(lease);
  Stage *stage = find(ring, step, where);
  if (!stage)
    return false;
  if (stage->step == step && stage->state == State::Full)
    return true;
  return fail(where, "reads " + describe(ring, step) + " after its release");
}

bool Block::checkRange(int64_t first, int64_t count, int64_t dimension,
                       int64_t size, const char *where) {
  if (count <= 0 || (first >= 0 && first < size && count <= size - first))
    return true;
  std::lock_guard<std::mutex> lock(mutex);
  return fail(where, "touches indices " + std::to_string(first) + " to " +
                         std::to_string(first + count - 1) + " of dimension " +
                         std::to_string(dimension) + ", which has " +
                         std::to_string(size));
}

bool Block::checkRank(int64_t rank, int64_t count, const char *where) {
  if (rank == count)
    return true;
  std::lock_guard<std::mutex> lock(mutex);
  return fail(where, "has rank " + std::to_string(rank) +
                         ", and the count is " + std::to_string(count) +
                         " when all blocks of smaller numbers have ended");
}

int64_t Block::claim(int64_t step, int32_t &count) {
  std::lock_guard<std::mutex> lock(mutex);
  while (int64_t(claimed.size()) <= step)
    claimed.push_back(count++);
  return claimed[step];
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

void Block::startRoles(unsigned count) {
  std::lock_guard<std::mutex> lock(mutex);
  roles = running = count;
}

void Block::enterRole(const char *name, int64_t warps, int64_t registers) {
  std::lock_guard<std::mutex> lock(mutex);
  currentRole = name;
  record("role", name, {{"warps", warps}, {"registers", registers}});
}

bool Block::finishRole() {
  std::lock_guard<std::mutex> lock(mutex);
  currentRole = "";
  --running;
  if (!failure.empty())
    return false;
  return running == 0 || waiting.size() != running || deadlock();
}

bool Block::finish() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!failure.empty())
    return false;
  for (size_t i = 0; i < rings.size(); ++i)
    for (const Stage &stage : rings[i].stages) {
      if (stage.state == State::Free)
        continue;
      const char *missing = stage.state == State::Acquired  ? "copied"
                            : stage.state == State::Putting ? "copied"
                            : stage.state == State::Filling ? "waited for"
                                                            : "released";
      return fail("the block ends, but " + describe(i, stage.step) +
                  " was never " + missing);
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Entry points. Nothing with a destructor is alive where they may not return.
//===----------------------------------------------------------------------===//

static void check(Block *block, bool ok) {
  if (!ok)
    flash_runtime_failure(block->getFailure());
}

static void *pointer(int64_t address) {
  return reinterpret_cast<void *>(address);
}

extern "C" void *flash_emulation_begin(int64_t number) {
  void *memory = flash::runtime::allocateObject(sizeof(Block), [](void *block) {
    static_cast<Block *>(block)->~Block();
  });
  return new (memory) Block(number);
}

extern "C" void flash_emulation_end(void *block) {
  auto *ended = static_cast<Block *>(block);
  check(ended, ended->finish());
  flash::runtime::releaseObject(block);
}

extern "C" void flash_emulation_start_roles(void *block, int64_t count) {
  static_cast<Block *>(block)->startRoles(count);
}

extern "C" void flash_emulation_enter_role(void *block, int64_t warps,
                                           int64_t registers,
                                           const char *name) {
  static_cast<Block *>(block)->enterRole(name, warps, registers);
}

extern "C" void flash_emulation_finish_role(void *block) {
  auto *b = static_cast<Block *>(block);
  check(b, b->finishRole());
}

extern "C" int64_t flash_emulation_ring(void *block, int64_t storage,
                                        int64_t stages, int64_t rows,
                                        int64_t rowBytes, int64_t readers,
                                        int64_t copies, const char *where) {
  return static_cast<Block *>(block)->addRing(
      {pointer(storage), rows, rowBytes}, stages, where, readers, copies);
}

extern "C" void flash_emulation_acquire(void *block, int64_t ring, int64_t step,
                                        const char *where) {
  auto *b = static_cast<Block *>(block);
  check(b, b->acquire(ring, step, where));
}

extern "C" void flash_emulation_copy_async(void *block, int64_t ring,
                                           int64_t step, int64_t part,
                                           int64_t source, int64_t rowStride,
                                           int64_t rows, int64_t packed,
                                           int64_t packedStride,
                                           const char *where) {
  auto *b = static_cast<Block *>(block);
  check(b, b->copy(ring, step,
                   {pointer(source), rowStride, rows, packed, packedStride},
                   where, part));
}

extern "C" void flash_emulation_start_put(void *block, int64_t ring,
                                          int64_t step, const char *where) {
  auto *b = static_cast<Block *>(block);
  check(b, b->startPut(ring, step, where));
}

extern "C" void flash_emulation_end_put(void *block, int64_t ring, int64_t step,
                                        const char *where) {
  auto *b = static_cast<Block *>(block);
  check(b, b->endPut(ring, step, where));
}

extern "C" int64_t flash_emulation_wait(void *block, int64_t ring, int64_t step,
                                        const char *where) {
  auto *b = static_cast<Block *>(block);
  Lease lease = b->wait(ring, step, where);
  check(b, lease != 0);
  return lease;
}

extern "C" void flash_emulation_set_checked(void *block, int64_t ring,
                                            int64_t step, const char *where) {
  auto *b = static_cast<Block *>(block);
  check(b, b->setChecked(ring, step, where));
}

extern "C" int64_t flash_emulation_wait_checked(void *block, int64_t ring,
                                                int64_t step,
                                                const char *where) {
  auto *b = static_cast<Block *>(block);
  Lease lease = b->waitChecked(ring, step, where);
  check(b, lease != 0);
  return lease;
}

extern "C" void flash_emulation_release(void *block, int64_t ring, int64_t step,
                                        const char *where) {
  auto *b = static_cast<Block *>(block);
  check(b, b->release(ring, step, where));
}

extern "C" void flash_emulation_check_lease(void *block, int64_t lease,
                                            const char *where) {
  auto *b = static_cast<Block *>(block);
  check(b, b->checkLease(lease, where));
}

extern "C" void flash_emulation_note(void *block, int64_t lease,
                                     const char *where) {
  static_cast<Block *>(block)->note(lease, where);
}

extern "C" void flash_emulation_check_range(void *block, int64_t first,
                                            int64_t count, int64_t dimension,
                                            int64_t size, const char *where) {
  auto *b = static_cast<Block *>(block);
  check(b, b->checkRange(first, count, dimension, size, where));
}

extern "C" int64_t flash_emulation_claim(void *block, int64_t step,
                                         int64_t count, const char *) {
  return static_cast<Block *>(block)->claim(
      step, *static_cast<int32_t *>(pointer(count)));
}

extern "C" void flash_emulation_check_rank(void *block, int64_t rank,
                                           int64_t count, const char *where) {
  auto *b = static_cast<Block *>(block);
  check(b, b->checkRank(rank, count, where));
}

extern "C" void flash_emulation_fetch(int64_t destination, int64_t tileRows,
                                      int64_t rowBytes, int64_t source,
                                      int64_t rowStride, int64_t rows,
                                      int64_t packed, int64_t packedStride) {
  copyTile({pointer(destination), tileRows, rowBytes},
           {pointer(source), rowStride, rows, packed, packedStride});
}
