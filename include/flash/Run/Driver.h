//===- Driver.h - All that flash-run does -----------------------*- C++ -*-===//
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

/// Compiles, runs, checks and times a program. Returns whether all went well;
/// false only after a failed check, which has been reported. Files are written
/// last, results only after a check, if any, that is ok.
llvm::Expected<bool> runProgram(Session &session, const Options &options,
                                Report &report);

} // namespace flash::run

#endif // FLASH_RUN_DRIVER_H
