//===- OnlineFormula.h - The online softmax of one row ----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formulas of the online softmax (Milakov and Gimelshein, arXiv 1805.02867)
// as arithmetic on scalars of f32, for the bodies of linalg.generic. All passes
// that emit a step, a merge of states or a softmax use these functions. All
// values are f32, and no function fails.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_FLASH_IR_ONLINEFORMULA_H
#define FLASH_DIALECT_FLASH_IR_ONLINEFORMULA_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace flash {

/// A constant of f32.
mlir::Value emitConstant(mlir::ImplicitLocOpBuilder &b, double value);

/// The number that is subtracted from scores before the exponential. It is the
/// maximum of the scores, or 0 if the maximum is -inf, since -inf - -inf is
/// NaN.
mlir::Value emitShift(mlir::ImplicitLocOpBuilder &b, mlir::Value max);

/// The exponential of `unit * (x - shift)`. The difference is rounded once,
/// before it is multiplied.
mlir::Value emitExponential(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                            mlir::Value shift, double unit = 1.0);

/// 2^(x * factor - shift), with one rounding of the exponent.
mlir::Value emitScaledExponential(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                                  mlir::Value factor, mlir::Value shift);

/// As `emitScaledExponential`, but at most 1 where the shift is near 2^25 or
/// larger: the rounding error of the exponent could make the power arbitrarily
/// large there.
mlir::Value emitProbability(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                            mlir::Value factor, mlir::Value shift);

/// The factor that normalizes exponentials whose sum is `sum`. It is 1 / sum,
/// or 1 for a row without scores, whose exponentials are 0.
mlir::Value emitInverseOfSum(mlir::ImplicitLocOpBuilder &b, mlir::Value sum);

/// The maximum of a row after further scores, and the rescaling of what was
/// accumulated.
struct Growth {
  mlir::Value max;
  /// The factor by which earlier sums are multiplied.
  mlir::Value rescale;
};

/// The growth of `max` by scores whose maximum is `added`. A NaN counts as -inf
/// here; it reaches the result through the sum.
Growth emitGrowth(mlir::ImplicitLocOpBuilder &b, mlir::Value max,
                  mlir::Value added);

/// Whether the maximum of a state may be held in this unit, which is so from
/// 2^-64 to 2^64. Quotients of the bounds of scores by such units are within
/// f32.
bool isUnit(double unit);

/// The exponentials of an online step, exp(unit * (x - max)), as
///
///   exp2(x * factor - shift),  shift = max * factor,
///
/// which is one fused multiply-add for each element. The shift is rounded, so
/// all exponentials of a row have the same error, a factor 2^r in which r is at
/// most half of the last bit of the shift. The sum by which they are divided
/// has the same factor. The multiplier `factor` is unit * log2(e), except where
/// the shift is so large that 2^r might leave the range of the numbers. There
/// it is a power of two near unit * log2(e). Then r is 0, and scores that are
/// not the maximum are so far below it that their exponentials vanish with
/// either multiplier.
class OnlineExponential {
public:
  /// The exponentials are held in f32 and, as operands of products, in `type`.
  /// `unit` must satisfy `isUnit`. Without `isExact` all rows have the
  /// multiplier unit * log2(e), and results are undefined for rows with large
  /// shifts.
  OnlineExponential(double unit, mlir::Type type, bool isExact = true);

  mlir::Value emitFactor(mlir::ImplicitLocOpBuilder &b, mlir::Value max) const;
  /// The shift of a row. It is finite if the maximum is -inf, since -inf - -inf
  /// is NaN.
  mlir::Value emitShift(mlir::ImplicitLocOpBuilder &b, mlir::Value max,
                        mlir::Value factor) const;
  /// The factor by which sums for the maximum `max` are multiplied when the
  /// maximum becomes `newMax`.
  mlir::Value emitRescale(mlir::ImplicitLocOpBuilder &b, mlir::Value max,
                          mlir::Value newMax) const;
  /// As `flash::emitGrowth`, with these exponentials.
  Growth emitGrowth(mlir::ImplicitLocOpBuilder &b, mlir::Value max,
                    mlir::Value added) const;
  /// Whether scores exceed the maximum of a row by more than 8, in units of
  /// log2. If they do not, the maximum may stay as it is, and the largest
  /// exponential is 2^8 instead of 1. docs/rationale-levels.md says why the
  /// result is the same.
  mlir::Value emitIsFarAbove(mlir::ImplicitLocOpBuilder &b, mlir::Value max,
                             mlir::Value added) const;

private:
  double factor, largeFactor;
  /// The least magnitude of a maximum for which the multiplier is
  /// `largeFactor`.
  double large;
};

} // namespace flash

#endif // FLASH_DIALECT_FLASH_IR_ONLINEFORMULA_H
