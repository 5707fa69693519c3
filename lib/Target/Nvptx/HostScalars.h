//===- HostScalars.h - Scalar operations of host functions ------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_TARGET_NVPTX_HOSTSCALARS_H
#define FLASH_LIB_TARGET_NVPTX_HOSTSCALARS_H

#include "HostBuilder.h"
#include "llvm/ADT/DenseMap.h"

namespace flash {

/// Makes of `arith` and `affine` operations on scalars operations of a host
/// program: index, i32 and i64 become i64, where an i32 keeps its sign and its
/// range; floats, which are only passed on, the i64 with their bits.
class HostScalars {
public:
  explicit HostScalars(HostBuilder &builder) : builder(builder) {}

  /// Whether a value of this type may be yielded and carried by loops.
  static bool isSupported(mlir::Type type);

  /// The value must come from an operation translated before.
  mlir::Value get(mlir::Value value) const { return values.lookup(value); }
  llvm::SmallVector<mlir::Value, 4>
  getMixed(llvm::ArrayRef<mlir::OpFoldResult> values);
  void set(mlir::Value value, mlir::Value result) { values[value] = result; }

  /// Fails, silently, if the operation is none of those or has other types.
  llvm::LogicalResult translate(mlir::Operation *op);

private:
  mlir::Value translateConstant(mlir::Attribute value);
  mlir::Value translateCompare(mlir::Operation *op);
  mlir::Value translateCast(mlir::Operation *op);
  mlir::Value translateBinary(mlir::Operation *op);
  mlir::Value translateArith(mlir::Operation *op);
  mlir::Value translateAffine(mlir::Operation *op);
  mlir::Value choose(mlir::arith::CmpIPredicate predicate, mlir::Value lhs,
                     mlir::Value rhs);
  mlir::Value expand(mlir::AffineExpr expr, mlir::ValueRange operands,
                     unsigned numDims);

  HostBuilder &builder;
  llvm::DenseMap<mlir::Value, mlir::Value> values;
};

} // namespace flash

#endif // FLASH_LIB_TARGET_NVPTX_HOSTSCALARS_H
