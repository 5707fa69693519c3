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
#include <cmath>
#include <limits>

using namespace mlir;
using namespace flash;

static constexpr double infinity = std::numeric_limits<double>::infinity();

Value flash::emitConstant(ImplicitLocOpBuilder &b, double value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

Value flash::emitShift(ImplicitLocOpBuilder &b, Value max) {
  Value minusInfinity = emitConstant(b, -infinity);
  Value unseen =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, max, minusInfinity);
  return arith::SelectOp::create(b, unseen, emitConstant(b, 0.0), max);
}

Value flash::emitExponential(ImplicitLocOpBuilder &b, Value x, Value shift,
                             double unit) {
  Value difference = arith::SubFOp::create(b, x, shift);
  difference = arith::MulFOp::create(
      b, difference, emitConstant(b, unit * llvm::numbers::log2e));
  return math::Exp2Op::create(b, difference);
}

static Value emitScaledDifference(ImplicitLocOpBuilder &b, Value x,
                                  Value factor, Value shift) {
  return math::FmaOp::create(b, x, factor, arith::NegFOp::create(b, shift));
}

Value flash::emitScaledExponential(ImplicitLocOpBuilder &b, Value x,
                                   Value factor, Value shift) {
  return math::Exp2Op::create(b, emitScaledDifference(b, x, factor, shift));
}

Value flash::emitProbability(ImplicitLocOpBuilder &b, Value x, Value factor,
                             Value shift) {
  Value isLarge = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT,
                                        math::AbsFOp::create(b, shift),
                                        emitConstant(b, 0x1.fffp24));
  Value most = arith::SelectOp::create(b, isLarge, emitConstant(b, 0.0),
                                       emitConstant(b, infinity));
  // A NaN stays one.
  Value exponent = arith::MinimumFOp::create(
      b, emitScaledDifference(b, x, factor, shift), most);
  return math::Exp2Op::create(b, exponent);
}

Value flash::emitInverseOfSum(ImplicitLocOpBuilder &b, Value sum) {
  Value one = emitConstant(b, 1.0);
  Value isEmpty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sum,
                                        emitConstant(b, 0.0));
  return arith::DivFOp::create(b, one,
                               arith::SelectOp::create(b, isEmpty, one, sum));
}

Growth flash::emitGrowth(ImplicitLocOpBuilder &b, Value max, Value added) {
  Value grown = arith::MaxNumFOp::create(b, max, added);
  return {grown, emitExponential(b, max, emitShift(b, grown))};
}

//===----------------------------------------------------------------------===//
// OnlineExponential
//===----------------------------------------------------------------------===//

bool flash::isUnit(double unit) { return unit >= 0x1p-64 && unit <= 0x1p64; }

OnlineExponential::OnlineExponential(double unit, Type type, bool isExact)
    : factor(unit * llvm::numbers::log2e) {
  // At most 1 or the unit, so that it takes no product out of the range of f32.
  int exponent = std::ilogb(unit);
  largeFactor = std::ldexp(1.0, unit < 1.0 ? exponent + 1 : exponent);
  // Shifts below 2^30 have a last bit of at most 2^6, the others a larger one.
  double largeShift = type.isF16() ? 0x1p28 : 0x1p30;
  large = isExact ? largeShift / factor : infinity;
}

Value OnlineExponential::emitFactor(ImplicitLocOpBuilder &b, Value max) const {
  if (large == infinity)
    return emitConstant(b, factor);
  Value isLarge = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT,
                                        math::AbsFOp::create(b, max),
                                        emitConstant(b, large));
  return arith::SelectOp::create(b, isLarge, emitConstant(b, largeFactor),
                                 emitConstant(b, factor));
}

/// A product that no addition is fused with: what is subtracted from it has
/// been rounded in the same way.
static Value emitRoundedProduct(ImplicitLocOpBuilder &b, Value x,
                                Value factor) {
  return math::FmaOp::create(b, x, factor, emitConstant(b, -0.0));
}

Value OnlineExponential::emitShift(ImplicitLocOpBuilder &b, Value max,
                                   Value factor) const {
  return arith::MaxNumFOp::create(
      b, emitRoundedProduct(b, max, factor),
      emitConstant(b, std::numeric_limits<float>::lowest()));
}

Value OnlineExponential::emitRescale(ImplicitLocOpBuilder &b, Value max,
                                     Value newMax) const {
  Value factor = emitFactor(b, newMax);
  Value difference = arith::SubFOp::create(
      b, emitRoundedProduct(b, max, factor), emitShift(b, newMax, factor));
  return math::Exp2Op::create(b, difference);
}

Growth OnlineExponential::emitGrowth(ImplicitLocOpBuilder &b, Value max,
                                     Value added) const {
  Value grown = arith::MaxNumFOp::create(b, max, added);
  return {grown, emitRescale(b, max, grown)};
}

Value OnlineExponential::emitIsFarAbove(ImplicitLocOpBuilder &b, Value max,
                                        Value added) const {
  Value bound = arith::AddFOp::create(b, max, emitConstant(b, 8.0 / factor));
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, added, bound);
}
