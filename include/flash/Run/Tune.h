//===- Tune.h - Which schedule is fastest -----------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_TUNE_H
#define FLASH_RUN_TUNE_H

#include "flash/Run/Options.h"
#include "flash/Run/Report.h"
#include "flash/Run/Session.h"

namespace flash::run {

/// Times the program with schedules that fit, checks the fastest, and adds it
/// to the tuning file, if there is one. Returns whether the check went well.
llvm::Expected<bool> tuneProgram(Session &session, const Program &program,
                                 const Options &options, Report &report);

} // namespace flash::run

#endif // FLASH_RUN_TUNE_H
