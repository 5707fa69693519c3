//===- Tools.cpp - The tools as functions ---------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash-c/Tools.h"
#include "flash/Pipelines/OptMain.h"
#include "flash/Run/Main.h"

#include "llvm/ADT/StringRef.h"

#include <vector>

int flashRunTool(const char *name, int count, const char *const *arguments) {
  llvm::StringRef tool(name);
  int (*run)(int, char **) = tool == "flash-opt"   ? flash::optMain
                             : tool == "flash-run" ? flash::runMain
                                                   : nullptr;
  if (!run)
    return -1;
  // LLVM takes what main() is given, and changes none of it.
  std::vector<char *> all = {const_cast<char *>(name)};
  for (int i = 0; i < count; ++i)
    all.push_back(const_cast<char *>(arguments[i]));
  all.push_back(nullptr);
  return run(count + 1, all.data());
}
