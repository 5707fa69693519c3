//===- LaunchLimits.h - Limits of launches ----------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Limits that all of today's devices share (CUDA C++ Programming Guide,
// "Technical Specifications per Compute Capability").
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_LAUNCHLIMITS_H
#define FLASH_RUNTIME_LAUNCHLIMITS_H

#include <cstdint>

namespace flash::runtime {

/// The largest sizes of a grid, in blocks, and of a block, in threads, along x,
/// y and z, and the largest number of threads of a block.
inline constexpr int64_t maxGrid[3] = {INT32_MAX, 65535, 65535};
inline constexpr int64_t maxBlock[3] = {1024, 1024, 64};
inline constexpr int64_t maxThreads = 1024;
/// The largest number of bytes of dynamic shared memory that a launch can
/// state. How much a block can have depends on the device.
inline constexpr int64_t maxSharedBytes = INT32_MAX;
/// The bytes of shared memory that a block can have without a call that allows
/// more dynamic shared memory for its kernel.
inline constexpr int64_t defaultSharedBytes = 48 * 1024;

} // namespace flash::runtime

#endif // FLASH_RUNTIME_LAUNCHLIMITS_H
