//===- Targets.h - The list of the described GPUs ---------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_TARGETS_H
#define FLASH_RUN_TARGETS_H

#include "llvm/Support/raw_ostream.h"

namespace flash::run {

/// Prints a line for each GPU that has a description (Machine.h), below a line
/// with the names of the columns.
void printTargets(llvm::raw_ostream &os);

} // namespace flash::run

#endif // FLASH_RUN_TARGETS_H
