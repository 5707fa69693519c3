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

// The dialect declares discardable attributes whose types are among these
// attributes.
#include "flash/Dialect/Tile/IR/TileDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "flash/Dialect/Tile/IR/TileTypes.h.inc"

namespace flash::tile {
/// The effect of an operation on a stage of a ring; TileRingInterface.td says
/// what each effect means.
enum class RingEffect { Acquire, Fill, Wait, Peek, Release, CheckFinite, Ask };

/// Whether `type` is a tensor whose layout has one value for each row of a
/// matrix (`#tile.rows` or `#tile.warp_rows`).
bool isOfRows(mlir::Type type);

/// The type with a value for each lane that holds elements of a row, instead of
/// one value for each row. `rows` must satisfy `isOfRows`.
mlir::RankedTensorType getLanesType(mlir::RankedTensorType rows);

/// Fails with an error at an operation in a region of `op` that does anything
/// but compute and read memory.
llvm::LogicalResult verifyOnlyReads(mlir::Operation *op);

template <typename Op>
class OnlyReads : public mlir::OpTrait::TraitBase<Op, OnlyReads> {
public:
  static llvm::LogicalResult verifyRegionTrait(mlir::Operation *op) {
    return verifyOnlyReads(op);
  }
};
} // namespace flash::tile

#include "flash/Dialect/Tile/IR/TileRingInterface.h.inc"

#define GET_OP_CLASSES
#include "flash/Dialect/Tile/IR/TileOps.h.inc"

#endif // FLASH_DIALECT_TILE_IR_TILE_H
