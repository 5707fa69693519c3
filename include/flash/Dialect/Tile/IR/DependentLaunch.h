//===- DependentLaunch.h - Launches that overlap ----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_TILE_IR_DEPENDENTLAUNCH_H
#define FLASH_DIALECT_TILE_IR_DEPENDENTLAUNCH_H

#include "llvm/ADT/StringRef.h"

namespace flash::tile {

/// An attribute of a gpu.launch_func: the kernel may start before the one
/// launched before it has ended, for which it waits itself
/// (tile.await_dependencies).
constexpr llvm::StringLiteral dependentLaunchAttr = "tile.dependent";

} // namespace flash::tile

#endif // FLASH_DIALECT_TILE_IR_DEPENDENTLAUNCH_H
