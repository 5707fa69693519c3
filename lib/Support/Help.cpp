//===- Help.cpp - What --help of a tool shows -----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Support/Help.h"

#include "llvm/Support/CommandLine.h"

void flash::hideOptionsOfLLVM() {
  for (auto &entry : llvm::cl::getRegisteredOptions()) {
    // --help itself and its like.
    llvm::StringRef category = entry.second->Categories.front()->getName();
    if (category != "Generic Options" && category != "Color Options")
      entry.second->setHiddenFlag(llvm::cl::Hidden);
  }
}
