//===- Single.cpp - Math functions in f32 ---------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Math/Functions.h"

using namespace mlir;
using namespace flash;

/// Splits x * scale into an integer n, kept both as a float and as 2^(n-1).
/// Adding 1.5 * 2^23 leaves n in the low bits of the sum; 126 more make it
/// the biased exponent of 2^(n-1), which is 0 for n = -126: results below
/// the normal range are flushed. The missing factor 2 is in the polynomial,
/// so that n = 128 is representable.
static std::pair<Value, Value> splitExponent(FloatEmitter &e, Value x,
                                             double scale) {
  constexpr double magic = 12582912.0 + 126.0;
  Value shifted = scale == 1.0 ? e.add(x, e.constant(magic))
                               : e.fma(x, e.constant(scale), e.constant(magic));
  Value n = e.sub(shifted, e.constant(magic));
  Value exponent =
      arith::ShLIOp::create(e.builder(), e.toBits(shifted), e.bits(23));
  return {n, e.fromBits(exponent)};
}

/// 2^x. The polynomial approximates 2^(f+1) on [-1/2, 1/2] to 2e-9.
Value single::exp2(FloatEmitter &e, Value x) {
  x = e.clamp(x, -126.0, 128.0);
  auto [n, power] = splitExponent(e, x, 1.0);
  Value f = e.sub(x, n);
  return e.mul(
      e.horner(f, {0.00030691641095, 0.00267998625155, 0.019236977847,
                   0.111006575538, 0.480452937819, 1.38629441147, 2.0}),
      power);
}

/// e^x, with ln 2 in two parts so that x - n ln 2 is exact to the last bit.
Value single::exp(FloatEmitter &e, Value x) {
  x = e.clamp(x, -87.5, 88.8);
  auto [n, power] = splitExponent(e, x, 1.44269504088896341);
  Value f = e.fma(n, e.constant(-0.693359375), x);
  f = e.fma(n, e.constant(2.12194440054690583e-4), f);
  return e.mul(
      e.horner(f, {0.00276736866737, 0.0167496481607, 0.0833364520912,
                   0.333328401435, 0.999999841515, 2.00000007269, 2.0}),
      power);
}

Value single::tanh(FloatEmitter &e, Value x) {
  Value one = e.constant(1.0), two = e.constant(2.0);
  Value power = exp(e, e.mul(e.abs(x), two));
  return tanh(e, x, e.sub(one, e.div(two, e.add(power, one))));
}

/// Near zero an odd polynomial (Cephes).
Value single::tanh(FloatEmitter &e, Value x, Value large) {
  Value square = e.mul(x, x);
  Value tail =
      e.horner(square, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2,
                        1.33314422036e-1, -3.33332819422e-1});
  Value small = e.fma(e.mul(tail, square), x, x);
  Value nearZero = e.less(e.abs(x), 0.625);
  return e.copySign(e.select(nearZero, small, large), x);
}
