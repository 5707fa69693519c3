//===- ShareSums.cpp - What positions of neighbours have in common --------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IndexSum.h"
#include "flash/Target/Nvptx/Passes.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace flash {
#define GEN_PASS_DEF_FLASHGPUSHARESUMS
#include "flash/Target/Nvptx/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// Whether the value differs between the threads of a block, as far as can be
/// seen without control flow.
static bool isOfThread(Value value) {
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitBlockArguments = true;
  options.filter = [](Operation *op) {
    return isa<gpu::ThreadIdOp>(op) ||
           isa<arith::ArithDialect>(op->getDialect());
  };
  SetVector<Operation *> slice;
  (void)getBackwardSlice(value, &slice, options);
  return llvm::any_of(slice, llvm::IsaPred<gpu::ThreadIdOp>);
}

/// The sum without its constant.
static Value emitTerms(OpBuilder &b, Location loc, const IndexSum &sum) {
  // What threads have in common first: uniform registers hold it.
  SmallVector<std::pair<Value, bool>> ordered, ofThreads;
  for (auto &term : sum.terms)
    (isOfThread(term.first) ? ofThreads : ordered).push_back(term);
  llvm::append_range(ordered, ofThreads);
  // To subtract from zero takes one more instruction.
  auto *added = llvm::find_if(ordered, [](auto &term) { return !term.second; });
  if (added != ordered.end())
    std::rotate(ordered.begin(), added, added + 1);
  Value result;
  for (auto [term, isSubtracted] : ordered) {
    if (!result && !isSubtracted)
      result = term;
    else if (!result)
      result = arith::SubIOp::create(
          b, loc, arith::ConstantIndexOp::create(b, loc, 0), term);
    else if (isSubtracted)
      result = arith::SubIOp::create(b, loc, result, term);
    else
      result = arith::AddIOp::create(b, loc, result, term);
  }
  return result;
}

/// What `index` is without its constant, emitted with `b`, and the constant;
/// nothing if it has none, or nothing else.
static std::optional<std::pair<Value, int64_t>> splitConstant(OpBuilder &b,
                                                              Value index) {
  IndexSum sum;
  sum.add(index, /*isSubtracted=*/false);
  if (sum.terms.empty() || sum.constant == 0 ||
      !IndexSum::isSmall(sum.constant))
    return std::nullopt;
  return std::pair(emitTerms(b, index.getLoc(), sum), sum.constant);
}

static void shareConversion(arith::SIToFPOp op) {
  auto cast = op.getIn().getDefiningOp<arith::IndexCastOp>();
  // A narrower integer need not be the index.
  if (!op.getType().isF32() || !cast ||
      cast.getType().getIntOrFloatBitWidth() < 32)
    return;
  OpBuilder b(op);
  auto split = splitConstant(b, cast.getIn());
  if (!split)
    return;
  Location loc = op.getLoc();
  auto [terms, constant] = *split;
  Value integer = arith::IndexCastOp::create(b, loc, cast.getType(), terms);
  Value base = arith::SIToFPOp::create(b, loc, op.getType(), integer);
  Value offset = arith::ConstantOp::create(
      b, loc, b.getF32FloatAttr(static_cast<float>(constant)));
  op.replaceAllUsesWith(
      arith::AddFOp::create(b, loc, base, offset).getResult());
  op.erase();
}

/// Whether a load's address is made of the value.
static bool isPartOfAddress(Value value) {
  SetVector<Operation *> users;
  ForwardSliceOptions options;
  options.filter = [](Operation *op) {
    return isa<LLVM::GEPOp, LLVM::LoadOp>(op) ||
           isa<arith::ArithDialect>(op->getDialect());
  };
  getForwardSlice(value, &users, options);
  return llvm::any_of(users, llvm::IsaPred<LLVM::LoadOp>);
}

/// Addresses of neighbours have one base, and instructions hold their
/// constants: an offset in bytes is the widened index times a constant.
static void shareOffset(arith::IndexCastOp op) {
  if (!op.getType().isInteger(64) || !isOfThread(op.getIn()) ||
      !isPartOfAddress(op))
    return;
  OpBuilder b(op);
  auto split = splitConstant(b, op.getIn());
  if (!split)
    return;
  Location loc = op.getLoc();
  auto [terms, constant] = *split;
  Value base = arith::IndexCastOp::create(b, loc, op.getType(), terms);
  Value offset =
      arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(constant));
  op.replaceAllUsesWith(
      arith::AddIOp::create(b, loc, base, offset).getResult());
  op.erase();
}

/// The elements of a thread compare sums that differ by constants with the same
/// bound, or with others: they can compare one difference with constants.
static void shareComparison(arith::CmpIOp op) {
  std::optional<int64_t> bound = getConstantIntValue(op.getRhs());
  // A sum below zero has another order than an unsigned integer. What threads
  // have in common is left to uniform registers.
  if (!op.getLhs().getType().isIndex() ||
      op.getPredicate() >= arith::CmpIPredicate::ult ||
      (bound ? !IndexSum::isSmall(*bound) : !isOfThread(op.getLhs())))
    return;
  IndexSum sum;
  sum.add(op.getLhs(), /*isSubtracted=*/false);
  if (sum.terms.empty() || sum.constant == 0)
    return;
  sum.add(op.getRhs(), /*isSubtracted=*/true);
  if (!IndexSum::isSmall(sum.constant))
    return;
  OpBuilder b(op);
  Location loc = op.getLoc();
  op.getLhsMutable().assign(emitTerms(b, loc, sum));
  op.getRhsMutable().assign(
      arith::ConstantIndexOp::create(b, loc, -sum.constant));
}

namespace {
struct ShareSums : flash::impl::FlashGpuShareSumsBase<ShareSums> {
  void runOnOperation() override {
    getOperation()->walk(shareConversion);
    getOperation()->walk(shareOffset);
    getOperation()->walk(shareComparison);
  }
};
} // namespace
