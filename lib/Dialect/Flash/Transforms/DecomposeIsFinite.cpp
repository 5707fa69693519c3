//===- DecomposeIsFinite.cpp - Checks of elements, as linalg -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <limits>

namespace flash {
#define GEN_PASS_DEF_DECOMPOSEISFINITE
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// Exactly where all elements are finite, 0 times each sums to something that
/// equals itself.
static void decompose(IsFiniteOp op) {
  TileBuilder t(op);
  Value zero = emitConstant(t.b, 0.0);
  OpFoldResult columns =
      tensor::getMixedSize(t.b, op.getLoc(), op.getTile(), 1);
  auto zeros = [&](ArrayRef<OpFoldResult> shape) -> Value {
    Value empty = tensor::EmptyOp::create(t.b, shape, t.b.getF32Type());
    return linalg::FillOp::create(t.b, zero, empty).getResult(0);
  };
  // First one sum for each column: vectors add without shuffles.
  Value sums = t.generic(
      op.getTile(), zeros(columns), {t.map(2, {0, 1}), t.map(2, {1})},
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value product = arith::MulFOp::create(at, extendToF32(at, args[0]),
                                              emitConstant(at, 0.0));
        return {arith::AddFOp::create(at, args[1], product)};
      })[0];
  Value total = t.generic(
      sums, zeros({}), {t.map(1, {0}), t.map(1, {})},
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {arith::AddFOp::create(at, args[1], args[0])};
      })[0];
  Value sum = tensor::ExtractOp::create(t.b, total, ValueRange{});
  Value isNumber =
      arith::CmpFOp::create(t.b, arith::CmpFPredicate::ORD, sum, sum);
  op->replaceAllUsesWith(ValueRange{isNumber});
  op->erase();
}

static void decompose(ZeroNonfiniteOp op) {
  TileBuilder t(op);
  RankedTensorType type = op.getTile().getType();
  AffineMap all = t.map(2, {0, 1});
  Value empty = tensor::EmptyOp::create(
      t.b, tensor::getMixedSizes(t.b, op.getLoc(), op.getTile()),
      type.getElementType());
  Value result = t.generic(
      op.getTile(), empty, {all, all},
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value isFinite = arith::CmpFOp::create(
            at, arith::CmpFPredicate::OLT,
            math::AbsFOp::create(at, extendToF32(at, args[0])),
            emitConstant(at, std::numeric_limits<double>::infinity()));
        Value zero =
            arith::ConstantOp::create(at, at.getZeroAttr(args[0].getType()));
        return {arith::SelectOp::create(at, isFinite, args[0], zero)};
      })[0];
  op->replaceAllUsesWith(ValueRange{result});
  op->erase();
}

/// Whether the condition holds for any row of the tile.
static void decompose(AnyOp op) {
  TileBuilder t(op);
  Value no = arith::ConstantIntOp::create(t.b, 0, 1);
  Value init = linalg::FillOp::create(t.b, no, t.empty({}, t.b.getI1Type()))
                   .getResult(0);
  Value any = t.generic(
      op.getConditions(), init, {t.map(1, {0}), t.map(1, {})},
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {arith::OrIOp::create(at, args[1], args[0])};
      })[0];
  op->replaceAllUsesWith(tensor::ExtractOp::create(t.b, any, ValueRange{}));
  op->erase();
}

namespace {
struct DecomposeIsFinite
    : flash::impl::DecomposeIsFiniteBase<DecomposeIsFinite> {
  void runOnOperation() override {
    getOperation().walk([](IsFiniteOp op) { decompose(op); });
    getOperation().walk([](ZeroNonfiniteOp op) { decompose(op); });
    getOperation().walk([](AnyOp op) { decompose(op); });
  }
};
} // namespace
