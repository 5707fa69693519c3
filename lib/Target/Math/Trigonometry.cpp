//===- Trigonometry.cpp - Angles and the error function in f64 ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Math/Functions.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace flash;

static constexpr double infinity = std::numeric_limits<double>::infinity();
static constexpr double pi = llvm::numbers::pi;

namespace {
/// The sine and cosine of what is left of an angle after n rotations by pi/2.
struct Angle {
  Value sine, cosine;
  /// n, in the low bits.
  Value quarters;
};
} // namespace

/// pi/2 has two parts, so that the rest is exact where it is close to 0. The
/// rest lies in [-pi/4, pi/4], where the Taylor series are exact to 1e-11;
/// clamping keeps it there for angles whose quarters f64 cannot count.
static Angle reduce(FloatEmitter &e, Value x) {
  constexpr double magic = 6755399441055744.0;
  Value shifted = e.fma(x, e.constant(2.0 / pi), e.constant(magic));
  Value n = e.sub(shifted, e.constant(magic));
  Value rest = e.fma(n, e.constant(-pi / 2), x);
  rest = e.fma(n, e.constant(-6.123233995736766e-17), rest);
  rest = e.clamp(rest, -0.8, 0.8);
  SmallVector<double> sine = {1.0}, cosine = {1.0};
  for (int64_t k = 2; k <= 12; k += 2) {
    sine.insert(sine.begin(), -sine.front() / (k * (k + 1)));
    cosine.insert(cosine.begin(), -cosine.front() / (k * (k - 1)));
  }
  Value square = e.mul(rest, rest);
  return {e.mul(rest, e.horner(square, sine)), e.horner(square, cosine),
          e.toBits(shifted)};
}

/// Whether a bit of n is set.
static Value testBit(FloatEmitter &e, Value n, int64_t bit) {
  ImplicitLocOpBuilder &b = e.builder();
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                               arith::AndIOp::create(b, n, e.bits(bit)),
                               e.bits(0));
}

/// The sine of the angle plus `quarters` times pi/2.
static Value sineAfter(FloatEmitter &e, const Angle &angle, int64_t quarters) {
  Value n =
      arith::AddIOp::create(e.builder(), angle.quarters, e.bits(quarters));
  Value value = e.select(testBit(e, n, 1), angle.cosine, angle.sine);
  return e.select(testBit(e, n, 2), e.neg(value), value);
}

Value wide::sin(FloatEmitter &e, Value x) {
  return sineAfter(e, reduce(e, x), 0);
}

Value wide::cos(FloatEmitter &e, Value x) {
  return sineAfter(e, reduce(e, x), 1);
}

Value wide::tan(FloatEmitter &e, Value x) {
  Angle angle = reduce(e, x);
  return e.div(sineAfter(e, angle, 0), sineAfter(e, angle, 1));
}

/// The angle of the quotient of the smaller and the larger coordinate, then the
/// octants. Quotients above tan(pi/8) are rotated by pi/4, so that the argument
/// of the series is below 0.415.
Value wide::atan2(FloatEmitter &e, Value y, Value x) {
  Value width = e.abs(x), height = e.abs(y), one = e.constant(1.0);
  Value isSteep = e.compare(arith::CmpFPredicate::OGT, height, width);
  Value smaller = e.select(isSteep, width, height);
  Value larger = e.select(isSteep, height, width);
  Value quotient = e.div(smaller, larger);
  quotient = e.select(e.equal(larger, 0.0), larger, quotient);
  quotient = e.select(e.equal(smaller, infinity), one, quotient);

  Value isTurned = e.compare(arith::CmpFPredicate::OGT, quotient,
                             e.constant(llvm::numbers::sqrt2 - 1.0));
  Value turned = e.div(e.sub(quotient, one), e.add(quotient, one));
  Value t = e.select(isTurned, turned, quotient);
  SmallVector<double> series;
  for (int64_t k = 23; k >= 1; k -= 2)
    series.push_back((k % 4 == 1 ? 1.0 : -1.0) / k);
  Value angle = e.mul(t, e.horner(e.mul(t, t), series));
  angle = e.select(isTurned, e.add(angle, e.constant(pi / 4)), angle);

  angle = e.select(isSteep, e.sub(e.constant(pi / 2), angle), angle);
  // The sign, not a comparison: -0 lies to the left as well.
  Value isLeft = e.less(e.copySign(one, x), 0.0);
  angle = e.select(isLeft, e.sub(e.constant(pi), angle), angle);
  Value isNaN = e.compare(arith::CmpFPredicate::UNO, x, y);
  return e.select(isNaN, e.add(x, y), e.copySign(angle, y));
}

Value wide::atan(FloatEmitter &e, Value x) {
  return atan2(e, x, e.constant(1.0));
}

/// The other leg of a right triangle with hypotenuse 1; NaN for |x| > 1.
static Value otherLeg(FloatEmitter &e, Value x) {
  Value one = e.constant(1.0);
  return e.sqrt(e.mul(e.sub(one, x), e.add(one, x)));
}

Value wide::asin(FloatEmitter &e, Value x) {
  return atan2(e, x, otherLeg(e, x));
}

Value wide::acos(FloatEmitter &e, Value x) {
  return atan2(e, otherLeg(e, x), x);
}

/// erfc |x| = t e^(-x^2) p(t) with t = 1 / (1 + |x| / 2). The polynomial was
/// fitted to 4e-9 for |x| up to 11, where results leave the range of f32.
static Value erfcOfMagnitude(FloatEmitter &e, Value x) {
  Value magnitude = e.clamp(e.abs(x), 0.0, 11.0);
  Value one = e.constant(1.0);
  Value t = e.div(one, e.fma(magnitude, e.constant(0.5), one));
  Value tail = e.horner(t, {0.0376009531146, -0.201828426003, 0.409237769568,
                            -0.330817414053, 0.0168473951747, 0.0112256854662,
                            0.0649485436819, 0.182834416863, 0.245654569714,
                            0.282206050143, 0.282090460323});
  Value square = e.mul(magnitude, magnitude);
  Value gauss = wide::exp2(e, e.mul(square, -llvm::numbers::log2e));
  return e.mul(e.mul(t, gauss), tail);
}

Value wide::erfc(FloatEmitter &e, Value x) {
  Value magnitude = erfcOfMagnitude(e, x);
  return e.select(e.less(x, 0.0), e.sub(e.constant(2.0), magnitude), magnitude);
}

/// For |x| < 1 the Taylor series, exact to 1e-10.
Value wide::erf(FloatEmitter &e, Value x) {
  SmallVector<double> series;
  double factor = 2.0 * llvm::numbers::inv_sqrtpi;
  for (int64_t k = 0; k <= 12; ++k) {
    series.insert(series.begin(), factor / (2 * k + 1));
    factor /= -(k + 1);
  }
  Value small = e.mul(x, e.horner(e.mul(x, x), series));
  Value large = e.sub(e.constant(1.0), erfcOfMagnitude(e, x));
  return e.select(e.less(e.abs(x), 1.0), small, e.copySign(large, x));
}
