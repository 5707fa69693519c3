//===- ExpandMath.cpp - Math functions without an instruction -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Math/Functions.h"
#include "flash/Target/Nvptx/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

namespace flash {
#define GEN_PASS_DEF_FLASHGPUEXPANDMATH
#include "flash/Target/Nvptx/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// The type of the elements that an op computes on.
static Type getElement(Operation *op) {
  return getElementTypeOrSelf(op->getOperand(0));
}

static bool isFloat(Type type) { return type.isF32() || type.isF64(); }
static bool isHalf(Type type) { return type.isF16() || type.isBF16(); }

/// Whether the pass knows the op.
static bool isFunction(Operation *op) {
  return isa_and_nonnull<math::MathDialect>(op->getDialect()) ||
         isa<arith::RemFOp>(op);
}

/// Whether code generation handles the op on its type.
static bool hasInstruction(Operation *op) {
  Type type = getElement(op);
  if (isa<IntegerType, IndexType>(type))
    return !isa<math::IPowIOp>(op);
  if (isa<math::AbsFOp, math::CopySignOp, math::FmaOp>(op))
    return isHalf(type) || isFloat(type);
  if (isa<math::CeilOp, math::FloorOp, math::RoundEvenOp, math::RoundOp,
          math::RsqrtOp, math::SqrtOp, math::TruncOp>(op))
    return isFloat(type);
  return isa<math::Exp2Op>(op) && type.isF32();
}

/// Computes single::tanh with instructions that keep NaN within bounds and that
/// need not give the nearest quotient: softcap has one for each score.
static Value tanhByInstructions(FloatEmitter &e, Value x) {
  OpBuilder &b = e.builder();
  Location loc = x.getLoc();
  x = arith::MinimumFOp::create(b, loc, x, e.constant(single::tanhLimit));
  x = arith::MaximumFOp::create(b, loc, x, e.constant(-single::tanhLimit));
  auto [numerator, denominator] = single::tanhRatio(e, x);
  auto approximate =
      arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::afn);
  return arith::DivFOp::create(b, loc, numerator, denominator, approximate);
}

namespace {
template <typename OpTy, Value (*function)(FloatEmitter &, Value)>
struct InF32 : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!getElement(op).isF32())
      return failure();
    FloatEmitter e(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, function(e, op.getOperand()));
    return success();
  }
};

/// An emitter of f64 and the first operand of an f32 op as one.
struct Widened {
  Widened(OpBuilder &b, Operation *op)
      : e(b, op->getLoc(),
          FloatEmitter(b, op->getLoc(), op->getOperand(0).getType())
              .withElement(b.getF64Type())),
        x(widen(op->getOperand(0))) {}

  Value widen(Value value) {
    return e.convert(value, e.builder().getF64Type());
  }
  Value narrow(Value value) {
    return e.convert(value, e.builder().getF32Type());
  }

  FloatEmitter e;
  Value x;
};

/// Computes an op of one operand or two in f64.
template <typename OpTy, auto function> struct InF64 : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!getElement(op).isF32())
      return failure();
    Widened w(rewriter, op);
    Value result;
    if constexpr (OpTy::template hasTrait<OpTrait::OneOperand>())
      result = function(w.e, w.x);
    else
      result = function(w.e, w.x, w.widen(op->getOperand(1)));
    rewriter.replaceOp(op, w.narrow(result));
    return success();
  }
};

LogicalResult expandPowerOfInteger(math::FPowIOp op,
                                   PatternRewriter &rewriter) {
  if (!getElement(op).isF32())
    return failure();
  Widened w(rewriter, op);
  Value exponent = op.getRhs();
  if (getElementTypeOrSelf(exponent).isIndex())
    exponent = arith::IndexCastOp::create(
        rewriter, op.getLoc(), w.e.withElement(rewriter.getI32Type()),
        exponent);
  rewriter.replaceOp(op, w.narrow(wide::powi(w.e, w.x, exponent)));
  return success();
}

