//===- Cpu.cpp - What compiled kernels need at run time -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/Cpu.h"
#include "flash/Runtime/Processors.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
static void relax() { _mm_pause(); }
#else
static void relax() {}
#endif

namespace {

constexpr size_t alignment = 64;

/// One protected call: the thread that made it and its pool workers share it.
struct Invocation {
  std::atomic<bool> failed{false};
  char message[1024];

  /// The first failure wins.
  void fail(const char *text) {
    static std::mutex mutex;
    std::lock_guard<std::mutex> lock(mutex);
    if (failed)
      return;
    std::snprintf(message, sizeof(message), "%s", text);
    failed = true;
  }
};

/// Where flash_runtime_failure of this thread returns to.
thread_local jmp_buf *escape = nullptr;
thread_local Invocation *invocation = nullptr;
thread_local bool insideParallel = false;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Precedes every allocation; fills exactly one alignment unit.
struct alignas(alignment) Header {
  Header *previous, *next;
  Invocation *owner;
  size_t bytes;
  void (*destroy)(void *); ///< Run before the memory is freed, unless null.
};

struct Heap {
  std::mutex mutex;
  Header *first = nullptr;
  int64_t current = 0, peak = 0, limit = 0;
  bool poison = false;

  void unlink(Header *header) {
    (header->previous ? header->previous->next : first) = header->next;
    if (header->next)
      header->next->previous = header->previous;
    current -= header->bytes;
  }
};

Heap &heap() {
  static Heap *instance = new Heap;
  return *instance;
}

void *allocate(size_t bytes, void (*destroy)(void *) = nullptr) {
  Heap &h = heap();
  size_t padded = (bytes + alignment - 1) / alignment * alignment;
  Header *header = nullptr;
  {
    std::lock_guard<std::mutex> lock(h.mutex);
    bool fits = padded >= bytes && padded < SIZE_MAX / 4 &&
                (h.limit == 0 || h.current + int64_t(padded) <= h.limit);
    if (fits)
      header = static_cast<Header *>(
          std::aligned_alloc(alignment, padded + sizeof(Header)));
    if (header) {
      *header = {nullptr, h.first, invocation, padded, destroy};
      if (h.first)
        h.first->previous = header;
      h.first = header;
      h.current += padded;
      if (h.current > h.peak)
        h.peak = h.current;
    }
  }
  // Outside the lock: this may not return.
  if (!header) {
    char message[96];
    std::snprintf(message, sizeof(message),
                  "out of memory: cannot allocate %zu bytes", bytes);
    flash_runtime_failure(message);
  }
  if (h.poison)
    std::memset(header + 1, 0xFF, padded);
  return header + 1;
}

void release(void *pointer) {
  if (!pointer)
    return;
  Heap &h = heap();
  Header *header = static_cast<Header *>(pointer) - 1;
  {
    std::lock_guard<std::mutex> lock(h.mutex);
    h.unlink(header);
  }
  if (header->destroy)
    header->destroy(pointer);
  std::free(header);
}

void releaseAll(Invocation *owner, bool keep) {
  Heap &h = heap();
  std::lock_guard<std::mutex> lock(h.mutex);
  for (Header *header = h.first; header;) {
    Header *next = header->next;
    if (header->owner == owner) {
      header->owner = nullptr;
      if (!keep) {
        h.unlink(header);
        if (header->destroy)
          header->destroy(header + 1);
        std::free(header);
      }
    }
    header = next;
  }
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

struct Job {
  int64_t count;
  void (*body)(void *, int64_t);
  void *context;
  Invocation *owner;
  alignas(64) std::atomic<int64_t> next{0};
};

/// Works on the job until no index is left, or on so many indices. A failing
/// body escapes to here, whose frame owns nothing.
void work(Job &job, int64_t limit = INT64_MAX) {
  jmp_buf here;
  jmp_buf *outerEscape = escape;
  Invocation *outerInvocation = invocation;
  bool outerInside = insideParallel;
  escape = &here;
  invocation = job.owner;
  insideParallel = true;
  if (setjmp(here) == 0) {
    while (limit-- > 0 && !(job.owner && job.owner->failed)) {
      int64_t index = job.next.fetch_add(1, std::memory_order_relaxed);
      if (index >= job.count)
        break;
      job.body(job.context, index);
    }
  }
  escape = outerEscape;
  invocation = outerInvocation;
  insideParallel = outerInside;
}

/// Starts a thread; false if the system gives no more.
template <typename Body>
bool startThread(std::vector<std::thread> &threads, Body body) {
  try {
    threads.emplace_back(body);
    return true;
  } catch (const std::system_error &) {
    return false;
  }
}

/// Workers wait for a generation to start: a short spin, since kernels follow
/// one another closely, then a condition variable.
class Pool {
public:
  explicit Pool(unsigned count) : count(count) {
    for (unsigned i = 1; i < count; ++i)
      if (!startThread(workers, [this] { loop(); }))
        break;
  }
  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      stop = true;
      generation.fetch_add(1);
    }
    wake.notify_all();
    for (std::thread &worker : workers)
      worker.join();
  }
  /// The number of threads that the caller has chosen.
  unsigned size() const { return count; }

