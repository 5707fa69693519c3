//===- Events.h - The events of an emulated run -----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_EVENTS_H
#define FLASH_RUN_EVENTS_H

#include "flash/Run/Executor.h"

namespace flash::run {

/// Runs the emulated function once more, and writes the events of block 0 of
/// each launch to a file, in their order. Each line is a JSON object.
llvm::Error writeEvents(llvm::StringRef path, Executor &executor,
                        llvm::ArrayRef<HostTensor> inputs);

} // namespace flash::run

#endif // FLASH_RUN_EVENTS_H
