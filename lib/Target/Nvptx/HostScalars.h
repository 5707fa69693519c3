//===- HostScalars.h - Scalar operations as plan instructions ---*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_TARGET_NVPTX_HOSTSCALARS_H
#define FLASH_LIB_TARGET_NVPTX_HOSTSCALARS_H

#include "flash/Runtime/LaunchPlanBuilder.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/Value.h"

namespace flash {

/// Turns `arith` and `affine` operations on scalars into instructions.
class HostScalars {
public:
  explicit HostScalars(runtime::LaunchPlanBuilder &builder)
      : builder(builder) {}

  /// The value must come from an operation translated before.
  runtime::Register get(mlir::Value value) const {
    return registers.lookup(value);
  }
  llvm::SmallVector<runtime::Register, 4>
  getMixed(llvm::ArrayRef<mlir::OpFoldResult> values);
  void set(mlir::Value value, runtime::Register result) {
    registers[value] = result;
  }

  /// Fails, silently, if the operation is none of those or has other types.
  llvm::LogicalResult translate(mlir::Operation *op);

private:
  std::optional<runtime::Register> translateConstant(mlir::Attribute value);
  std::optional<runtime::Register> translateCompare(mlir::Operation *op);
  std::optional<runtime::Register> translateCast(mlir::Operation *op);
  std::optional<runtime::Register> translateArith(mlir::Operation *op);
  std::optional<runtime::Register> translateAffine(mlir::Operation *op);
  runtime::Register expand(mlir::AffineExpr expr, mlir::ValueRange operands,
                           unsigned numDims);

  runtime::LaunchPlanBuilder &builder;
  llvm::DenseMap<mlir::Value, runtime::Register> registers;
};

} // namespace flash

#endif // FLASH_LIB_TARGET_NVPTX_HOSTSCALARS_H
