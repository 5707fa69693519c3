//===- StaticTools.cpp - flash-opt and flash-run as one program -----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Pipelines/OptMain.h"
#include "flash/Run/Main.h"

#include "llvm/Support/Path.h"

/// Called as flash-opt, or by a longer name such as flash-opt-22, it is that
/// tool, and else flash-run.
int main(int argc, char **argv) {
  return llvm::sys::path::filename(argv[0]).starts_with("flash-opt")
             ? flash::optMain(argc, argv)
             : flash::runMain(argc, argv);
}
