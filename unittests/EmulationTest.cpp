//===- EmulationTest.cpp - Rings that several roles share -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each role is a thread. That copies are late and freed stages poisoned is also
// tested here, since programs that could tell are refused.
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/Emulation.h"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

using namespace flash::emulation;

static int failures = 0;

static void check(bool ok, const char *what) {
  if (ok)
    return;
  ++failures;
  std::fprintf(stderr, "FAILED: %s\n", what);
}

static void checkFailure(const Block &block, const std::string &part) {
  if (std::string(block.getFailure()).find(part) != std::string::npos)
    return;
  ++failures;
  std::fprintf(stderr, "FAILED: '%s' is not in '%s'\n", part.c_str(),
               block.getFailure());
}

namespace {
constexpr int64_t stages = 3, rows = 4, columns = 8;

/// A block with one ring of f32 tiles.
struct Fixture {
  explicit Fixture(unsigned roles) : block(7) {
    block.startRoles(roles);
    ring = block.addRing({storage, rows, columns * 4}, stages, "ring");
  }
  float *stage(int64_t step) {
    return storage + step % stages * rows * columns;
  }
  TileSource source(const float *data, int64_t existing = rows) {
    return {data, columns * 4, existing};
  }

  Block block;
  int64_t ring;
  float storage[stages * rows * columns];
};
} // namespace