  void run(Job &job) {
    if (workers.empty() || job.count <= 1)
      return work(job);
    std::lock_guard<std::mutex> one(submission);
    {
      std::lock_guard<std::mutex> lock(mutex);
      current = &job;
      wantedWorkers = std::min<int64_t>(workers.size(), job.count - 1);
      active.store(wantedWorkers);
      generation.fetch_add(1);
    }
    wake.notify_all();
    work(job);
    {
      // Workers that are not awake by now come too late, and nobody waits for
      // them: with more threads than processors, that would take long.
      std::lock_guard<std::mutex> lock(mutex);
      active.fetch_sub(wantedWorkers);
      wantedWorkers = 0;
    }
    for (unsigned spin = 0; active.load(std::memory_order_acquire) != 0;)
      if (++spin < 2000)
        relax();
      else
        std::this_thread::yield();
  }

private:
  void loop() {
    for (uint64_t seen = 0;;) {
      auto deadline =
          std::chrono::steady_clock::now() + std::chrono::microseconds(50);
      while (generation.load(std::memory_order_acquire) == seen &&
             std::chrono::steady_clock::now() < deadline)
        for (int i = 0; i < 32; ++i)
          relax();
      Job *job;
      {
        std::unique_lock<std::mutex> lock(mutex);
        wake.wait(lock, [&] { return generation.load() != seen; });
        seen = generation.load();
        if (stop)
          return;
        if (wantedWorkers == 0)
          continue;
        --wantedWorkers;
        job = current;
      }
      work(*job);
      active.fetch_sub(1, std::memory_order_release);
    }
  }

  const unsigned count;
  std::vector<std::thread> workers;
  std::mutex submission, mutex;
  std::condition_variable wake;
  std::atomic<uint64_t> generation{0};
  std::atomic<size_t> active{0};
  Job *current = nullptr;
  /// How many more workers the job takes.
  size_t wantedWorkers = 0;
  bool stop = false;
};

/// 0 until it is known.
std::atomic<unsigned> threadCount{0};
Pool *pool = nullptr;
std::mutex poolMutex;

unsigned resolveThreadCount() {
  unsigned count = threadCount;
  if (!count)
    threadCount = count = flash::runtime::getDefaultThreadCount();
  return count;
}

/// Never destroyed at exit: a worker may still be waking up then.
Pool &getPool() {
  // A child of fork() has none of the workers, and gets a pool of its own.
  static int handled = pthread_atfork(nullptr, nullptr, [] { pool = nullptr; });
  (void)handled;
  std::lock_guard<std::mutex> lock(poolMutex);
  if (pool && pool->size() != resolveThreadCount()) {
    delete pool;
    pool = nullptr;
  }
  if (!pool)
    pool = new Pool(resolveThreadCount());
  return *pool;
}

} // namespace

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

