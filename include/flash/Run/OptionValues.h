//===- OptionValues.h - The values of flags ---------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_OPTIONVALUES_H
#define FLASH_RUN_OPTIONVALUES_H

#include "flash/Run/Options.h"

namespace flash::run {

/// The elements of a comma-separated list, none of which may be empty.
llvm::Expected<std::vector<std::string>> splitList(llvm::StringRef flag,
                                                   llvm::StringRef text);

// Each reads the value of a flag into the options. Errors quote the value and
// say what is legal.
llvm::Error parseTarget(llvm::StringRef target, Options &options);
llvm::Error parseLayout(llvm::StringRef layout, Options &options);
llvm::Error parseFill(llvm::StringRef text, Options &options);
llvm::Error parseOutput(llvm::StringRef output, llvm::StringRef header,
                        Options &options);
llvm::Error parseShape(llvm::StringRef text, Options &options);
llvm::Error parseDump(llvm::StringRef text, Options &options);
llvm::Error parseSchedule(llvm::StringRef text, Options &options);

} // namespace flash::run

#endif // FLASH_RUN_OPTIONVALUES_H
