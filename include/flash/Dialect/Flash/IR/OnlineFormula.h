//===- OnlineFormula.h - The online softmax of one row ----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formulas of the online softmax (Milakov and Gimelshein, arXiv 1805.02867)
// as arithmetic on scalars of f32, for the bodies of linalg.generic. Whatever
// writes a step, a merge of states or a softmax takes them from here.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_FLASH_IR_ONLINEFORMULA_H
#define FLASH_DIALECT_FLASH_IR_ONLINEFORMULA_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace flash {

/// The unit of a logarithm: scores of an attention are log2, a log-sum-exp is a
/// natural logarithm.
enum class LogUnit { Log2, Natural };

/// A constant of f32.
mlir::Value emitConstant(mlir::ImplicitLocOpBuilder &b, double value);

/// What scores are shifted by before the exponential, given their maximum: the
/// maximum, or 0 while that is -inf, as -inf - -inf would be NaN.
mlir::Value emitShift(mlir::ImplicitLocOpBuilder &b, mlir::Value max);

/// The exponential of `x - shift`, both in `unit`.
mlir::Value emitExponential(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                            mlir::Value shift, LogUnit unit = LogUnit::Log2);

/// 2^(x * factor - shift), with one rounding of the exponent.
mlir::Value emitScaledExponential(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                                  double factor, mlir::Value shift);

/// What exponentials are multiplied by whose sum is `sum`: the inverse, or 1 of
/// a row that has seen no score, whose exponentials are 0.
mlir::Value emitInverseOfSum(mlir::ImplicitLocOpBuilder &b, mlir::Value sum);

/// What further scores do to the maximum of a row.
struct Growth {
  mlir::Value max;
  /// The factor of what was summed up before.
  mlir::Value rescale;
};

/// The maximum after scores whose maximum is `added`, in `unit`. A NaN counts
/// as -inf; it reaches the result through the sum.
Growth emitGrowth(mlir::ImplicitLocOpBuilder &b, mlir::Value max,
                  mlir::Value added, LogUnit unit = LogUnit::Log2);

/// Whether scores exceed the maximum of a row by more than 8, in units of log2:
/// while they do not, the maximum may stay as it is. The largest exponential is
/// then 2^8 instead of 1. Why the result is the same: docs/rationale-levels.md.
mlir::Value emitIsFarAbove(mlir::ImplicitLocOpBuilder &b, mlir::Value max,
                           mlir::Value added);

} // namespace flash

#endif // FLASH_DIALECT_FLASH_IR_ONLINEFORMULA_H
