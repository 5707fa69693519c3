//===- ScheduleModels.h - Which tiles fit which machine ---------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_FLASH_TRANSFORMS_SCHEDULEMODELS_H
#define FLASH_LIB_DIALECT_FLASH_TRANSFORMS_SCHEDULEMODELS_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Support/Multiprocessors.h"

namespace flash {

/// Bytes of shared memory of a block: the tile of queries, and as many tiles of
/// keys and of values as there are stages.
int64_t getSharedBytes(AttentionOp op, const Schedule &schedule);

/// Lets units share keys where the tiles of queries may be few, for warps
/// without roles. Tiles become smaller where that makes a block for more of the
/// multiprocessors, or fewer partial results because fewer units share the same
/// keys.
void shareKeys(AttentionOp op, Schedule &schedule);

/// The best schedule for threads with vectors and caches.
Schedule chooseCpuSchedule(AttentionOp op);

/// The best schedule for tensor cores by mma.sync and copies by cp.async.
Schedule chooseSm80Schedule(AttentionOp op);

/// Checks that a block of `schedule` has the shape that tensor cores need, and
/// enough registers and shared memory; otherwise emits an error with the
/// figures at `op`. Fills in the number of warps and stages if they are 0.
mlir::LogicalResult completeSm80Schedule(AttentionOp op, Schedule &schedule);

/// Whether the op's products are those that warpgroups can do.
bool hasSm90Schedule(AttentionOp op);

/// Whether tiles of such sizes, 0 for any, can be those of warpgroups.
bool canHaveSm90Tiles(int64_t queryTile, int64_t keyTile);

/// As the above, for products of warpgroups and bulk copies.
Schedule chooseSm90Schedule(AttentionOp op);
mlir::LogicalResult completeSm90Schedule(AttentionOp op, Schedule &schedule);

/// The models of a target for an op.
struct Models {
  Schedule (*choose)(AttentionOp);
  /// Null if any schedule will do.
  mlir::LogicalResult (*complete)(AttentionOp, Schedule &);
};
/// `hasRoles` says whether warps may have roles.
Models getModels(AttentionOp op, llvm::StringRef target, bool hasRoles);

/// The number of blocks that fill the GPU, if a tile has so many queries, for
/// warps without roles.
int64_t getFillingBlocks(int64_t queryTile);

} // namespace flash

#endif // FLASH_LIB_DIALECT_FLASH_TRANSFORMS_SCHEDULEMODELS_H
