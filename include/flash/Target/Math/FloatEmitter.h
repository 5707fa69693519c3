//===- FloatEmitter.h - Emits floating-point arithmetic ---------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TARGET_MATH_FLOATEMITTER_H
#define FLASH_TARGET_MATH_FLOATEMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace flash {

/// Emits arithmetic on values of one type: f32, f64 or a vector of these.
/// Comparisons return values of i1, or vectors of i1.
class FloatEmitter {
public:
  FloatEmitter(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type);

  mlir::Value constant(double value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, double y) { return mul(x, constant(y)); }
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value neg(mlir::Value x);
  /// x * y + z, rounded once.
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z);
  mlir::Value abs(mlir::Value x);
  mlir::Value sqrt(mlir::Value x);
  mlir::Value floor(mlir::Value x);
  mlir::Value trunc(mlir::Value x);
  /// The magnitude of x with the sign of y.
  mlir::Value copySign(mlir::Value x, mlir::Value y);

  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value x,
                      mlir::Value y);
  mlir::Value less(mlir::Value x, double y);
  mlir::Value equal(mlir::Value x, double y);
  mlir::Value isNaN(mlir::Value x);
  mlir::Value both(mlir::Value x, mlir::Value y);

  /// Clamps x to the range from `low` to `high`. NaN stays NaN. On x86 each of
  /// the two bounds is one instruction in this form, but not with
  /// arith.minimumf.
  mlir::Value clamp(mlir::Value x, double low, double high);
  /// Evaluates a polynomial at x. The coefficient of the highest degree comes
  /// first.
  mlir::Value horner(mlir::Value x, llvm::ArrayRef<double> coefficients);

  /// The bits of x as integers of the same width; floats from such bits; and a
  /// constant of such integers.
  mlir::Value toBits(mlir::Value x);
  mlir::Value fromBits(mlir::Value bits);
  mlir::Value bits(int64_t value);
  mlir::Value toFloat(mlir::Value integer);

  /// Converts x to floats of the element type `element`.
  mlir::Value convert(mlir::Value x, mlir::Type element);

  mlir::ImplicitLocOpBuilder &builder() { return b; }
  /// The type of the emitter with other elements.
  mlir::Type withElement(mlir::Type element) const;

private:
  mlir::Value splat(mlir::Type type, mlir::TypedAttr value);

  mlir::ImplicitLocOpBuilder b;
  mlir::Type type;
};

} // namespace flash

#endif // FLASH_TARGET_MATH_FLOATEMITTER_H
