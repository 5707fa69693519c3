//===- Version.h - Which flash-mlir this is ---------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SUPPORT_VERSION_H
#define FLASH_SUPPORT_VERSION_H

namespace flash {

/// Such as "0.1.0".
const char *getVersion();

/// Has `--version` of a tool print it, beside LLVM's. Call this before the
/// command line is parsed.
void registerVersionPrinter();

} // namespace flash

#endif // FLASH_SUPPORT_VERSION_H
