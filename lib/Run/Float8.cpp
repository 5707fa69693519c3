//===- Float8.cpp - Encoding of f8E4M3FN ----------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Float8.h"

#include <algorithm>
#include <cmath>
#include <limits>

static constexpr int mantissaBits = 3, bias = 7;
static constexpr uint8_t signBit = 0x80, notANumber = 0x7f;

double flash::run::decodeE4M3(uint8_t bits) {
  int magnitude = bits & ~signBit, exponent = magnitude >> mantissaBits,
      mantissa = magnitude & ((1 << mantissaBits) - 1);
  double value = std::numeric_limits<double>::quiet_NaN();
  if (magnitude != notANumber)
    value = std::ldexp(exponent ? mantissa + (1 << mantissaBits) : mantissa,
                       std::max(exponent, 1) - bias - mantissaBits);
  return bits & signBit ? -value : value;
}

uint8_t flash::run::encodeE4M3(double value) {
  uint8_t sign = std::signbit(value) ? signBit : 0;
  double magnitude = std::fabs(value);
  if (!std::isfinite(value))
    return sign | notANumber;
  int exponent = magnitude > 0 ? std::ilogb(magnitude) : 1 - bias;
  exponent = std::max(exponent, 1 - bias);
  // A mantissa that is rounded up to the next power of two is one of the next
  // exponent, and one without its leading digit has the exponent 0.
  double mantissa =
      std::nearbyint(std::ldexp(magnitude, mantissaBits - exponent));
  double bits = std::ldexp(exponent + bias - 1, mantissaBits) + mantissa;
  return sign | static_cast<uint8_t>(std::min<double>(bits, notANumber));
}
