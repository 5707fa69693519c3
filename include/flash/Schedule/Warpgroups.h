//===- Warpgroups.h - Numbers of warpgroups ---------------------*- C++ -*-===//
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

/// The sizes of a warp and a warpgroup, and the number of rows of one product
/// of a warpgroup.
constexpr int64_t threadsOfWarp = 32, warpsOfWarpgroup = 4,
                  threadsOfWarpgroup = 128, rowsOfWarpgroup = 64;

/// One of the four warps that follow the consumers is the producer. Up to three
/// of the other warps check whether tiles are finite. More such warps are
/// faster, but one suffices where CTAs share a multiprocessor, because tiles
/// are small there.
constexpr int64_t getCheckWarps(int64_t ctasPerSm) {
  return ctasPerSm > 1 ? 1 : 3;
}

/// The largest number of warps in a role whose warps alternate, so that each
/// has the tiles of every other step. One warp would not suffice: to wait for a
/// rank, to wait until additions are complete, and to release the tile takes a
/// warp as long as a step of 64 queries, unless products of the step are
/// deferred. Sums of diagonals take longer.
constexpr int64_t mostAlternatingWarps = 2;

/// The number of rows of the tiles whose diagonals a warp adds up
/// (tile.store_diagonals).
constexpr int64_t rowsOfDiagonals = 128;

/// Whether the gradients of a tile of keys and of its values, which have so
/// many columns together, in f32, are wide: each of 128 threads that hold 64
/// rows has more than 128 registers for them, and so has registers for one
/// product of a step at a time beside them. D = 160, and keys of 192 columns
/// with values of 128, are wide.
constexpr bool areGradientsWide(int64_t columns) { return columns > 256; }

/// The number of stages of a tile that threads store to shared memory and that
/// all warpgroups read, in a product whose result is used after the loop. An
/// example is the tile of the gradients of scores. With two stages, no
/// warpgroup waits until the last one has read the tile, and the product may be
/// deferred by an iteration (tile-defer-products). Beside wide gradients there
/// is room for one stage.
constexpr int64_t getStagesOfSharedProducts(bool areGradientsWide) {
  return areGradientsWide ? 1 : 2;
}

/// The size of an mbarrier in bytes.
constexpr int64_t barrierBytes = 8;

/// A block has 16 named barriers. Barrier 0 synchronizes all threads of the
/// block. Each warpgroup has a barrier for its own threads and one for
/// ping-pong, and all consumers share one.
constexpr int64_t firstMeetingBarrier = 1, firstPingPongBarrier = 8,
                  consumersBarrier = 15;

/// Registers of a thread, by role.
struct RoleRegisters {
  int64_t producer, consumer;
};

/// The operand of setmaxnreg is a multiple of this number (PTX).
constexpr int64_t registerGranularity = 8;

/// The registers of a producer that does more than count steps. ptxas spilled
/// with 24, and with 32 where two blocks share a multiprocessor.
constexpr int64_t registersOfBusyProducer = 40;
/// The registers of a producer that computes scalars of claimed tiles for all
/// roles.
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

/// The registers with which each thread of a block starts, if the block has
/// `warpgroups` consumer warpgroups and one more, and `blocks` such blocks
/// share a multiprocessor. A multiple of `registerGranularity`.
inline int64_t getStartRegisters(const Machine &machine, int64_t warpgroups,
                                 int64_t blocks) {
  int64_t threads = (warpgroups + 1) * threadsOfWarpgroup;
  return machine.registers / (threads * blocks) / registerGranularity *
         registerGranularity;
}

/// The registers of each role after producers have given some of theirs to
/// consumers (FlashAttention-3, arXiv 2407.08608). `warpgroups` must be at
/// least 1. Beside one warpgroup, producers keep the registers that the
/// positions of masked tiles with shared keys need; 40 were too few.
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

/// The number of CTAs of a kernel that share a multiprocessor; 1 unless the
/// kernel's schedule has another number.
inline int64_t getCtasPerSm(mlir::Operation *kernel) {
  return getSchedule(kernel).ctasPerSm.value_or(1);
}

/// The bytes of shared memory that each block may have if `blocks` blocks share
/// a multiprocessor.
inline int64_t getSharedLimit(const Machine &machine, int64_t blocks) {
  int64_t reserved = machine.reservedSharedBytesPerBlock;
  return (machine.sharedBytesPerBlock + reserved) / blocks - reserved;
}

} // namespace flash

#endif // FLASH_SCHEDULE_WARPGROUPS_H
