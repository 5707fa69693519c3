//===- Tune.h - Search for the fastest schedule -----------------*- C++ -*-===//
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

/// Measures the program with many schedules and checks its results with the
/// fastest one. If they are right, adds the schedule to `options.tuningFile`,
/// if there is one. Returns whether they are right; the outcome is in `report`
/// and is printed.
llvm::Expected<bool> tuneProgram(Session &session, const Program &program,
                                 const Options &options, Report &report);

} // namespace flash::run

#endif // FLASH_RUN_TUNE_H
