//===- SharedTile.cpp - Bytes of a tile in shared memory ------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Schedule/SharedTile.h"

#include "llvm/Support/MathExtras.h"

/// What a product of a warpgroup reads of a row at a time.
static constexpr int64_t bytesOfStep = 32;

int64_t flash::getSharedTilePanels(int64_t rowBytes, int64_t swizzle) {
  return llvm::divideCeil(llvm::alignTo(rowBytes, bytesOfStep), swizzle);
}

int64_t flash::getSharedTileBytes(int64_t rows, int64_t columns,
                                  int64_t elementBytes, int64_t swizzle) {
  int64_t panels = getSharedTilePanels(columns * elementBytes, swizzle);
  return llvm::alignTo(rows * swizzle * panels, 8 * swizzle);
}
