//===- ElementType.h - What is known of element types -----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What passes need to know of the elements of operands and tiles. Whether a
// machine's tensor cores multiply a type is in its description
// (flash/Machine/Machine.h).
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SUPPORT_ELEMENTTYPE_H
#define FLASH_SUPPORT_ELEMENTTYPE_H

#include "mlir/IR/Builders.h"

namespace flash {

struct ElementType {
  /// As MLIR writes it.
  llvm::StringRef name;
  int64_t bits;
  /// How many elements of a row and a column one instruction multiplies, with
  /// sums in f32; 0 of types that are always converted before they are
  /// multiplied.
  int64_t productStep;
  /// Emits the integer arithmetic that gives the f32 of an element, or a vector
  /// of them, from its bits as i32. Null where `arith` on the type
  /// has a translation to LLVM.
  mlir::Value (*emitToF32)(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value bits);
  /// Emits the arithmetic that gives its bits, as i32, from an f32 or a vector
  /// of them. Null where `emitToF32` is, and of integers.
  mlir::Value (*emitFromF32)(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Value value);

  /// The description of a type, or of the elements of a tensor; null if there
  /// is none.
  static const ElementType *find(mlir::Type type);
  int64_t getBytes() const { return bits / 8; }
  /// Whether tensor cores multiply it.
  bool isFactor() const { return productStep > 0; }
};

/// Whether tensors of keys and values may have these elements in memory, which
/// `flash.dequantize` makes factors.
bool isQuantized(mlir::Type type);

/// A quantized element, or a vector of them, as f32, which is exact.
mlir::Value emitWiden(mlir::OpBuilder &b, mlir::Location loc,
                      mlir::Value element);

} // namespace flash

#endif // FLASH_SUPPORT_ELEMENTTYPE_H