extern "C" void flash_parallel_for(int64_t count, void (*body)(void *, int64_t),
                                   void *context) {
  Job job;
  job.count = count;
  job.body = body;
  job.context = context;
  job.owner = invocation;
  if (insideParallel)
    work(job);
  else
    getPool().run(job);
  if (invocation && invocation->failed)
    longjmp(*escape, 1);
}

/// The threads end before this returns, so that what calls it may escape. False
/// if there were not enough, and so no body could be sure of the others.
static bool runConcurrently(Job &job) {
  // None begins before all are there.
  std::mutex mutex;
  std::condition_variable decided;
  enum { Undecided, Go, GiveUp } decision = Undecided;
  std::vector<std::thread> threads;
  bool isEnough = true;
  for (int64_t i = 1; i < job.count && isEnough; ++i)
    isEnough = startThread(threads, [&] {
      {
        std::unique_lock<std::mutex> lock(mutex);
        decided.wait(lock, [&] { return decision != Undecided; });
        if (decision == GiveUp)
          return;
      }
      work(job, /*limit=*/1);
    });
  {
    std::lock_guard<std::mutex> lock(mutex);
    decision = isEnough ? Go : GiveUp;
  }
  decided.notify_all();
  if (isEnough)
    work(job, /*limit=*/1);
  for (std::thread &thread : threads)
    thread.join();
  return isEnough;
}

extern "C" void flash_concurrent_for(int64_t count,
                                     void (*body)(void *, int64_t),
                                     void *context) {
  Job job;
  job.count = count;
  job.body = body;
  job.context = context;
  job.owner = invocation;
  if (!runConcurrently(job))
    flash_runtime_failure("out of memory: the system gives no thread for each "
                          "role of a block");
  if (invocation && invocation->failed)
    longjmp(*escape, 1);
}

extern "C" void flash_runtime_failure(const char *message) {
  if (!invocation || !escape) {
    std::fprintf(stderr, "flash: kernel failed: %s\n", message);
    std::abort();
  }
  invocation->fail(message);
  longjmp(*escape, 1);
}

extern "C" void *_mlir_memref_to_llvm_alloc(size_t bytes) {
  return allocate(bytes);
}
extern "C" void *_mlir_memref_to_llvm_aligned_alloc(size_t, size_t bytes) {
  return allocate(bytes);
}
extern "C" void _mlir_memref_to_llvm_free(void *pointer) { release(pointer); }

namespace flash::runtime {

void setThreadCount(unsigned count) { threadCount = count; }
unsigned getThreadCount() { return resolveThreadCount(); }

MemoryUse getMemoryUse() {
  std::lock_guard<std::mutex> lock(heap().mutex);
  return {heap().current, heap().peak};
}

void resetPeakMemory() {
  std::lock_guard<std::mutex> lock(heap().mutex);
  heap().peak = heap().current;
}

void *allocateObject(size_t bytes, void (*destroy)(void *)) {
  return allocate(bytes, destroy);
}

void releaseObject(void *object) { release(object); }

bool hasFailed() { return invocation && invocation->failed; }

void setPoison(bool enable) { heap().poison = enable; }

void setMemoryLimit(int64_t bytes) {
  std::lock_guard<std::mutex> lock(heap().mutex);
  heap().limit = bytes;
}

std::optional<std::string> callProtected(void (*function)(void *),
                                         void *argument) {
  Invocation call;
  jmp_buf here;
  jmp_buf *outerEscape = escape;
  Invocation *outerInvocation = invocation;
  escape = &here;
  invocation = &call;
  if (setjmp(here) == 0)
    function(argument);
  escape = outerEscape;
  invocation = outerInvocation;
  // What a successful call allocated and did not free are its results.
  releaseAll(&call, /*keep=*/!call.failed);
  if (!call.failed)
    return std::nullopt;
  return std::string(call.message);
}

} // namespace flash::runtime
