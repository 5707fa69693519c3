//===- MaskConditions.h - Conditions on tiles of a mask, as IR --*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_FLASH_UTILS_MASKCONDITIONS_H
#define FLASH_DIALECT_FLASH_UTILS_MASKCONDITIONS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IntegerSet.h"

namespace flash {

/// Emits whether the point `dims` lies in `set`, or in one of `sets`, whose
/// symbols are `symbols`: index values all. `MaskTiles` has such sets.
mlir::Value emitIsIn(mlir::OpBuilder &b, mlir::Location loc,
                     mlir::IntegerSet set, mlir::ValueRange dims,
                     mlir::ValueRange symbols);
mlir::Value emitIsInAny(mlir::OpBuilder &b, mlir::Location loc,
                        llvm::ArrayRef<mlir::IntegerSet> sets,
                        mlir::ValueRange dims, mlir::ValueRange symbols);

} // namespace flash

#endif // FLASH_DIALECT_FLASH_UTILS_MASKCONDITIONS_H
