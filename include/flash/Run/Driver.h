//===- Driver.h - A run of flash-run ----------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_DRIVER_H
#define FLASH_RUN_DRIVER_H

#include "flash/Run/Options.h"
#include "flash/Run/Report.h"
#include "flash/Run/Session.h"

namespace flash::run {

/// Does what the options say with one program: compiles, runs, checks and
/// measures it. Returns whether all checks are ok; a check that is not has been
/// reported. Fails if something else goes wrong. Compiled kernels (`-o`) are
/// written first, other files at the end, and results only if all checks are
/// ok.
llvm::Expected<bool> runProgram(Session &session, const Options &options,
                                Report &report);

/// Does so for each target of the options, and returns whether all is ok. If
/// there are several, what is printed for one starts with its name.
llvm::Expected<bool> runTargets(Session &session, Options options);

} // namespace flash::run

#endif // FLASH_RUN_DRIVER_H
