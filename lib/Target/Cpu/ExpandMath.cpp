//===- ExpandMath.cpp - Math functions as arithmetic ----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Cpu/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace flash {
#define GEN_PASS_DEF_FLASHCPUEXPANDMATH
#include "flash/Target/Cpu/Passes.h.inc"
} // namespace flash

using namespace mlir;

namespace {

/// Emits arithmetic on f32 values of one shape.
class Emitter {
public:
  Emitter(OpBuilder &builder, Location loc, Type type)
      : b(loc, builder), type(type) {}

  Value constant(double value) { return splat(type, b.getF32FloatAttr(value)); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(b, x, y, z);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(b, predicate, x, y);
  }

  /// Clamps x; NaN passes. This exact form is one instruction each on x86,
  /// which arith.minimumf is not.
  Value clamp(Value x, double low, double high) {
    Value lowest = constant(low), highest = constant(high);
    x = select(compare(arith::CmpFPredicate::OGT, x, highest), highest, x);
    return select(compare(arith::CmpFPredicate::OLT, x, lowest), lowest, x);
  }

  /// Evaluates a polynomial, coefficients from the highest degree down.
  Value horner(Value x, ArrayRef<double> coefficients) {
    Value sum = constant(coefficients.front());
    for (double coefficient : coefficients.drop_front())
      sum = fma(sum, x, constant(coefficient));
    return sum;
  }

  /// Splits x * scale into an integer n, kept both as a float and as 2^(n-1).
  /// Adding 1.5 * 2^23 leaves n in the low bits of the sum; 126 more make it
  /// the biased exponent of 2^(n-1), which is 0 for n = -126: results below
  /// the normal range are flushed. The missing factor 2 is in the polynomial,
  /// so that n = 128 is representable.
  std::pair<Value, Value> splitExponent(Value x, double scale) {
    constexpr double magic = 12582912.0 + 126.0;
    Value shifted = scale == 1.0 ? add(x, constant(magic))
                                 : fma(x, constant(scale), constant(magic));
    Value n = sub(shifted, constant(magic));
    Type bitsType = withElement(b.getI32Type());
    Value bits = arith::BitcastOp::create(b, bitsType, shifted);
    Value shift = splat(bitsType, b.getI32IntegerAttr(23));
    bits = arith::ShLIOp::create(b, bits, shift);
    return {n, arith::BitcastOp::create(b, type, bits)};
  }

  /// 2^x. The polynomial approximates 2^(f+1) on [-1/2, 1/2] to 2e-9.
  Value exp2(Value x) {
    x = clamp(x, -126.0, 128.0);
    auto [n, power] = splitExponent(x, 1.0);
    Value f = sub(x, n);
    return mul(horner(f, {0.00030691641095, 0.00267998625155, 0.019236977847,
                          0.111006575538, 0.480452937819, 1.38629441147, 2.0}),
               power);
  }

  /// e^x, with ln 2 in two parts so that x - n ln 2 is exact to the last bit.
  Value exp(Value x) {
    x = clamp(x, -87.5, 88.8);
    auto [n, power] = splitExponent(x, 1.44269504088896341);
    Value f = fma(n, constant(-0.693359375), x);
    f = fma(n, constant(2.12194440054690583e-4), f);
    return mul(horner(f, {0.00276736866737, 0.0167496481607, 0.0833364520912,
                          0.333328401435, 0.999999841515, 2.00000007269, 2.0}),
               power);
  }

  /// Near zero an odd polynomial (Cephes), elsewhere 1 - 2 / (e^2|x| + 1).
  Value tanh(Value x) {
    Value one = constant(1.0), two = constant(2.0);
    Value magnitude = math::AbsFOp::create(b, x);
    Value square = mul(x, x);
    Value tail =
        horner(square, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2,
                        1.33314422036e-1, -3.33332819422e-1});
    Value small = fma(mul(tail, square), x, x);
    Value large = sub(one, div(two, add(exp(mul(magnitude, two)), one)));
    Value nearZero =
        compare(arith::CmpFPredicate::OLT, magnitude, constant(0.625));
    return math::CopySignOp::create(b, select(nearZero, small, large), x);
  }

private:
  Type withElement(Type element) {
    if (auto vector = dyn_cast<VectorType>(type))
      return vector.clone(element);
    return element;
  }
  Value splat(Type type, TypedAttr value) {
    if (auto vector = dyn_cast<VectorType>(type))
      return arith::ConstantOp::create(
          b, DenseElementsAttr::get(vector, Attribute(value)));
    return arith::ConstantOp::create(b, value);
  }

  ImplicitLocOpBuilder b;
  Type type;
};

template <typename OpTy, Value (Emitter::*function)(Value)>
struct Expand : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return failure();
    Emitter emitter(rewriter, op.getLoc(), type);
    rewriter.replaceOp(op, (emitter.*function)(op.getOperand()));
    return success();
  }
};

/// An integer power is a library function of the compiler, which the process
/// need not have, and takes no vector of exponents; the power of reals does.
struct PowerOfReal : OpRewritePattern<math::FPowIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::FPowIOp op,
                                PatternRewriter &rewriter) const override {
    Value exponent = arith::SIToFPOp::create(rewriter, op.getLoc(),
                                             op.getType(), op.getRhs());
    rewriter.replaceOpWithNewOp<math::PowFOp>(op, op.getLhs(), exponent);
    return success();
  }
};

struct ExpandMath : flash::impl::FlashCpuExpandMathBase<ExpandMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<Expand<math::Exp2Op, &Emitter::exp2>,
                 Expand<math::ExpOp, &Emitter::exp>,
                 Expand<math::TanhOp, &Emitter::tanh>, PowerOfReal>(
        &getContext());
    // 16-bit functions are computed in f32; the few that f16 hardware and the
    // C library lack would not link otherwise.
    populateMathF32ExpansionPatterns(patterns, [](StringRef name) {
      return name != math::AbsFOp::getOperationName() &&
             name != math::FmaOp::getOperationName();
    });
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return name == math::LogOp::getOperationName() ||
             name == math::Log2Op::getOperationName();
    });
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace
