//===- Main.h - flash-run ---------------------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_MAIN_H
#define FLASH_RUN_MAIN_H

namespace flash {

/// The main function of flash-run, which compiles, runs, checks and times
/// programs. Returns the exit status, with which the process should end at
/// once.
int runMain(int argc, char **argv);

} // namespace flash

#endif // FLASH_RUN_MAIN_H
