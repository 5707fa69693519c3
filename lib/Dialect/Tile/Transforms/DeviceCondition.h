//===- DeviceCondition.h - What kernels decide for the host -----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_TILE_TRANSFORMS_DEVICECONDITION_H
#define FLASH_LIB_DIALECT_TILE_TRANSFORMS_DEVICECONDITION_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <optional>

namespace flash::tile {

/// A comparison of an element of memory that kernels write with a constant. The
/// host does not know it, so kernels read the element.
struct DeviceCondition {
  mlir::arith::CmpIOp compare;
  mlir::tensor::ExtractOp read;
  /// A memref with the element.
  mlir::Value memory;

  /// The comparison that an i1 is; none if it is something else.
  static std::optional<DeviceCondition> of(mlir::Value condition);
  /// Emits whether the comparison holds for the element of `memory`, which is
  /// what a kernel has for the member of this name.
  mlir::Value emit(mlir::OpBuilder &b, mlir::Location loc, mlir::Value memory);
};

} // namespace flash::tile

#endif // FLASH_LIB_DIALECT_TILE_TRANSFORMS_DEVICECONDITION_H
