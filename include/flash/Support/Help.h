//===- Help.h - What --help of a tool shows ---------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SUPPORT_HELP_H
#define FLASH_SUPPORT_HELP_H

namespace flash {

/// Hides the options that are registered by now, which are LLVM's: hundreds of
/// its optimizer and its code generators, among which --help would hide the
/// rest. --help-hidden shows them. Call this before others are registered.
void hideOptionsOfLLVM();

} // namespace flash

#endif // FLASH_SUPPORT_HELP_H
