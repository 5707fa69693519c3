//===- Passes.h - Passes of the tile dialect --------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_TILE_TRANSFORMS_PASSES_H
#define FLASH_DIALECT_TILE_TRANSFORMS_PASSES_H

#include "flash/Machine/TargetAttr.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"

namespace flash::tile {

#define GEN_PASS_DECL
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"

} // namespace flash::tile

#endif // FLASH_DIALECT_TILE_TRANSFORMS_PASSES_H
