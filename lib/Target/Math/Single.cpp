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

/// Odd numerator over even denominator, minimax (relative error 6e-9) up to
/// 7.9, from where on it is within 3.5e-7 of 1.
std::pair<Value, Value> single::tanhRatio(FloatEmitter &e, Value x) {
  Value square = e.mul(x, x);
  Value numerator =
      e.mul(x, e.horner(square, {1.5428444144621307e-08, 2.202357312447775e-05,
                                 0.003579011591456042, 0.13450636962924487,
                                 0.9999999943625331}));
  Value denominator =
      e.horner(square, {8.598969108479126e-07, 0.00034236827803107756,
                        0.026192312103313003, 0.46783964968532327, 1.0});
  return {numerator, denominator};
}

Value single::tanh(FloatEmitter &e, Value x) {
  auto [numerator, denominator] =
      tanhRatio(e, e.clamp(x, -tanhLimit, tanhLimit));
  return e.div(numerator, denominator);
}