LogicalResult expandIntegerPower(math::IPowIOp op, PatternRewriter &rewriter) {
  // Indices are i32 in kernels, also where they were widened: an exponent
  // has no more digits than what it is an extension of.
  auto countDigits = [](Value n) -> unsigned {
    auto type = dyn_cast<IntegerType>(getElementTypeOrSelf(n));
    return type ? type.getWidth() : 32;
  };
  Value n = op.getRhs(), narrow = n;
  if (auto cast = n.getDefiningOp<arith::IndexCastOp>())
    narrow = cast.getIn();
  else if (auto extension = n.getDefiningOp<arith::ExtSIOp>())
    narrow = extension.getIn();
  rewriter.replaceOp(
      op, emitIntegerPower(rewriter, op.getLoc(), op.getLhs(), n,
                           std::min(countDigits(n), countDigits(narrow))));
  return success();
}

LogicalResult expandSineAndCosine(math::SincosOp op,
                                  PatternRewriter &rewriter) {
  Value x = op.getOperand();
  rewriter.replaceOp(op, {math::SinOp::create(rewriter, op.getLoc(), x),
                          math::CosOp::create(rewriter, op.getLoc(), x)});
  return success();
}

/// Classes of floats are comparisons of the magnitude, in any type.
template <typename OpTy, Value (*function)(FloatEmitter &, Value)>
struct Class : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!isHalf(getElement(op)) && !isFloat(getElement(op)))
      return failure();
    Value x = op.getOperand();
    FloatEmitter e(rewriter, op.getLoc(), x.getType());
    rewriter.replaceOp(op, function(e, x));
    return success();
  }
};

/// Computes functions of f16 and bf16 in f32.
struct Half : RewritePattern {
  explicit Half(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isFunction(op) || op->getNumResults() != 1 || hasInstruction(op))
      return failure();
    Type type = getElement(op);
    if (!isHalf(type))
      return failure();
    Location loc = op->getLoc();
    FloatEmitter e(rewriter, loc, op->getResult(0).getType());
    SmallVector<Value> operands(op->getOperands());
    for (Value &operand : operands)
      if (getElementTypeOrSelf(operand) == type)
        operand = e.convert(operand, rewriter.getF32Type());
    Operation *single =
        rewriter.create(loc, op->getName().getIdentifier(), operands,
                        e.withElement(rewriter.getF32Type()), op->getAttrs());
    rewriter.replaceOp(op, e.convert(single->getResult(0), type));
    return success();
  }
};

struct ExpandMath : flash::impl::FlashGpuExpandMathBase<ExpandMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<
        InF32<math::ExpOp, single::exp>,
        InF32<math::TanhOp, tanhByInstructions>,
        InF64<math::ExpM1Op, wide::expm1>, InF64<math::LogOp, wide::log>,
        InF64<math::Log2Op, wide::log2>, InF64<math::Log10Op, wide::log10>,
        InF64<math::Log1pOp, wide::log1p>, InF64<math::CbrtOp, wide::cbrt>,
        InF64<math::PowFOp, wide::pow>, InF64<math::SinhOp, wide::sinh>,
        InF64<math::CoshOp, wide::cosh>, InF64<math::AsinhOp, wide::asinh>,
        InF64<math::AcoshOp, wide::acosh>, InF64<math::AtanhOp, wide::atanh>,
        InF64<math::SinOp, wide::sin>, InF64<math::CosOp, wide::cos>,
        InF64<math::TanOp, wide::tan>, InF64<math::AsinOp, wide::asin>,
        InF64<math::AcosOp, wide::acos>, InF64<math::AtanOp, wide::atan>,
        InF64<math::Atan2Op, wide::atan2>,
        InF64<arith::RemFOp, wide::remainder>, InF64<math::ErfOp, wide::erf>,
        InF64<math::ErfcOp, wide::erfc>, Class<math::IsFiniteOp, any::isFinite>,
        Class<math::IsInfOp, any::isInfinite>, Class<math::IsNaNOp, any::isNaN>,
        Class<math::IsNormalOp, any::isNormal>, Half>(&getContext());
    patterns.add(expandPowerOfInteger);
    patterns.add(expandIntegerPower);
    patterns.add(expandSineAndCosine);
    math::populateExpansionPatterns(patterns, {"clampf"});
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    // The rest of the kernel stays as it is: its order decides on registers.
    config.enableFolding(false).enableConstantCSE(false);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      return signalPassFailure();

    WalkResult result = getOperation()->walk([](Operation *op) {
      if (!isFunction(op) || hasInstruction(op))
        return WalkResult::advance();
      op->emitOpError("has no code for a GPU on ")
          << getElement(op) << "; compute it in f32";
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
