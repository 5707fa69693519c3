//===- GuardReads.cpp - What elements left out must not read --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/ScoreRanges.h"
#include "flash/Analysis/ScoreRegion.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"

namespace flash {
#define GEN_PASS_DEF_GUARDREADS
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
/// What is known of the values of one score region.
class ScoreValues {
public:
  /// `extents` are how many batches, heads, queries and keys there are.
  ScoreValues(Block &score, ArrayRef<int64_t> extents);

  /// Whether the value may be another one for each query or key.
  bool varies(Value value) const { return varying.contains(value); }
  /// Whether the index is below `size` for all positions.
  bool isBelow(Value index, int64_t size) const;

private:
  DenseSet<Value> varying;
  ScoreRanges ranges;
};
} // namespace

static constexpr int64_t most = std::numeric_limits<int64_t>::max();

ScoreValues::ScoreValues(Block &score, ArrayRef<int64_t> extents)
    : ranges(score, extents, {most, most, most}) {
  // All but the batch and the head.
  varying.insert_range(score.getArguments().take_back(2));
  varying.insert_range(score.getArguments().drop_back(4));
  for (Operation &op : score) {
    if (llvm::any_of(op.getOperands(),
                     [&](Value operand) { return varies(operand); }))
      varying.insert_range(op.getResults());
  }
}

bool ScoreValues::isBelow(Value index, int64_t size) const {
  ConstantIntRanges range = ranges.get(index);
  return !ShapedType::isDynamic(size) && !range.smin().isNegative() &&
         range.smax().slt(size);
}

/// The operands of `op` that must not be what they are for elements that do not
/// take part, and what they are instead.
static SmallVector<std::pair<OpOperand *, int64_t>>
getDangerousOperands(Operation &op, const ScoreValues &values,
                     function_ref<bool(BlockArgument)> exists) {
  SmallVector<std::pair<OpOperand *, int64_t>> dangerous;
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    ArrayRef<int64_t> shape = extract.getTensor().getType().getShape();
    for (auto [size, index] :
         llvm::zip_equal(shape, extract.getIndicesMutable()))
      if (auto position = dyn_cast<BlockArgument>(index.get());
          !(position && exists(position)) && values.varies(index.get()) &&
          !values.isBelow(index.get(), size))
        dangerous.push_back({&index, 0});
  } else if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
                 arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(
                 op)) {
    OpOperand &divisor = op.getOpOperand(1);
    if (values.varies(divisor.get()))
      dangerous.push_back({&divisor, 1});
  }
  llvm::erase_if(dangerous, [](auto &pair) {
    return pair.first->get().template getDefiningOp<GuardOp>();
  });
  return dangerous;
}

namespace {
/// The elements whose scores a region does not give as -inf by their position.
/// Where a map is of another mask, such an -inf stays in the region; what is
/// computed for the other elements alone is read for these alone.
class ChosenElements {
public:
  explicit ChosenElements(Block &score);

  /// The operand of `op` for these elements, and for others `otherwise`.
  Value choose(OpBuilder &b, Operation &op, Value operand, int64_t otherwise);

private:
  Value areChosen;
  /// What says which they are, or which take part.
  DenseSet<Operation *> conditions;
};
} // namespace

ChosenElements::ChosenElements(Block &score) {
  MaskingChoices choices = getMaskingChoices(score);
  if (choices.outermostFirst.empty())
    return;
  DenseSet<Value> needed;
  for (const MaskingChoice &choice : choices.outermostFirst)
    needed.insert(choice.condition);
  if (Value keep = cast<YieldOp>(score.getTerminator()).getKeep())
    needed.insert(keep);
  for (Operation &op : llvm::reverse(score.without_terminator()))
    if (llvm::any_of(op.getResults(),
                     [&](Value result) { return needed.contains(result); })) {
      needed.insert_range(op.getOperands());
      conditions.insert(&op);
    }
  // Conditions come first, so that all other operations may use them.
  Operation *end = nullptr;
  for (Operation &op : llvm::make_early_inc_range(score))
    if (!conditions.contains(&op))
      end = end ? end : &op;
    else if (end)
      op.moveBefore(end);
  OpBuilder b(end);
  for (const MaskingChoice &choice : choices.outermostFirst) {
    Value keep = emitKeep(b, choice);
    areChosen = areChosen
                    ? arith::AndIOp::create(b, keep.getLoc(), keep, areChosen)
                    : keep;
  }
}

Value ChosenElements::choose(OpBuilder &b, Operation &op, Value operand,
                             int64_t otherwise) {
  if (!areChosen || conditions.contains(&op))
    return operand;
  Value other = arith::ConstantOp::create(
      b, op.getLoc(), b.getIntegerAttr(operand.getType(), otherwise));
  return arith::SelectOp::create(b, op.getLoc(), areChosen, operand, other);
}

static void guard(Block &score, ArrayRef<int64_t> extents) {
  ScoreValues values(score, extents);
  std::optional<ChosenElements> chosen;
  if (isa<AttentionOpInterface>(score.getParentOp()))
    chosen.emplace(score);
  // The position itself is of an element that exists, but where sequences end
  // before their dimension.
  auto attention = dyn_cast<AttentionOpInterface>(score.getParentOp());
  auto exists = [&](BlockArgument position) {
    return !attention || !attention.getLengthsOf(position);
  };
  for (Operation &op : score)
    for (auto [operand, otherwise] : getDangerousOperands(op, values, exists)) {
      OpBuilder b(&op);
      Value value = operand->get();
      if (chosen)
        value = chosen->choose(b, op, value, otherwise);
      operand->set(
          GuardOp::create(b, op.getLoc(), value.getType(), value, otherwise));
    }
}

namespace {
struct GuardReads : flash::impl::GuardReadsBase<GuardReads> {
  void runOnOperation() override {
    getOperation().walk([](AttentionOpInterface op) {
      if (op.getScore().empty())
        return;
      guard(op.getScore().front(), getExtents(op));
    });
    getOperation().walk([](BlockMapOp op) {
      if (!op.getKeep().empty())
        guard(op.getKeep().front(), op.getStaticSizes());
    });
    getOperation().walk([](OnlineAttentionOp op) {
      if (!op.getScore().empty())
        guard(op.getScore().front(),
              SmallVector<int64_t>(4, ShapedType::kDynamic));
    });
  }
};
} // namespace
