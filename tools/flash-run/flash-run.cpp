//===- flash-run.cpp - Compile, run, check and time -----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Main.h"

int main(int argc, char **argv) { return flash::runMain(argc, argv); }
