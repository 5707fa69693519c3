//===- Float16.cpp - Encodings of f16 and bf16 ----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Float16.h"

#include "llvm/ADT/bit.h"
#include <cmath>

namespace {

/// Converts between double and a format with a sign bit, `Exponent` bits of
/// exponent and `Mantissa` bits of mantissa, 16 together.
template <int Exponent, int Mantissa> struct Format {
  static_assert(Exponent + Mantissa == 15);
  static constexpr int bias = (1 << (Exponent - 1)) - 1;
  static constexpr int maxExponent = (1 << Exponent) - 1;

  static double decode(uint16_t bits) {
    int exponent = (bits >> Mantissa) & maxExponent;
    int mantissa = bits & ((1 << Mantissa) - 1);
    double sign = bits & 0x8000 ? -1.0 : 1.0;
    if (exponent == maxExponent)
      return mantissa ? std::copysign(NAN, sign) : sign * INFINITY;
    if (exponent == 0)
      return sign * std::ldexp(mantissa, 1 - bias - Mantissa);
    return sign *
           std::ldexp(mantissa + (1 << Mantissa), exponent - bias - Mantissa);
  }

  static uint16_t encode(double value) {
    uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    uint16_t infinity = maxExponent << Mantissa;
    if (std::isnan(value))
      return sign | infinity | (1 << (Mantissa - 1));
    double magnitude = std::fabs(value);
    if (magnitude == 0.0)
      return sign;
    if (std::isinf(value))
      return sign | infinity;
    // The unit in the last place, which subnormal numbers share with the
    // smallest normal ones. Dividing by it is exact, rounding is not: a carry
    // moves into the exponent by itself.
    int exponent = std::max(std::ilogb(magnitude), 1 - bias);
    double units = std::nearbyint(std::ldexp(magnitude, Mantissa - exponent));
    if (exponent > bias)
      return sign | infinity;
    int bits = ((exponent + bias - 1) << Mantissa) + static_cast<int>(units);
    return sign | static_cast<uint16_t>(std::min<int>(bits, infinity));
  }
};

using F16 = Format<5, 10>;
using BF16 = Format<8, 7>;

} // namespace

double flash::run::decodeF16(uint16_t bits) { return F16::decode(bits); }
double flash::run::decodeBF16(uint16_t bits) {
  // The upper half of an f32, which is quicker than taking it apart.
  return llvm::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
uint16_t flash::run::encodeF16(double value) { return F16::encode(value); }
uint16_t flash::run::encodeBF16(double value) { return BF16::encode(value); }
