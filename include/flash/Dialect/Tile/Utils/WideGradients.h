//===- WideGradients.h - Loops that sum up wide gradients -------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_TILE_UTILS_WIDEGRADIENTS_H
#define FLASH_DIALECT_TILE_UTILS_WIDEGRADIENTS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace flash::tile {

/// Whether the loop, over tiles of queries, carries matrices that are wide
/// gradients of keys and values (`areGradientsWide` in Warpgroups.h).
bool sumsUpWideGradients(mlir::scf::ForOp loop);

} // namespace flash::tile

#endif // FLASH_DIALECT_TILE_UTILS_WIDEGRADIENTS_H
