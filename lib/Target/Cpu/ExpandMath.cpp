//===- ExpandMath.cpp - Math functions as arithmetic ----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Support/ElementType.h"
#include "flash/Target/Cpu/Passes.h"
#include "flash/Target/Math/Functions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace flash {
#define GEN_PASS_DEF_FLASHCPUEXPANDMATH
#include "flash/Target/Cpu/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {

template <typename OpTy, Value (*function)(FloatEmitter &, Value)>
struct Expand : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return failure();
    FloatEmitter emitter(rewriter, op.getLoc(), type);
    rewriter.replaceOp(op, function(emitter, op.getOperand()));
    return success();
  }
};

/// Which floats are infinite or normal, of any type; LLVM has the other
/// classes.
template <typename OpTy, Value (*function)(FloatEmitter &, Value)>
struct Class : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getOperand();
    FloatEmitter emitter(rewriter, op.getLoc(), x.getType());
    rewriter.replaceOp(op, function(emitter, x));
    return success();
  }
};

/// An integer power is a library function of the compiler, which the process
/// need not have, and takes no vector of exponents; the power of reals does.
LogicalResult expandPowerOfReal(math::FPowIOp op, PatternRewriter &rewriter) {
  Value exponent =
      arith::SIToFPOp::create(rewriter, op.getLoc(), op.getType(), op.getRhs());
  rewriter.replaceOpWithNewOp<math::PowFOp>(op, op.getLhs(), exponent);
  return success();
}

LogicalResult expandIntegerPower(math::IPowIOp op, PatternRewriter &rewriter) {
  Type element = getElementTypeOrSelf(op.getType());
  unsigned width = element.isIndex() ? IndexType::kInternalStorageBitWidth
                                     : element.getIntOrFloatBitWidth();
  rewriter.replaceOp(op, emitIntegerPower(rewriter, op.getLoc(), op.getLhs(),
                                          op.getRhs(), width));
  return success();
}

/// LLVM has no type for some elements, whose bits are computed with.
LogicalResult expandWidening(arith::ExtFOp op, PatternRewriter &rewriter) {
  const ElementType *element = ElementType::find(op.getIn().getType());
  if (!element || !element->emitToF32 || isa<TensorType>(op.getType()))
    return failure();
  Location loc = op.getLoc();
  auto withElement = [&](Type type) -> Type {
    auto vector = dyn_cast<VectorType>(op.getType());
    return vector ? vector.clone(type) : type;
  };
  Value bits = arith::BitcastOp::create(
      rewriter, loc, withElement(rewriter.getIntegerType(element->bits)),
      op.getIn());
  bits = arith::ExtUIOp::create(rewriter, loc,
                                withElement(rewriter.getI32Type()), bits);
  Value result = element->emitToF32(rewriter, loc, bits);
  if (!getElementTypeOrSelf(op.getType()).isF32())
    result = FloatEmitter(rewriter, loc, result.getType())
                 .convert(result, getElementTypeOrSelf(op.getType()));
  rewriter.replaceOp(op, result);
  return success();
}

/// The same for what is rounded to such elements.
LogicalResult expandNarrowing(arith::TruncFOp op, PatternRewriter &rewriter) {
  const ElementType *element = ElementType::find(op.getType());
  if (!element || !element->emitFromF32 || isa<TensorType>(op.getType()) ||
      !getElementTypeOrSelf(op.getIn()).isF32())
    return failure();
  Location loc = op.getLoc();
  Type bits = rewriter.getIntegerType(element->bits);
  if (auto vector = dyn_cast<VectorType>(op.getType()))
    bits = vector.clone(bits);
  Value result = arith::TruncIOp::create(
      rewriter, loc, bits, element->emitFromF32(rewriter, loc, op.getIn()));
  rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), result);
  return success();
}

/// The mode that is said is the one that there is: what says it is for programs
/// of another precision.
LogicalResult dropRoundingMode(arith::TruncFOp op, PatternRewriter &rewriter) {
  if (op.getRoundingmode() != arith::RoundingMode::to_nearest_even)
    return failure();
  rewriter.modifyOpInPlace(op, [&] { op.removeRoundingmodeAttr(); });
  return success();
}

struct ExpandMath : flash::impl::FlashCpuExpandMathBase<ExpandMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<Expand<math::Exp2Op, single::exp2>,
                 Expand<math::ExpOp, single::exp>,
                 Expand<math::TanhOp, single::tanh>,
                 Class<math::IsInfOp, any::isInfinite>,
                 Class<math::IsNormalOp, any::isNormal>>(&getContext());
    patterns.add(expandIntegerPower);
    patterns.add(expandPowerOfReal);
    patterns.add(expandWidening);
    patterns.add(expandNarrowing);
    patterns.add(dropRoundingMode);
    math::populateExpansionPatterns(patterns, {"clampf"});
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
