//===- ScoreGradient.h - Derivatives of score regions -----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The derivative of a score region in reverse mode, as scalar code over arith
// and math behind the region's own: linear in the number of its operations, and
// nothing for a value whose gradient nobody needs.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_FLASH_UTILS_SCOREGRADIENT_H
#define FLASH_DIALECT_FLASH_UTILS_SCOREGRADIENT_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace flash {

/// What one read of a captured tensor adds to the gradient of that tensor.
struct ReadGradient {
  /// The read, in the region.
  mlir::tensor::ExtractOp read;
  /// Where it reads.
  llvm::SmallVector<mlir::Value> indices;
  /// The gradient of the element that is read; 0 where the read has no part in
  /// the result.
  mlir::Value gradient;
};

/// The gradients of what goes into a score region.
struct ScoreGradient {
  /// The gradient of the score; null if the result does not depend on it.
  mlir::Value score;
  /// One for each read of a captured tensor whose gradient is wanted and that
  /// the result depends on.
  llvm::SmallVector<ReadGradient> reads;
  /// For each captured value whose gradient is wanted: the gradient of a
  /// scalar; null for tensors, and if the result does not depend on it.
  llvm::SmallVector<mlir::Value> scalars;
};

/// Emits the gradients of the score and of `captured`, values from outside that
/// `region` uses (float scalars and tensors of floats), given the gradient of
/// the region's result. `values` is what the values of the region have become,
/// see emitScoreValues. Gradients have the type of their value, but f32 where
/// the value has less than 32 bits. Where `condition`, an i1 or null, does not
/// hold, all gradients are 0, whatever the values are.
///
/// Fails after an error at an operation that has no derivative here.
mlir::FailureOr<ScoreGradient>
emitScoreGradient(mlir::OpBuilder &b, mlir::Region &region,
                  const mlir::IRMapping &values, mlir::Value resultGradient,
                  mlir::Value condition, mlir::ValueRange captured = {});

} // namespace flash

#endif // FLASH_DIALECT_FLASH_UTILS_SCOREGRADIENT_H
