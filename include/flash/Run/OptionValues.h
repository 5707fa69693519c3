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

// Each function reads the value of a command-line option into `options`. Error
// messages quote the value and list what is valid.
llvm::Error parseTargets(llvm::StringRef names, Options &options);
llvm::Error parseLayout(llvm::StringRef layout, Options &options);
llvm::Error parseFill(llvm::StringRef text, Options &options);
llvm::Error parseShape(llvm::StringRef text, Options &options);

} // namespace flash::run

#endif // FLASH_RUN_OPTIONVALUES_H