/// Runs each function as a role, on its own thread.
static void run(Block &block, std::vector<std::function<void()>> roles) {
  std::vector<std::thread> threads;
  for (auto &role : roles)
    threads.emplace_back([&block, role] {
      role();
      block.finishRole();
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// A copy arrives at the wait, with what the source holds then.
static void testLateCopy() {
  Fixture f(1);
  float source[rows * columns];
  for (float &value : source)
    value = 1;
  check(std::isnan(f.stage(0)[0]), "a new stage is poisoned");
  f.stage(0)[0] = 5;
  check(f.block.acquire(f.ring, 0, "acquire"), "acquire");
  check(std::isnan(f.stage(0)[0]), "an acquired stage is poisoned");
  check(f.block.copy(f.ring, 0, f.source(source, 3), "copy"), "copy");
  check(std::isnan(f.stage(0)[0]), "a copy does not arrive at once");
  source[0] = 2;
  Lease lease = f.block.wait(f.ring, 0, "wait");
  check(lease != 0 && f.block.checkLease(lease, "load"), "wait");
  check(f.stage(0)[0] == 2 && f.stage(0)[3 * columns - 1] == 1,
        "a copy arrives at the wait");
  check(f.stage(0)[3 * columns] == 0, "rows that do not exist are zero");
  check(std::isnan(f.stage(1)[0]), "the next stage is untouched");
  check(f.block.release(f.ring, 0, "release"), "release");
  check(std::isnan(f.stage(0)[0]), "a released stage is poisoned");
  check(!f.block.checkLease(lease, "load"), "a lease ends");
  checkFailure(f.block, "load: reads step 0 (stage 0) of the ring after its "
                        "release (block 7)");
}

/// One role copies, another reads; the ring makes each wait for the other.
static void testTwoRoles() {
  constexpr int64_t steps = 5000;
  Fixture f(2);
  std::vector<float> sources(steps * rows * columns);
  for (size_t i = 0; i < sources.size(); ++i)
    sources[i] = float(i % 1000);
  bool same = true;
  run(f.block,
      {[&] {
         for (int64_t t = 0; t < steps; ++t)
           if (!f.block.acquire(f.ring, t, "acquire") ||
               !f.block.copy(f.ring, t, f.source(&sources[t * rows * columns]),
                             "copy"))
             return;
       },
       [&] {
         for (int64_t t = 0; t < steps; ++t) {
           if (!f.block.wait(f.ring, t, "wait"))
             return;
           for (int64_t i = 0; i < rows * columns; ++i)
             same &= f.stage(t)[i] == sources[t * rows * columns + i];
           if (!f.block.release(f.ring, t, "release"))
             return;
         }
       }});
  check(same, "every step has its tile");
  check(f.block.finish(), f.block.getFailure());
}

/// A stage of a ring with a non-finite check is free when both readers have
/// released it; the consumer waits for what the check finds.
static void testNonfiniteCheck() {
  constexpr int64_t steps = 2000;
  Fixture f(3);
  float other[stages * rows * columns], source[rows * columns] = {};
  int64_t ring = f.block.addRing({other, rows, columns * 4}, stages, "ring",
                                 /*readers=*/2);
  std::atomic<int64_t> checked = 0;
  bool inOrder = true;
  run(f.block, {[&] {
                  for (int64_t t = 0; t < steps; ++t)
                    if (!f.block.acquire(ring, t, "acquire") ||
                        !f.block.copy(ring, t, f.source(source), "copy"))
                      return;
                },
                [&] {
                  for (int64_t t = 0; t < steps; ++t) {
                    if (!f.block.wait(ring, t, "check"))
                      return;
                    checked = t + 1;
                    if (!f.block.setChecked(ring, t, "check") ||
                        !f.block.release(ring, t, "check"))
                      return;
                  }
                },
                [&] {
                  for (int64_t t = 0; t < steps; ++t) {
                    if (!f.block.wait(ring, t, "wait") ||
                        !f.block.waitChecked(ring, t, "ask"))
                      return;
                    inOrder &= checked > t;
                    if (!f.block.release(ring, t, "release"))
                      return;
                  }
                }});
  check(inOrder, "no result comes before it is known");
  check(f.block.finish(), f.block.getFailure());
}

/// Nobody checks the tile that the consumer asks about.
static void testUncheckedTile() {
  Fixture f(1);
  float source[rows * columns] = {};
  check(f.block.acquire(f.ring, 0, "acquire"), "acquire");
  check(f.block.copy(f.ring, 0, f.source(source), "copy"), "copy");
  check(!f.block.setChecked(f.ring, 0, "check"), "not waited for");
  checkFailure(f.block, "check: step 0 (stage 0) of the ring was not waited "
                        "for");
  Fixture g(1);
  check(g.block.acquire(g.ring, 0, "acquire"), "acquire");
  check(g.block.copy(g.ring, 0, g.source(source), "copy"), "copy");
  check(g.block.wait(g.ring, 0, "wait"), "wait");
  check(!g.block.waitChecked(g.ring, 0, "ask"), "never checked");
  checkFailure(g.block, "ask: step 0 (stage 0) of the ring was never checked");
}

/// The producer waits for a release and the consumer for another ring.
static void testDeadlock() {
  Fixture f(2);
  float other[rows * columns];
  int64_t second = f.block.addRing({other, rows, columns * 4}, 1, "other ring");
  run(f.block, {[&] {
                  for (int64_t t = 0; t <= stages; ++t)
                    if (!f.block.acquire(f.ring, t, "acquire"))
                      return;
                  check(false, "acquires more stages than there are");
                },
                [&] {
                  check(!f.block.wait(second, 0, "wait"),
                        "waits for what is never copied");
                }});
  checkFailure(f.block, "deadlock: all roles of the block wait");
  checkFailure(f.block, "acquire: step 3 (stage 0) of the ring waits for the "
                        "release of step 0");
  checkFailure(f.block, "wait: step 0 (stage 0) of the other ring was never "
                        "copied");
  check(!f.block.finish(), "a failed block stays failed");
}

/// The producer ends before the last step that the consumer waits for.
static void testEndedRole() {
  Fixture f(2);
  float source[rows * columns] = {};
  run(f.block, {[&] {
                  f.block.acquire(f.ring, 0, "acquire");
                  f.block.copy(f.ring, 0, f.source(source), "copy");
                },
                [&] {
                  check(f.block.wait(f.ring, 0, "wait"), "step 0");
                  check(!f.block.wait(f.ring, 1, "wait"), "step 1");
                }});
  checkFailure(f.block, "wait: step 1 (stage 1) of the ring was never copied");
}

/// A role that fails stops the others, which wait.
static void testFailingRole() {
  Fixture f(2);
  run(f.block,
      {[&] { check(!f.block.release(f.ring, 0, "release"), "release"); },
       [&] { check(!f.block.wait(f.ring, 0, "wait"), "wait"); }});
  // Whichever came first; neither hangs.
  check(*f.block.getFailure() != 0, "a message");
}

/// All roles get the same numbers, whoever is ahead, and no two blocks do.
static void testClaims() {
  Fixture f(2), other(1);
  int32_t count = 3;
  constexpr int64_t steps = 50;
  std::vector<int64_t> numbers[2];
  auto claimAll = [&](std::vector<int64_t> &of) {
    return [&] {
      for (int64_t step = 0; step < steps; ++step)
        of.push_back(f.block.claim(step, count));
    };
  };
  run(f.block, {claimAll(numbers[0]), claimAll(numbers[1])});
  check(numbers[0] == numbers[1], "the same numbers");
  check(numbers[0].front() == 3 && numbers[0].back() == 3 + steps - 1,
        "numbers one after the other");
  check(other.block.claim(0, count) == 3 + steps, "the next block's number");
}

int main() {
  testLateCopy();
  testTwoRoles();
  testNonfiniteCheck();
  testUncheckedTile();
  for (int i = 0; i < 200; ++i) {
    testDeadlock();
    testEndedRole();
    testFailingRole();
    testClaims();
  }
  std::printf("%d failures\n", failures);
  return failures != 0;
}
