//===- flash-opt.cpp - The optimizer driver -------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Pipelines/OptMain.h"

int main(int argc, char **argv) { return flash::optMain(argc, argv); }
