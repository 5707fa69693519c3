//===- Warpgroups.h - Numbers of sm_90a -------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_TILE_IR_WARPGROUPS_H
#define FLASH_DIALECT_TILE_IR_WARPGROUPS_H

#include <cstdint>

namespace flash::tile {

/// A warpgroup, and the rows of one of its products.
constexpr int64_t warpsOfWarpgroup = 4, threadsOfWarpgroup = 128,
                  rowsOfWarpgroup = 64;

/// Of an mbarrier.
constexpr int64_t barrierBytes = 8;

/// Of the 16 named barriers of a block: 0 is that of all its threads; each
/// warpgroup has one at which it alone meets, and one where it waits for its
/// turn; all consumers have one.
constexpr int64_t firstMeetingBarrier = 1, firstTurnBarrier = 8,
                  consumersBarrier = 15;

/// Registers of a thread, by role.
struct RoleRegisters {
  int64_t producer, consumer;
};

/// What roles use of a multiprocessor's registers, by the number of consumer
/// warpgroups (FlashAttention-3, arXiv 2407.08608).
constexpr RoleRegisters getRoleRegisters(int64_t warpgroups) {
  switch (warpgroups) {
  case 1:
    return {40, 232};
  case 2:
    return {24, 240};
  case 3:
    return {32, 160};
  default:
    return {24, 112};
  }
}

} // namespace flash::tile

#endif // FLASH_DIALECT_TILE_IR_WARPGROUPS_H
