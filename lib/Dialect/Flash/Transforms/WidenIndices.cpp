//===- WidenIndices.cpp - Indices that 32 bits do not hold ----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/MaskTiles.h"
#include "flash/Analysis/ScoreRanges.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace flash {
#define GEN_PASS_DEF_WIDENINDICES
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

static bool hasIndex(TypeRange types) {
  return llvm::any_of(types, [](Type type) { return type.isIndex(); });
}

namespace {
/// The operations of a region that 32 bits are too few for.
class Widening {
public:
  Widening(Block &block, const ScoreRanges &ranges);
  void run();

private:
  bool fits(Value value) const;
  /// Whether the low 32 bits of the result are a matter of the low 32 bits of
  /// the operands.
  bool keepsLowBits(Operation &op) const;
  bool isWide(Operation &op) const;
  Value widen(OpBuilder &b, Value index);
  /// An integer of 64 bits instead of the result, or of an operand, of a cast.
  Value widenCast(OpBuilder &b, Operation &cast);

  Block &block;
  const ScoreRanges &ranges;
  /// The values that are used with more than their low 32 bits.
  DenseSet<Value> needed;
  DenseSet<Operation *> wideOps;
  DenseMap<Value, Value> wide;
};
} // namespace

bool Widening::fits(Value value) const {
  ConstantIntRanges range = ranges.get(value);
  return range.smin().isSignedIntN(32) && range.smax().isSignedIntN(32);
}

bool Widening::keepsLowBits(Operation &op) const {
  if (auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op))
    if (flags.getOverflowAttr().getValue() != arith::IntegerOverflowFlags::none)
      return false;
  if (auto shift = dyn_cast<arith::ShLIOp>(op))
    return ranges.get(shift.getRhs()).umax().ult(32);
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)) {
    Type result = op.getResult(0).getType();
    return result.isIndex() || result.getIntOrFloatBitWidth() <= 32;
  }
  return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::AndIOp,
             arith::OrIOp, arith::XOrIOp, arith::SelectOp, GuardOp>(op);
}

bool Widening::isWide(Operation &op) const {
  if (llvm::any_of(op.getResults(),
                   [&](Value result) { return needed.contains(result); }))
    return true;
  if (keepsLowBits(op))
    return false;
  // A negative number is another one without a sign; the number of zeros
  // depends on the width in any case.
  bool hasNoSign =
      isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp, arith::ShRUIOp,
          arith::IndexCastUIOp, arith::AddUIExtendedOp, arith::MulUIExtendedOp,
          math::CtPopOp>(op);
  if (isa<math::CountLeadingZerosOp, math::CountTrailingZerosOp>(op))
    return true;
  return llvm::any_of(op.getOperands(), [&](Value operand) {
    return operand.getType().isIndex() &&
           (!fits(operand) ||
            (hasNoSign && ranges.get(operand).smin().isNegative()));
  });
}

Widening::Widening(Block &block, const ScoreRanges &ranges)
    : block(block), ranges(ranges) {
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    if (isa<tensor::DimOp>(op) || op.hasTrait<OpTrait::ConstantLike>())
      continue;
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      // The size of an open dimension has 32 bits, which the host checks.
      for (auto [size, index] : llvm::zip_equal(
               extract.getTensor().getType().getShape(), extract.getIndices()))
        if (!ShapedType::isDynamic(size) && !llvm::isInt<32>(size - 1) &&
            !fits(index))
          needed.insert(index);
      continue;
    }
    if (!(hasIndex(op.getOperandTypes()) || hasIndex(op.getResultTypes())) ||
        !isWide(op))
      continue;
    wideOps.insert(&op);
    for (Value operand : op.getOperands())
      if (operand.getType().isIndex() && !fits(operand))
        needed.insert(operand);
  }
}

Value Widening::widen(OpBuilder &b, Value index) {
  Value &result = wide[index];
  APInt constant;
  if (!result && matchPattern(index, m_ConstantInt(&constant)))
    result = arith::ConstantIntOp::create(b, index.getLoc(),
                                          constant.getSExtValue(), 64);
  else if (!result)
    result =
        arith::IndexCastOp::create(b, index.getLoc(), b.getI64Type(), index);
  return result;
}

Value Widening::widenCast(OpBuilder &b, Operation &cast) {
  Value operand = cast.getOperand(0);
  bool isSigned = isa<arith::IndexCastOp>(cast);
  Type result = cast.getResult(0).getType();
  if (operand.getType().isIndex())
    operand = widen(b, operand);
  else
    result = b.getI64Type();
  unsigned from = operand.getType().getIntOrFloatBitWidth(),
           to = result.getIntOrFloatBitWidth();
  if (from == to)
    return operand;
  if (from > to)
    return arith::TruncIOp::create(b, cast.getLoc(), result, operand);
  if (isSigned)
    return arith::ExtSIOp::create(b, cast.getLoc(), result, operand);
  return arith::ExtUIOp::create(b, cast.getLoc(), result, operand);
}

void Widening::run() {
  SmallVector<Value> casts;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!wideOps.contains(&op))
      continue;
    OpBuilder b(&op);
    SmallVector<Value> results;
    if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op))
      results.push_back(widenCast(b, op));
    else
      llvm::append_range(results, cloneWide(b, op, [&](Value index) {
                                    return widen(b, index);
                                  })->getResults());
    for (auto [old, result] : llvm::zip_equal(op.getResults(), results)) {
      Value narrow = result;
      if (old.getType().isIndex()) {
        narrow =
            arith::IndexCastOp::create(b, op.getLoc(), old.getType(), result);
        wide[narrow] = result;
        casts.push_back(narrow);
      }
      old.replaceAllUsesWith(narrow);
    }
    op.erase();
  }
  for (Value cast : casts)
    if (cast.use_empty())
      cast.getDefiningOp()->erase();
}

static void widen(Block &block, ArrayRef<int64_t> extents,
                  ArrayRef<Value> lengthsOf = {}) {
  ScoreRanges ranges(block, extents,
                     {kMostHeads, kMostLength, std::numeric_limits<int>::max()},
                     lengthsOf);
  Widening(block, ranges).run();
}

/// The tensors whose sizes are lengths, such as `tensors`: also what these have
/// a dimension more than.
static SmallVector<Value> getLengthsOf(ArrayRef<Value> tensors) {
  SmallVector<Value> lengthsOf(tensors);
  for (Value tensor : tensors)
    if (auto expanded = tensor.getDefiningOp<tensor::ExpandShapeOp>())
      lengthsOf.push_back(expanded.getSrc());
  return lengthsOf;
}

namespace {
struct WidenIndices : flash::impl::WidenIndicesBase<WidenIndices> {
  void runOnOperation() override {
    getOperation().walk([](AttentionOpInterface op) {
      if (op.getScore().empty())
        return;
      widen(op.getScore().front(), getExtents(op),
            getLengthsOf({op.getQuery(), op.getKey()}));
    });
    // The region of a map computes the same as its attention's.
    getOperation().walk([](BlockMapOp op) {
      if (op.getKeep().empty())
        return;
      SmallVector<Value> tensors;
      for (Value size : op.getSizes())
        if (auto dim = size.getDefiningOp<tensor::DimOp>())
          tensors.push_back(dim.getSource());
      widen(op.getKeep().front(), op.getStaticSizes(), getLengthsOf(tensors));
    });
    SmallVector<int64_t> open(4, ShapedType::kDynamic);
    getOperation().walk([&](OnlineAttentionOp op) {
      if (!op.getScore().empty())
        widen(op.getScore().front(), open);
    });
  }
};
} // namespace
