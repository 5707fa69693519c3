//===- FloatEmitter.cpp - Emits floating-point arithmetic -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Math/FloatEmitter.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace flash;

FloatEmitter::FloatEmitter(OpBuilder &builder, Location loc, Type type)
    : b(loc, builder), type(type) {}

Type FloatEmitter::withElement(Type element) const {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(element);
  return element;
}

Value FloatEmitter::splat(Type type, TypedAttr value) {
  if (auto vector = dyn_cast<VectorType>(type))
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(vector, Attribute(value)));
  return arith::ConstantOp::create(b, value);
}

Value FloatEmitter::constant(double value) {
  return splat(type, b.getFloatAttr(getElementTypeOrSelf(type), value));
}
Value FloatEmitter::add(Value x, Value y) {
  return arith::AddFOp::create(b, x, y);
}
Value FloatEmitter::sub(Value x, Value y) {
  return arith::SubFOp::create(b, x, y);
}
Value FloatEmitter::mul(Value x, Value y) {
  return arith::MulFOp::create(b, x, y);
}
Value FloatEmitter::div(Value x, Value y) {
  return arith::DivFOp::create(b, x, y);
}
Value FloatEmitter::neg(Value x) { return arith::NegFOp::create(b, x); }
Value FloatEmitter::fma(Value x, Value y, Value z) {
  return math::FmaOp::create(b, x, y, z);
}
Value FloatEmitter::abs(Value x) { return math::AbsFOp::create(b, x); }
Value FloatEmitter::sqrt(Value x) { return math::SqrtOp::create(b, x); }
Value FloatEmitter::floor(Value x) { return math::FloorOp::create(b, x); }
Value FloatEmitter::trunc(Value x) { return math::TruncOp::create(b, x); }
Value FloatEmitter::copySign(Value x, Value y) {
  return math::CopySignOp::create(b, x, y);
}

Value FloatEmitter::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, condition, x, y);
}
Value FloatEmitter::compare(arith::CmpFPredicate predicate, Value x, Value y) {
  return arith::CmpFOp::create(b, predicate, x, y);
}
Value FloatEmitter::less(Value x, double y) {
  return compare(arith::CmpFPredicate::OLT, x, constant(y));
}
Value FloatEmitter::equal(Value x, double y) {
  return compare(arith::CmpFPredicate::OEQ, x, constant(y));
}
Value FloatEmitter::isNaN(Value x) {
  return compare(arith::CmpFPredicate::UNO, x, x);
}
Value FloatEmitter::both(Value x, Value y) {
  return arith::AndIOp::create(b, x, y);
}

Value FloatEmitter::clamp(Value x, double low, double high) {
  Value lowest = constant(low), highest = constant(high);
  x = select(compare(arith::CmpFPredicate::OGT, x, highest), highest, x);
  return select(compare(arith::CmpFPredicate::OLT, x, lowest), lowest, x);
}

Value FloatEmitter::horner(Value x, ArrayRef<double> coefficients) {
  Value sum = constant(coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = fma(sum, x, constant(coefficient));
  return sum;
}

Value FloatEmitter::toBits(Value x) {
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  return arith::BitcastOp::create(b, withElement(b.getIntegerType(width)), x);
}
Value FloatEmitter::fromBits(Value bits) {
  return arith::BitcastOp::create(b, type, bits);
}
Value FloatEmitter::bits(int64_t value) {
  Type element =
      b.getIntegerType(getElementTypeOrSelf(type).getIntOrFloatBitWidth());
  return splat(withElement(element), b.getIntegerAttr(element, value));
}
Value FloatEmitter::toFloat(Value integer) {
  return arith::SIToFPOp::create(b, type, integer);
}

Value FloatEmitter::convert(Value x, Type element) {
  unsigned from = getElementTypeOrSelf(x).getIntOrFloatBitWidth();
  unsigned to = element.getIntOrFloatBitWidth();
  Type result = withElement(element);
  if (from < to)
    return arith::ExtFOp::create(b, result, x);
  if (from > to)
    return arith::TruncFOp::create(b, result, x);
  return x;
}
