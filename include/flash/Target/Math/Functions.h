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

/// Functions of f32 that are computed in f32. The relative error is about 2e-7,
/// and 3.5e-7 for tanh. Results with a magnitude below 2^-125.5 are 0.
namespace single {
mlir::Value exp2(FloatEmitter &e, mlir::Value x);
mlir::Value exp(FloatEmitter &e, mlir::Value x);
mlir::Value tanh(FloatEmitter &e, mlir::Value x);
/// The numerator and the denominator of a quotient that is tanh(x), for x from
/// -tanhLimit to tanhLimit.
constexpr double tanhLimit = 7.9;
std::pair<mlir::Value, mlir::Value> tanhRatio(FloatEmitter &e, mlir::Value x);
} // namespace single

/// Functions of values that were converted from f32, computed in f64. The
/// result rounded to f32 has a relative error of at most 1e-7 for all
/// arguments. Infinities and NaN are handled as in the C standard. The
/// functions are short, because in f64 cancellation does no harm to such
/// results, and all intermediate results are in range. They are not accurate
/// enough for results in f64.
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
/// Accurate for |x| < 2^48. For larger |x| the result is some value from -1 to
/// 1, and any value for tan.
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

/// Tests of floats of any type, or of vectors of them. They compare magnitudes.
namespace any {
mlir::Value isFinite(FloatEmitter &e, mlir::Value x);
mlir::Value isInfinite(FloatEmitter &e, mlir::Value x);
mlir::Value isNaN(FloatEmitter &e, mlir::Value x);
mlir::Value isNormal(FloatEmitter &e, mlir::Value x);
} // namespace any

/// x^n for integers, with the semantics of math.ipowi. `digits` is the number
/// of bits of n.
mlir::Value emitIntegerPower(mlir::OpBuilder &builder, mlir::Location loc,
                             mlir::Value x, mlir::Value n, unsigned digits);

} // namespace flash

#endif // FLASH_TARGET_MATH_FUNCTIONS_H
