//===- ScheduleSpace.h - The schedules worth measuring ----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_FLASH_TRANSFORMS_SCHEDULESPACE_H
#define FLASH_DIALECT_FLASH_TRANSFORMS_SCHEDULESPACE_H

#include "flash/Dialect/Flash/IR/Flash.h"

namespace flash {

/// Schedules that the models of a target admit for an op, each complete: the
/// model's own, then all tiles and features with the rest as the model would
/// have it.
llvm::SmallVector<Schedule> listSchedules(AttentionOp op,
                                          llvm::StringRef target);

/// Those that differ from `schedule` in what the above leaves to the model:
/// stages, warps, and how units share keys.
llvm::SmallVector<Schedule> listVariations(AttentionOp op,
                                           llvm::StringRef target,
                                           const Schedule &schedule);

} // namespace flash

#endif // FLASH_DIALECT_FLASH_TRANSFORMS_SCHEDULESPACE_H
