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

/// A constant of f32.
mlir::Value emitConstant(mlir::ImplicitLocOpBuilder &b, double value);

/// What scores are shifted by before the exponential, given their maximum: the
/// maximum, or 0 while that is -inf, as -inf - -inf would be NaN.
mlir::Value emitShift(mlir::ImplicitLocOpBuilder &b, mlir::Value max);

/// The exponential of `unit * (x - shift)`, whose difference has no more than
/// its own rounding.
mlir::Value emitExponential(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                            mlir::Value shift, double unit = 1.0);

/// 2^(x * factor - shift), with one rounding of the exponent.
mlir::Value emitScaledExponential(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                                  mlir::Value factor, mlir::Value shift);

/// The same, and at most 1 where the shift is close to 2^25 or beyond, so that
/// the power could be any.
mlir::Value emitProbability(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                            mlir::Value factor, mlir::Value shift);

/// What exponentials are multiplied by whose sum is `sum`: the inverse, or 1 of
/// a row that has seen no score, whose exponentials are 0.
mlir::Value emitInverseOfSum(mlir::ImplicitLocOpBuilder &b, mlir::Value sum);

/// What further scores do to the maximum of a row.
struct Growth {
  mlir::Value max;
  /// The factor of what was summed up before.
  mlir::Value rescale;
};

/// The maximum after scores whose maximum is `added`. A NaN counts as -inf; it
/// reaches the result through the sum.
Growth emitGrowth(mlir::ImplicitLocOpBuilder &b, mlir::Value max,
                  mlir::Value added);

/// Whether the maximum of a state may be in this unit: its quotients by the
/// bounds of scores are within f32.
bool isUnit(double unit);

/// The exponentials of an online step, exp(unit * (x - max)), as
///
///   exp2(x * factor - shift),  shift = max * factor,
///
/// which is one multiplication with addition for an element. The shift is
/// rounded, so all exponentials of a row are too large by the same 2^r, where r
/// is at most half of the last bit of the shift; what they are divided by is,
/// too. The factor is unit * log2(e), but a power of two near it where the
/// shift is so large that 2^r might leave the range of the numbers. Then r is
/// 0, and scores that are not the maximum are below it by so much that their
/// exponentials vanish with either factor.
class OnlineExponential {
public:
  /// The exponentials are held in f32 and, for products, in `type`. Without
  /// `isExact` the factor is the same for all rows, and the result of large
  /// ones undefined.
  OnlineExponential(double unit, mlir::Type type, bool isExact = true);

  mlir::Value emitFactor(mlir::ImplicitLocOpBuilder &b, mlir::Value max) const;
  /// Finite while the maximum is -inf, as -inf - -inf would be NaN.
  mlir::Value emitShift(mlir::ImplicitLocOpBuilder &b, mlir::Value max,
                        mlir::Value factor) const;
  /// What was summed up below `max` is multiplied by this below `newMax`.
  mlir::Value emitRescale(mlir::ImplicitLocOpBuilder &b, mlir::Value max,
                          mlir::Value newMax) const;
  /// As `flash::emitGrowth`.
  Growth emitGrowth(mlir::ImplicitLocOpBuilder &b, mlir::Value max,
                    mlir::Value added) const;
  /// Whether scores exceed the maximum of a row by more than 8, in units of
  /// log2: while they do not, the maximum may stay as it is. The largest
  /// exponential is then 2^8 instead of 1. Why the result is the same:
  /// docs/rationale-levels.md.
  mlir::Value emitIsFarAbove(mlir::ImplicitLocOpBuilder &b, mlir::Value max,
                             mlir::Value added) const;

private:
  double factor, largeFactor;
  /// The least magnitude of a maximum that takes `largeFactor`.
  double large;
};

} // namespace flash

#endif // FLASH_DIALECT_FLASH_IR_ONLINEFORMULA_H
