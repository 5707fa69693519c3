//===- Exponentials.cpp - Powers and logarithms in f64 --------------------===//
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
static constexpr double quietNaN = std::numeric_limits<double>::quiet_NaN();
static constexpr int64_t fractionBits = 52;

/// 2^x for results that f32 can hold, 2^-200 below and 2^200 above: either
/// becomes 0 or infinity in f32. Adding 1.5 * 2^52 leaves the integer part n in
/// the low bits of the sum; the rest lies in [-1/2, 1/2], where the Taylor
/// series of e^(f ln 2) is exact to 1e-13.
Value wide::exp2(FloatEmitter &e, Value x) {
  constexpr double magic = 6755399441055744.0;
  x = e.clamp(x, -200.0, 200.0);
  Value shifted = e.add(x, e.constant(magic));
  Value f =
      e.mul(e.sub(x, e.sub(shifted, e.constant(magic))), llvm::numbers::ln2);
  Value biased =
      arith::AddIOp::create(e.builder(), e.toBits(shifted), e.bits(1023));
  Value power = e.fromBits(
      arith::ShLIOp::create(e.builder(), biased, e.bits(fractionBits)));
  SmallVector<double> series = {1.0};
  for (int64_t k = 1; k <= 10; ++k)
    series.insert(series.begin(), series.front() / k);
  return e.mul(e.horner(f, series), power);
}

static Value exp(FloatEmitter &e, Value x) {
  return wide::exp2(e, e.mul(x, llvm::numbers::log2e));
}

/// x itself, corrected by the next term, where e^x - 1 would cancel.
Value wide::expm1(FloatEmitter &e, Value x) {
  Value small = e.fma(e.mul(x, x), e.constant(0.5), x);
  Value large = e.sub(exp(e, x), e.constant(1.0));
  return e.select(e.less(e.abs(x), 0x1p-12), small, large);
}

/// An exponent n and a fraction m in [sqrt(1/2), sqrt(2)) with x = 2^n m, and
/// ln m = 2 artanh s with s = (m - 1) / (m + 1), |s| < 0.172: a series exact to
/// 1e-13. `atE` and `atTwo` are the logarithm's values at e and at 2.
static Value logarithm(FloatEmitter &e, Value x, double atE, double atTwo) {
  Value bits = e.toBits(x);
  Value root = e.toBits(e.constant(llvm::numbers::sqrt2 / 2));
  Value n = arith::ShRSIOp::create(
      e.builder(), arith::SubIOp::create(e.builder(), bits, root),
      e.bits(fractionBits));
  Value m = e.fromBits(arith::SubIOp::create(
      e.builder(), bits,
      arith::ShLIOp::create(e.builder(), n, e.bits(fractionBits))));
  Value one = e.constant(1.0);
  Value s = e.div(e.sub(m, one), e.add(m, one));
  SmallVector<double> series;
  for (int64_t k = 15; k >= 1; k -= 2)
    series.push_back(2.0 / k);
  Value ofFraction = e.mul(s, e.horner(e.mul(s, s), series));
  Value result = e.fma(e.toFloat(n), e.constant(atTwo), e.mul(ofFraction, atE));
  result = e.select(e.equal(x, infinity), x, result);
  result = e.select(e.equal(x, 0.0), e.constant(-infinity), result);
  Value isOutside = e.compare(arith::CmpFPredicate::ULT, x, e.constant(0.0));
  return e.select(isOutside, e.constant(quietNaN), result);
}

Value wide::log(FloatEmitter &e, Value x) {
  return logarithm(e, x, 1.0, llvm::numbers::ln2);
}

Value wide::log2(FloatEmitter &e, Value x) {
  return logarithm(e, x, llvm::numbers::log2e, 1.0);
}

Value wide::log10(FloatEmitter &e, Value x) {
  return logarithm(e, x, llvm::numbers::log10e,
                   llvm::numbers::ln2 * llvm::numbers::log10e);
}

Value wide::log1p(FloatEmitter &e, Value x) {
  Value small = e.fma(e.mul(x, x), e.constant(-0.5), x);
  Value large = log(e, e.add(x, e.constant(1.0)));
  return e.select(e.less(e.abs(x), 0x1p-13), small, large);
}

Value wide::cbrt(FloatEmitter &e, Value x) {
  Value third = e.mul(log2(e, e.abs(x)), 1.0 / 3.0);
  return e.copySign(exp2(e, third), x);
}

