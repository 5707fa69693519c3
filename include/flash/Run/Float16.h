//===- Float16.h - Encodings of f16 and bf16 --------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_FLOAT16_H
#define FLASH_RUN_FLOAT16_H

#include <cstdint>

namespace flash::run {

/// Decode the bits of an IEEE binary16 number or of a bfloat16 number. The
/// result is exact.
double decodeF16(uint16_t bits);
double decodeBF16(uint16_t bits);

/// Encode a number, rounded once to nearest, with ties to even. NaN stays a
/// (quiet) NaN, and values that are too large become infinite.
uint16_t encodeF16(double value);
uint16_t encodeBF16(double value);

} // namespace flash::run

#endif // FLASH_RUN_FLOAT16_H
