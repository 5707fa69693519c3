//===- ShareConversions.cpp - One conversion for neighbouring integers ----===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Nvptx/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace flash {
#define GEN_PASS_DEF_FLASHGPUSHARECONVERSIONS
#include "flash/Target/Nvptx/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
/// Where f32 holds the integers up to here, it holds their sums, too.
constexpr int64_t largestConstant = int64_t(1) << 24;

/// A sum of indices and of a constant. Those of a kernel do not overflow, so
/// the order of summation is free.
struct Sum {
  SmallVector<std::pair<Value, bool>> terms; ///< And whether it is subtracted.
  int64_t constant = 0;

  void add(Value value, bool isSubtracted);
  Value emitTerms(OpBuilder &b, Location loc) const;
};
} // namespace

void Sum::add(Value value, bool isSubtracted) {
  Operation *op = value.getDefiningOp();
  std::optional<int64_t> number = getConstantIntValue(value);
  if (number && *number >= -largestConstant && *number <= largestConstant) {
    constant += isSubtracted ? -*number : *number;
  } else if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) {
    add(op->getOperand(0), isSubtracted);
    add(op->getOperand(1), isSubtracted != isa<arith::SubIOp>(op));
  } else {
    terms.emplace_back(value, isSubtracted);
  }
}

Value Sum::emitTerms(OpBuilder &b, Location loc) const {
  Value sum;
  for (auto [term, isSubtracted] : terms) {
    if (!sum && !isSubtracted)
      sum = term;
    else if (!sum)
      sum = arith::SubIOp::create(
          b, loc, arith::ConstantIndexOp::create(b, loc, 0), term);
    else if (isSubtracted)
      sum = arith::SubIOp::create(b, loc, sum, term);
    else
      sum = arith::AddIOp::create(b, loc, sum, term);
  }
  return sum;
}

namespace {
struct ShareConversions
    : flash::impl::FlashGpuShareConversionsBase<ShareConversions> {
  void runOnOperation() override {
    getOperation()->walk([](arith::SIToFPOp op) {
      auto cast = op.getIn().getDefiningOp<arith::IndexCastOp>();
      // A narrower integer need not be the index.
      if (!op.getType().isF32() || !cast ||
          cast.getType().getIntOrFloatBitWidth() < 32)
        return;
      Sum sum;
      sum.add(cast.getIn(), /*isSubtracted=*/false);
      if (sum.terms.empty() || sum.constant == 0 ||
          std::abs(sum.constant) > largestConstant)
        return;
      OpBuilder b(op);
      Location loc = op.getLoc();
      Value integer = arith::IndexCastOp::create(b, loc, cast.getType(),
                                                 sum.emitTerms(b, loc));
      Value base = arith::SIToFPOp::create(b, loc, op.getType(), integer);
      Value offset = arith::ConstantOp::create(
          b, loc, b.getF32FloatAttr(static_cast<float>(sum.constant)));
      op.replaceAllUsesWith(
          arith::AddFOp::create(b, loc, base, offset).getResult());
      op.erase();
    });
  }
};
} // namespace
