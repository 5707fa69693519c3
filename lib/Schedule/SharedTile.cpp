//===- SharedTile.cpp - Bytes of a tile in shared memory ------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Schedule/SharedTile.h"

#include "llvm/Support/MathExtras.h"

int64_t flash::getSharedTileBytes(int64_t rows, int64_t columns,
                                  int64_t elementBytes, int64_t swizzle) {
  int64_t panels = llvm::divideCeil(columns, swizzle / elementBytes);
  return llvm::alignTo(rows * swizzle * panels, 8 * swizzle);
}
