//===- OutputFile.h - Files that appear when complete -----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SUPPORT_OUTPUTFILE_H
#define FLASH_SUPPORT_OUTPUTFILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace flash {

/// Checks, before hours of work, that a file can be created at `path`.
llvm::Error checkWritable(llvm::StringRef path);

/// Writes a temporary file beside `path` and renames it once it is complete, so
/// that nobody ever sees half a file.
llvm::Error writeFile(llvm::StringRef path,
                      llvm::function_ref<void(llvm::raw_ostream &)> write);

} // namespace flash

#endif // FLASH_SUPPORT_OUTPUTFILE_H
