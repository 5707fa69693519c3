//===- ScoreRanges.cpp - Integers of score regions ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/ScoreRanges.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace flash;

/// From 0 to `last`.
static ConstantIntRanges upTo(int64_t last) {
  return ConstantIntRanges::fromSigned(APInt(64, 0), APInt(64, last));
}

ScoreRanges::ScoreRanges(Block &score, ArrayRef<int64_t> extents,
                         MostSizes most, ArrayRef<Value> lengthsOf)
    : block(&score), most(most), lengthsOf(lengthsOf.begin(), lengthsOf.end()) {
  int64_t mostExtents[] = {most.heads, most.heads, most.length, most.length};
  for (auto [argument, extent, mostExtent] : llvm::zip_equal(
           score.getArguments().take_back(4), extents, mostExtents)) {
    int64_t number = ShapedType::isDynamic(extent) ? mostExtent : extent;
    ranges.insert({argument, upTo(std::max<int64_t>(number - 1, 0))});
  }
  for (Operation &op : score) {
    if (auto guard = dyn_cast<GuardOp>(op)) {
      ConstantIntRanges value = get(guard.getValue());
      APInt otherwise(64, guard.getOtherwise(), /*isSigned=*/true);
      ranges.insert({guard.getResult(),
                     value.rangeUnion(ConstantIntRanges::constant(
                         otherwise.sextOrTrunc(value.smin().getBitWidth())))});
    }
    auto inferable = dyn_cast<InferIntRangeInterface>(op);
    if (!inferable || !llvm::all_of(op.getOperandTypes(), [](Type type) {
          return type.isIntOrIndex();
        }))
      continue;
    auto operands = llvm::map_to_vector(
        op.getOperands(), [&](Value operand) { return get(operand); });
    inferable.inferResultRanges(
        operands, [&](Value result, const ConstantIntRanges &range) {
          ranges.insert({result, range});
        });
  }
}

ConstantIntRanges ScoreRanges::get(Value value) const {
  auto known = ranges.find(value);
  if (known != ranges.end())
    return known->second;
  unsigned width = ConstantIntRanges::getStorageBitwidth(value.getType());
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return ConstantIntRanges::constant(constant.sextOrTrunc(width));
  if (auto dim = value.getDefiningOp<tensor::DimOp>())
    return upTo(lengthsOf.contains(dim.getSource()) ? most.length
                                                    : most.ofOthers);
  if (value.getType().isIndex() && value.getParentBlock() != block)
    return ConstantIntRanges::fromSigned(
        APInt(64, -most.ofOthers - 1, /*isSigned=*/true),
        APInt(64, most.ofOthers));
  return ConstantIntRanges::maxRange(width);
}

std::array<int64_t, 4> flash::getExtents(AttentionOpInterface op) {
  ArrayRef<int64_t> query = op.getQuery().getType().getShape();
  size_t rows = query.size() - 2;
  return {op.hasBatch() ? query.front() : 1,
          op.hasHeads() ? query[rows - 1] : 1, query[rows],
          op.getKey().getType().getShape()[rows]};
}
