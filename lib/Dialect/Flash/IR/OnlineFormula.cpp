//===- OnlineFormula.cpp - The online softmax of one row ------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/OnlineFormula.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace flash;

Value flash::emitConstant(ImplicitLocOpBuilder &b, double value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

Value flash::emitShift(ImplicitLocOpBuilder &b, Value max) {
  Value minusInfinity =
      emitConstant(b, -std::numeric_limits<double>::infinity());
  Value unseen =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, max, minusInfinity);
  return arith::SelectOp::create(b, unseen, emitConstant(b, 0.0), max);
}

Value flash::emitExponential(ImplicitLocOpBuilder &b, Value x, Value shift,
                             LogUnit unit) {
  Value difference = arith::SubFOp::create(b, x, shift);
  if (unit == LogUnit::Natural)
    difference = arith::MulFOp::create(b, difference,
                                       emitConstant(b, llvm::numbers::log2e));
  return math::Exp2Op::create(b, difference);
}

Value flash::emitScaledExponential(ImplicitLocOpBuilder &b, Value x,
                                   double factor, Value shift) {
  Value minus = arith::NegFOp::create(b, shift);
  return math::Exp2Op::create(
      b, math::FmaOp::create(b, x, emitConstant(b, factor), minus));
}

Value flash::emitInverseOfSum(ImplicitLocOpBuilder &b, Value sum) {
  Value one = emitConstant(b, 1.0);
  Value isEmpty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sum,
                                        emitConstant(b, 0.0));
  return arith::DivFOp::create(b, one,
                               arith::SelectOp::create(b, isEmpty, one, sum));
}

Growth flash::emitGrowth(ImplicitLocOpBuilder &b, Value max, Value added,
                         LogUnit unit) {
  Value grown = arith::MaxNumFOp::create(b, max, added);
  return {grown, emitExponential(b, max, emitShift(b, grown), unit)};
}

Value flash::emitIsFarAbove(ImplicitLocOpBuilder &b, Value max, Value added) {
  Value bound = arith::AddFOp::create(b, max, emitConstant(b, 8.0));
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, added, bound);
}
