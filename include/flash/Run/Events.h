//===- Events.h - What an emulated run does, in order -----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_EVENTS_H
#define FLASH_RUN_EVENTS_H

#include "flash/Run/Executor.h"

namespace flash::run {

/// Runs the emulated function once more and writes what the first block of each
/// of its kernels does: an object of JSON in each line.
llvm::Error writeEvents(llvm::StringRef path, Executor &executor,
                        llvm::ArrayRef<HostTensor> inputs);

} // namespace flash::run

#endif // FLASH_RUN_EVENTS_H
