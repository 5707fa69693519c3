//===- CrashGuard.h - Faults of compiled programs ---------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_CRASHGUARD_H
#define FLASH_RUN_CRASHGUARD_H

namespace flash::run {

/// While this object lives, a fault of the process prints a message and ends
/// the process with status 1, instead of printing a stack trace. The program
/// that runs may cause one: it may access memory out of range of a tensor,
/// divide by zero or recurse without end. At most one object may exist at a
/// time.
class CrashGuard {
public:
  CrashGuard();
  ~CrashGuard();
  CrashGuard(const CrashGuard &) = delete;
  CrashGuard &operator=(const CrashGuard &) = delete;
};

} // namespace flash::run

#endif // FLASH_RUN_CRASHGUARD_H
