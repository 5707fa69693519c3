//===- Steps.h - The numbers of steps of rings ------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_TILE_UTILS_STEPS_H
#define FLASH_DIALECT_TILE_UTILS_STEPS_H

#include "mlir/IR/Value.h"

namespace flash::tile {

/// The part of a step that is not known here, null if there is none, and what
/// is added to it.
std::pair<mlir::Value, int64_t> splitStep(mlir::Value step);

} // namespace flash::tile

#endif // FLASH_DIALECT_TILE_UTILS_STEPS_H
