//===- Tile.h - The tile dialect --------------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_TILE_IR_TILE_H
#define FLASH_DIALECT_TILE_IR_TILE_H

#include "flash/Schedule/Schedule.h"
#include "flash/Support/DeclaredAttributes.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "flash/Dialect/Tile/IR/TileEnums.h.inc"

#include "flash/Dialect/Tile/IR/TileLayoutInterface.h.inc"

#define GET_ATTRDEF_CLASSES
#include "flash/Dialect/Tile/IR/TileAttrs.h.inc"

// Has attributes that are declared there.
#include "flash/Dialect/Tile/IR/TileDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "flash/Dialect/Tile/IR/TileTypes.h.inc"

namespace flash::tile {
/// What an operation does to the stage of a ring, see TileRingInterface.td.
enum class RingEffect { Acquire, Fill, Wait, Peek, Release, CheckFinite, Ask };

/// Whether the tensor has a value for each row of matrices.
bool isOfRows(mlir::Type type);

/// The type of a value for each lane that has elements of these rows; `rows`
/// has one value for each row.
mlir::RankedTensorType getLanesType(mlir::RankedTensorType rows);
} // namespace flash::tile

#include "flash/Dialect/Tile/IR/TileRingInterface.h.inc"

#define GET_OP_CLASSES
#include "flash/Dialect/Tile/IR/TileOps.h.inc"

#endif // FLASH_DIALECT_TILE_IR_TILE_H
