//===- Float8.h - Encoding of f8E4M3FN --------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_FLOAT8_H
#define FLASH_RUN_FLOAT8_H

#include <cstdint>

namespace flash::run {

/// Decodes the bits of an f8E4M3FN number, with four bits of exponent and three
/// of mantissa. The result is exact.
double decodeE4M3(uint8_t bits);
/// Encodes a number, rounded once to nearest, with ties to even. Values that
/// are too large become NaN, since the type has no infinities.
uint8_t encodeE4M3(double value);

} // namespace flash::run

#endif // FLASH_RUN_FLOAT8_H
