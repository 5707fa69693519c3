//===- TileBuilder.h - linalg on tiles of f32 -------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_FLASH_TRANSFORMS_TILEBUILDER_H
#define FLASH_LIB_DIALECT_FLASH_TRANSFORMS_TILEBUILDER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace flash {

/// Builds linalg on statically shaped tiles. The state of rows, and whatever is
/// computed, is f32.
struct TileBuilder {
  /// Computes the new elements of the outputs from the elements of the inputs
  /// and of the outputs.
  using Body = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::ImplicitLocOpBuilder &, mlir::ValueRange)>;

  explicit TileBuilder(mlir::Operation *op) : b(op->getLoc(), op) {}

  mlir::Value empty(llvm::ArrayRef<int64_t> shape) {
    return empty(shape, b.getF32Type());
  }
  mlir::Value empty(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  mlir::Value filled(llvm::ArrayRef<int64_t> shape, double value);
  /// The map of `loops` loops to the loops `dims`.
  mlir::AffineMap map(unsigned loops, llvm::ArrayRef<unsigned> dims) {
    return mlir::AffineMap::getMultiDimMapWithTargets(loops, dims,
                                                      b.getContext());
  }
  /// The results of a linalg.generic in which the loops that no output has are
  /// reductions. Inputs and outputs are tensors whose maps are `maps`.
  mlir::ValueRange generic(mlir::ValueRange inputs, mlir::ValueRange outputs,
                           llvm::ArrayRef<mlir::AffineMap> maps, Body body);
  /// The same for values of rows, whose maps are identities.
  mlir::ValueRange rows(mlir::ValueRange inputs, mlir::ValueRange outputs,
                        Body body);
  /// Of `count` rows, each the index `number`.
  mlir::Value filledRows(int64_t count, mlir::Value number);
  /// Adds the elements of each row of a tile to the row's element of `sums`.
  mlir::Value addElementsOfRows(mlir::Value tile, mlir::Value sums);

  using Branch = llvm::function_ref<llvm::SmallVector<mlir::Value>()>;
  /// The results of `then` where the condition holds, else of `otherwise`.
  mlir::ValueRange choose(mlir::Value condition, Branch then, Branch otherwise);

  mlir::ImplicitLocOpBuilder b;
};

/// `scalar` as f32.
mlir::Value extendToF32(mlir::ImplicitLocOpBuilder &b, mlir::Value scalar);

/// A scalar of f32 in the type `type`.
mlir::Value truncateF32(mlir::ImplicitLocOpBuilder &b, mlir::Type type,
                        mlir::Value scalar);

/// An index as f32, exact up to 2^24.
mlir::Value emitFloat(mlir::ImplicitLocOpBuilder &b, mlir::Value index);

/// A whole number of f32 as an index.
mlir::Value emitIndex(mlir::ImplicitLocOpBuilder &b, mlir::Value number);

/// The index, or the last one below `end`.
mlir::Value emitBelow(mlir::ImplicitLocOpBuilder &b, mlir::Value index,
                      mlir::Value end);

} // namespace flash

#endif // FLASH_LIB_DIALECT_FLASH_TRANSFORMS_TILEBUILDER_H