Value wide::pow(FloatEmitter &e, Value x, Value y) {
  Value one = e.constant(1.0), zero = e.constant(0.0);
  Value magnitude = exp2(e, e.mul(y, log2(e, e.abs(x))));
  // Otherwise 1 to an infinite power would be exp2(0 * infinity).
  Value isOrdered = e.compare(arith::CmpFPredicate::ORD, y, y);
  magnitude =
      e.select(e.both(e.equal(e.abs(x), 1.0), isOrdered), one, magnitude);

  auto isInteger = [&](Value value) {
    return e.compare(arith::CmpFPredicate::OEQ, e.floor(value), value);
  };
  auto isNotInteger = [&](Value value) {
    return e.compare(arith::CmpFPredicate::UNE, e.floor(value), value);
  };
  Value isOdd = e.both(isInteger(y), isNotInteger(e.mul(y, 0.5)));
  Value result = e.select(isOdd, e.copySign(magnitude, x), magnitude);
  // No real power; an infinite base has one, infinity or 0.
  Value isNegative =
      e.both(e.compare(arith::CmpFPredicate::OLT, x, zero),
             e.compare(arith::CmpFPredicate::ONE, x, e.constant(-infinity)));
  result = e.select(e.both(isNegative, isNotInteger(y)), e.constant(quietNaN),
                    result);
  result = e.select(e.equal(x, 1.0), one, result);
  return e.select(e.equal(y, 0.0), one, result);
}

/// The parity comes from the integer, which f64 need not hold exactly.
Value wide::powi(FloatEmitter &e, Value x, Value n) {
  ImplicitLocOpBuilder &b = e.builder();
  Value exponent = e.toFloat(n);
  Value magnitude = exp2(e, e.mul(exponent, log2(e, e.abs(x))));
  Type bit = e.withElement(b.getI1Type());
  Value isOdd =
      n.getType() == bit ? n : Value(arith::TruncIOp::create(b, bit, n));
  Value result = e.select(isOdd, e.copySign(magnitude, x), magnitude);
  return e.select(e.equal(exponent, 0.0), e.constant(1.0), result);
}

Value wide::sinh(FloatEmitter &e, Value x) {
  Value power = exp(e, e.abs(x));
  Value large = e.mul(e.sub(power, e.div(e.constant(1.0), power)), 0.5);
  Value small = e.fma(e.mul(e.mul(x, x), x), e.constant(1.0 / 6.0), x);
  return e.select(e.less(e.abs(x), 0x1p-6), small, e.copySign(large, x));
}

Value wide::cosh(FloatEmitter &e, Value x) {
  Value power = exp(e, e.abs(x));
  return e.mul(e.add(power, e.div(e.constant(1.0), power)), 0.5);
}

Value wide::asinh(FloatEmitter &e, Value x) {
  Value magnitude = e.abs(x);
  Value root = e.sqrt(e.fma(x, x, e.constant(1.0)));
  Value large = e.copySign(log(e, e.add(magnitude, root)), x);
  return e.select(e.less(magnitude, 0x1p-13), x, large);
}

Value wide::acosh(FloatEmitter &e, Value x) {
  Value result = log(e, e.add(x, e.sqrt(e.fma(x, x, e.constant(-1.0)))));
  return e.select(e.less(x, 1.0), e.constant(quietNaN), result);
}

Value wide::atanh(FloatEmitter &e, Value x) {
  Value one = e.constant(1.0);
  Value large = e.mul(log(e, e.div(e.add(one, x), e.sub(one, x))), 0.5);
  return e.select(e.less(e.abs(x), 0x1p-13), x, large);
}

/// By the binary digits of n. A negative power is the inverse, rounded towards
/// 0: not 0 for 1 and -1 only.
Value flash::emitIntegerPower(OpBuilder &builder, Location loc, Value x,
                              Value n, unsigned digits) {
  ImplicitLocOpBuilder b(loc, builder);
  Type type = x.getType();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, cast<TypedAttr>(isa<VectorType>(type)
                               ? TypedAttr(DenseElementsAttr::get(
                                     cast<VectorType>(type),
                                     Attribute(b.getIntegerAttr(
                                         getElementTypeOrSelf(type), value))))
                               : b.getIntegerAttr(type, value)));
  };
  auto equal = [&](Value lhs, Value rhs) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lhs, rhs);
  };
  Value zero = constant(0), one = constant(1);
  Value result = one, factor = x;
  for (unsigned digit = 0; digit != digits; ++digit) {
    Value isSet =
        equal(arith::AndIOp::create(
                  b, arith::ShRUIOp::create(b, n, constant(digit)), one),
              one);
    Value product = arith::MulIOp::create(b, result, factor);
    result = arith::SelectOp::create(b, isSet, product, result);
    factor = arith::MulIOp::create(b, factor, factor);
  }
  // The digits of a negative n give 1 for 1 and the right sign for -1.
  Value isUnit = arith::OrIOp::create(b, equal(x, one), equal(x, constant(-1)));
  Value isNegative =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, n, zero);
  Value inverse = arith::SelectOp::create(b, isUnit, result, zero);
  return arith::SelectOp::create(b, isNegative, inverse, result);
}
