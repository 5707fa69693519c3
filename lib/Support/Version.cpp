//===- Version.cpp - Which flash-mlir this is -----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Support/Version.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"

#if __has_include("Commit.inc")
#include "Commit.inc"
#endif

const char *flash::getVersion() { return FLASH_VERSION; }

void flash::registerVersionPrinter() {
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << "flash-mlir " << flash::getVersion();
#ifdef FLASH_REVISION
    os << " (" << llvm::StringRef(FLASH_REVISION).take_front(12) << ")";
#endif
    os << " with LLVM " << LLVM_VERSION_STRING << "\n";
  });
}
