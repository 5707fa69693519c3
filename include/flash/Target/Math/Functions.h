//===- Functions.h - Math functions as arithmetic ---------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TARGET_MATH_FUNCTIONS_H
#define FLASH_TARGET_MATH_FUNCTIONS_H

#include "flash/Target/Math/FloatEmitter.h"

namespace flash {

/// Functions of f32 in f32, to about 2e-7, tanh to 3.5e-7 (relative).
/// Results below 2^-125.5 are 0.
namespace single {
mlir::Value exp2(FloatEmitter &e, mlir::Value x);
mlir::Value exp(FloatEmitter &e, mlir::Value x);
mlir::Value tanh(FloatEmitter &e, mlir::Value x);
/// tanh of an x in [-tanhLimit, tanhLimit] as a quotient.
constexpr double tanhLimit = 7.9;
std::pair<mlir::Value, mlir::Value> tanhRatio(FloatEmitter &e, mlir::Value x);
} // namespace single

/// Functions of values that came from f32, computed in f64 so that the result
/// rounded to f32 is accurate to 1e-7 (relative) everywhere, infinities and NaN
/// as in the C standard. They are short, since f64 forgives cancellation and
/// has the range of all intermediate results. They are not accurate enough
/// for results in f64.
namespace wide {
mlir::Value exp2(FloatEmitter &e, mlir::Value x);
mlir::Value expm1(FloatEmitter &e, mlir::Value x);
mlir::Value log(FloatEmitter &e, mlir::Value x);
mlir::Value log2(FloatEmitter &e, mlir::Value x);
mlir::Value log10(FloatEmitter &e, mlir::Value x);
mlir::Value log1p(FloatEmitter &e, mlir::Value x);
mlir::Value cbrt(FloatEmitter &e, mlir::Value x);
mlir::Value pow(FloatEmitter &e, mlir::Value x, mlir::Value y);
/// `n` is a signed integer, or a vector of them, of any width.
mlir::Value powi(FloatEmitter &e, mlir::Value x, mlir::Value n);
mlir::Value sinh(FloatEmitter &e, mlir::Value x);
mlir::Value cosh(FloatEmitter &e, mlir::Value x);
mlir::Value asinh(FloatEmitter &e, mlir::Value x);
mlir::Value acosh(FloatEmitter &e, mlir::Value x);
mlir::Value atanh(FloatEmitter &e, mlir::Value x);
/// For |x| < 2^48; beyond, some value in [-1, 1] (tan: any value).
mlir::Value sin(FloatEmitter &e, mlir::Value x);
mlir::Value cos(FloatEmitter &e, mlir::Value x);
mlir::Value tan(FloatEmitter &e, mlir::Value x);
mlir::Value asin(FloatEmitter &e, mlir::Value x);
mlir::Value acos(FloatEmitter &e, mlir::Value x);
mlir::Value atan(FloatEmitter &e, mlir::Value x);
mlir::Value atan2(FloatEmitter &e, mlir::Value y, mlir::Value x);
mlir::Value erf(FloatEmitter &e, mlir::Value x);
mlir::Value erfc(FloatEmitter &e, mlir::Value x);
/// The remainder of x by y, with the sign of x.
mlir::Value remainder(FloatEmitter &e, mlir::Value x, mlir::Value y);
} // namespace wide

/// Classes of floats, or of vectors of them, of any type: comparisons of the
/// magnitude.
namespace any {
mlir::Value isFinite(FloatEmitter &e, mlir::Value x);
mlir::Value isInfinite(FloatEmitter &e, mlir::Value x);
mlir::Value isNaN(FloatEmitter &e, mlir::Value x);
mlir::Value isNormal(FloatEmitter &e, mlir::Value x);
} // namespace any

/// x^n for integers, as math.ipowi has it; n is a number of `digits` bits.
mlir::Value emitIntegerPower(mlir::OpBuilder &builder, mlir::Location loc,
                             mlir::Value x, mlir::Value n, unsigned digits);

} // namespace flash

#endif // FLASH_TARGET_MATH_FUNCTIONS_H
