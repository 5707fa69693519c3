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

/// Runs each line of a file as a command line, with the options at hand as
/// defaults: a program, whose path starts at the file's folder, and flags.
/// Empty lines and those that start with # are left out. Prints a line for
/// each case as it ends and a table of all at the end. Returns whether all
/// went well. An error is one of the suite itself; errors of cases are results.
llvm::Expected<bool> runSuite(Session &session, const Options &options);

} // namespace flash::run

#endif // FLASH_RUN_SUITE_H
