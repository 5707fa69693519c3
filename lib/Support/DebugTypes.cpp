//===- DebugTypes.cpp - What LLVM_DEBUG prints ----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Support/DebugTypes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <string>
#include <vector>

static bool read() {
  const char *text = std::getenv("FLASH_DEBUG_ONLY");
  if (!text || !*text)
    return false;
#ifdef NDEBUG
  llvm::errs() << "FLASH_DEBUG_ONLY has no effect: this is built without "
                  "-DFLASH_ASSERTIONS=ON\n";
  return false;
#else
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::SplitString(text, parts, ",");
  std::vector<std::string> names(parts.begin(), parts.end());
  std::vector<const char *> types;
  for (const std::string &name : names)
    types.push_back(name.c_str());
  llvm::DebugFlag = true;
  llvm::setCurrentDebugTypes(types.data(), types.size());
  return true;
#endif
}

void flash::readDebugTypes() {
  // The types are of the process.
  [[maybe_unused]] static bool once = read();
}
