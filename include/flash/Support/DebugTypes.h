//===- DebugTypes.h - What LLVM_DEBUG prints --------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SUPPORT_DEBUGTYPES_H
#define FLASH_SUPPORT_DEBUGTYPES_H

namespace flash {

/// Lets LLVM_DEBUG print what has one of the debug types in the environment
/// variable FLASH_DEBUG_ONLY, such as "flash-schedule,tile-overlap". The
/// libraries of LLVM, which are built without assertions, have no --debug-only.
void readDebugTypes();

} // namespace flash

#endif // FLASH_SUPPORT_DEBUGTYPES_H
