//===- InputFile.h - Files that people name ---------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SUPPORT_INPUTFILE_H
#define FLASH_SUPPORT_INPUTFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

namespace flash {

/// Reads a text file; `-` is stdin. Devices and pipes may never end: more than
/// 64 MiB of one is an error. So is what cannot be read; the message says why,
/// not which file.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readTextFile(llvm::StringRef path);

} // namespace flash

#endif // FLASH_SUPPORT_INPUTFILE_H
