//===- Multiprocessors.h - How many blocks run at a time --------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SUPPORT_MULTIPROCESSORS_H
#define FLASH_SUPPORT_MULTIPROCESSORS_H

#include <cstdint>

namespace flash {

/// What schedules count on: those of an H100 or H200. An A100 has 108. Kernels
/// are right on any number.
constexpr int64_t multiprocessors = 132;

/// The registers of one, which the threads on it share.
constexpr int64_t registersOfMultiprocessor = 64 * 1024;

} // namespace flash

#endif // FLASH_SUPPORT_MULTIPROCESSORS_H
