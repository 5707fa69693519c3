//===- CrashGuard.h - Faults of compiled programs ---------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_CRASHGUARD_H
#define FLASH_RUN_CRASHGUARD_H

namespace flash::run {

/// While it lives, a fault ends the process with a message and status 1, not
/// with a stack trace of this tool: the program that runs may index a tensor
/// out of range, divide by zero or recurse without end.
class CrashGuard {
public:
  CrashGuard();
  ~CrashGuard();
  CrashGuard(const CrashGuard &) = delete;
  CrashGuard &operator=(const CrashGuard &) = delete;
};

} // namespace flash::run

#endif // FLASH_RUN_CRASHGUARD_H
