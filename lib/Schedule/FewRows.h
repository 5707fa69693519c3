//===- FewRows.h - Schedules for few queries of each key head ---*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In decoding, few queries read many keys, and memory is what a kernel waits
// for. Products of warpgroups have at least 64 rows, and most are then empty.
// Kernels without roles have tiles of 16 rows, and blocks of one warp:
// several of them share a multiprocessor, so that some copy while others begin,
// end or multiply.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_SCHEDULE_FEWROWS_H
#define FLASH_LIB_SCHEDULE_FEWROWS_H

#include "flash/Machine/Machine.h"
#include "flash/Schedule/Problem.h"
#include "flash/Schedule/Schedule.h"

namespace flash {

/// The schedule for a problem with so few rows and so many keys that blocks of
/// one or two warps are faster than warps with roles. Nothing for other
/// problems, for targets whose warps have no roles, and if `given` has keys
/// that are of roles, or decide which bits a row has (`split_keys` without
/// `features`).
std::optional<Schedule> chooseForFewRows(const Problem &problem,
                                         const Machine &target,
                                         const Schedule &given);

/// The number of blocks that run at the same time on all multiprocessors, as
/// far as shared memory and registers decide. Warps have no roles.
int64_t countBlocksAtOnce(const Problem &problem, const Machine &target,
                          const Schedule &schedule);

} // namespace flash

#endif // FLASH_LIB_SCHEDULE_FEWROWS_H
