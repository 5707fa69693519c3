//===- Warpgroups.h - Numbers of warpgroups -------------------------*- C++
//-*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SCHEDULE_WARPGROUPS_H
#define FLASH_SCHEDULE_WARPGROUPS_H

#include "flash/Machine/TargetAttr.h"
#include "flash/Schedule/Schedule.h"
#include "flash/Schedule/SharedTile.h"

namespace flash {

/// A warpgroup, and the rows of one of its products.
constexpr int64_t threadsOfWarp = 32, warpsOfWarpgroup = 4,
                  threadsOfWarpgroup = 128, rowsOfWarpgroup = 64;

/// One of the four warps behind the consumers is the producer. So many of the
/// others check whether tiles are finite: more are faster, but where CTAs share
/// a multiprocessor and its issue slots tiles are small.
constexpr int64_t getCheckWarps(int64_t ctasPerSm) {
  return ctasPerSm > 1 ? 1 : 3;
}

/// The warps of a role that have the tiles of every other step each, at most.
/// Waiting for a rank, for additions to be complete, and the release behind
/// them take one warp as long as a step of 64 queries, unless products of the
/// step are deferred; sums of diagonals take it longer.
constexpr int64_t mostAlternatingWarps = 2;

/// The rows of tiles whose diagonals a warp adds up (tile.store_diagonals).
constexpr int64_t rowsOfDiagonals = 128;

/// Stages of a tile that threads put in shared memory and all warpgroups read
/// in a product whose result leaves the loop, such as the gradients of scores:
/// none waits until the last has read, and it may be read an iteration later
/// (tile-defer-products).
constexpr int64_t stagesOfSharedProducts = 2;

/// The size of an mbarrier.
constexpr int64_t barrierBytes = 8;

/// A block has 16 named barriers: at 0 all its threads meet; each
/// warpgroup has one at which it alone meets, and one for ping-pong; all
/// consumers have one.
constexpr int64_t firstMeetingBarrier = 1, firstPingPongBarrier = 8,
                  consumersBarrier = 15;

/// Registers of a thread, by role.
struct RoleRegisters {
  int64_t producer, consumer;
};

/// setmaxnreg takes multiples of it (PTX).
constexpr int64_t registerGranularity = 8;

/// What a producer needs that does more than count steps (ptxas spilled with
/// 24, and with 32 of two blocks).
constexpr int64_t registersOfBusyProducer = 40;
/// What it takes to compute scalars of claimed tiles for all roles.
constexpr int64_t registersOfSharedScalars = 32;

/// Registers of a producer that goes through a list in memory, such as a block
/// map, beside warps that check values.
constexpr int64_t registersOfListReader = 56;

/// Registers of a producer that copies tiles in parts, each from an
/// address of its own and with two tensor maps to choose from (ptxas spilled
/// with 56).
constexpr int64_t registersOfParts = 72;

/// Registers of a warp that adds up diagonals: two elements of eight matrices
/// of 8 x 8, what is loaded of others, and addresses (ptxas spilled with 40).
constexpr int64_t registersOfDiagonals = 56;

/// What each thread of a block with this number of consumer warpgroups starts
/// with, where as many blocks share a multiprocessor.
inline int64_t getStartRegisters(const Machine &machine, int64_t warpgroups,
                                 int64_t blocks) {
  int64_t threads = (warpgroups + 1) * threadsOfWarpgroup;
  return machine.registers / (threads * blocks) / registerGranularity *
         registerGranularity;
}

/// What roles make of them: producers pass some on to consumers
/// (FlashAttention-3, arXiv 2407.08608). Beside one warpgroup they may keep
/// what the positions of masked tiles with shared keys need; 40 were too few.
inline RoleRegisters getRoleRegisters(const Machine &machine,
                                      int64_t warpgroups, int64_t blocks) {
  constexpr int64_t least = 24, mostOfProducer = 56, mostOfConsumer = 240;
  int64_t pool =
      getStartRegisters(machine, warpgroups, blocks) * (warpgroups + 1);
  int64_t consumer = pool > least ? (pool - least) / warpgroups : 0;
  consumer -= consumer % registerGranularity;
  consumer = consumer < mostOfConsumer ? consumer : mostOfConsumer;
  int64_t rest = pool - consumer * warpgroups;
  return {rest < mostOfProducer ? rest : mostOfProducer, consumer};
}

/// How many CTAs of a kernel share a multiprocessor.
inline int64_t getCtasPerSm(mlir::Operation *kernel) {
  return getSchedule(kernel).ctasPerSm.value_or(1);
}

/// The bytes of shared memory that each of `blocks` on a multiprocessor may
/// have.
inline int64_t getSharedLimit(const Machine &machine, int64_t blocks) {
  int64_t reserved = machine.reservedSharedBytesPerBlock;
  return (machine.sharedBytesPerBlock + reserved) / blocks - reserved;
}

} // namespace flash

#endif // FLASH_SCHEDULE_WARPGROUPS_H
