//===- Reductions.h - How values are combined -------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_TILE_IR_REDUCTIONS_H
#define FLASH_DIALECT_TILE_IR_REDUCTIONS_H

#include "flash/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/Builders.h"

namespace flash::tile {

/// The operation of arith that combines two values.
mlir::Value combine(mlir::OpBuilder &b, mlir::Location loc, Reduction reduction,
                    mlir::Value x, mlir::Value y);

/// The reduction that the operation of arith is a step of, or nothing.
std::optional<Reduction> getReduction(mlir::Operation *op);

/// What a reduction starts from: combined with a number, it gives that.
double getNeutralElement(Reduction reduction);

} // namespace flash::tile

#endif // FLASH_DIALECT_TILE_IR_REDUCTIONS_H
