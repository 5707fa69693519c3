//===- Suite.h - Many programs in one process -------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_SUITE_H
#define FLASH_RUN_SUITE_H

#include "flash/Run/Options.h"
#include "flash/Run/Session.h"

namespace flash::run {

/// Runs each line of the file `options.suite` as a command line. It has the
/// path of a program, relative to the folder of the file, and options, whose
/// defaults are `options`. Empty lines and lines that start with # are skipped.
/// Prints a line for each case when it ends, and a table of all cases at the
/// end. Returns whether all cases ran and went well. Fails only if the suite
/// itself cannot be run; errors of cases are outcomes. If a case loses the GPU,
/// further cases are not run.
llvm::Expected<bool> runSuite(Session &session, const Options &options);

} // namespace flash::run

#endif // FLASH_RUN_SUITE_H
