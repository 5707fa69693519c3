//===- BodyEmitter.h - The body of a linalg operation on tiles --*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_LINALGTOTILE_BODYEMITTER_H
#define FLASH_LIB_CONVERSION_LINALGTOTILE_BODYEMITTER_H

#include "Layouts.h"
#include "mlir/IR/IRMapping.h"
#include <functional>

namespace flash {

/// Emits what the body of a linalg operation computes for all elements of a
/// tile. Arithmetic becomes the same operations on tiles, on vectors for each
/// row or column or on scalars as long as these will do. A body that uses
/// positions or reads memory becomes a `tile.map`.
class BodyEmitter {
public:
  /// The kernel's value for a scalar from outside of the body.
  using Lookup = std::function<mlir::Value(mlir::Value)>;
  /// Copies an operation on scalars, which may read memory. Fails, after an
  /// error at it, where it takes an element of a tile.
  using CopyScalar = std::function<mlir::LogicalResult(
      mlir::OpBuilder &, mlir::Operation &, mlir::IRMapping &)>;

  /// `shape` is the tile's; of a vector, `of` says of what.
  BodyEmitter(mlir::OpBuilder &b, mlir::linalg::LinalgOp op,
              const Layouts &layouts, llvm::ArrayRef<int64_t> shape,
              VectorOf of, Lookup lookup, CopyScalar copyScalar)
      : b(b), op(op), loc(op.getLoc()), layouts(layouts), shape(shape), of(of),
        lookup(std::move(lookup)), copyScalar(std::move(copyScalar)) {}

  /// Says what a block argument is: a scalar, a tile, or a vector. It may have
  /// elements of f32 that are ones of the argument's type.
  void setArgument(unsigned number, mlir::Value value);
  /// Says what the index of a loop is: a scalar, or the dimension of the tile.
  void setIndex(unsigned loop, mlir::Value index) { indices[loop] = index; }
  void setIndex(unsigned loop, unsigned dim) { dims[loop] = dim; }

  /// The tile of the body's value `wanted`. Fails after an error at the
  /// operation of the body that tiles do not have.
  mlir::FailureOr<mlir::Value> emit(mlir::Value wanted);

private:
  /// The operations of the body that `wanted` depends on, in their order.
  llvm::SmallVector<mlir::Operation *> getOpsFor(mlir::Value wanted);
  void emitArithmetic(mlir::Operation *op);
  mlir::FailureOr<mlir::Value> emitMap(mlir::Value wanted,
                                       llvm::ArrayRef<mlir::Operation *> ops);
  /// The type of a tile with elements of `element` and the layout of the tile,
  /// or of its vectors.
  mlir::RankedTensorType getType(mlir::Type element) {
    return layouts.getType(shape, element, of);
  }
  /// `value` as a tile of `type`, which has as many dimensions or more.
  mlir::Value lift(mlir::Value value, mlir::RankedTensorType type);
  /// What a value of the body, or from outside, has become.
  mlir::Value resolve(mlir::Value value);

  mlir::OpBuilder &b;
  mlir::linalg::LinalgOp op;
  mlir::Location loc;
  const Layouts &layouts;
  llvm::ArrayRef<int64_t> shape;
  VectorOf of;
  Lookup lookup;
  CopyScalar copyScalar;
  mlir::IRMapping values;
  /// The values among `values` that were given.
  llvm::SmallVector<mlir::Value> given;
  llvm::DenseMap<unsigned, mlir::Value> indices;
  llvm::DenseMap<unsigned, unsigned> dims;
};

/// A tile whose elements are all the scalar.
mlir::Value emitSplat(mlir::OpBuilder &b, mlir::Location loc,
                      mlir::Value scalar, mlir::RankedTensorType type);

/// Whether the operation applies to each element of tiles as it does to
/// scalars: it takes and gives floats and conditions.
bool isTileArithmetic(mlir::Operation *op);

} // namespace flash

#endif // FLASH_LIB_CONVERSION_LINALGTOTILE_BODYEMITTER_H
