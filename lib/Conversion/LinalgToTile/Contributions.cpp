//===- Contributions.cpp - Tiles that blocks add to sums in order ---------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace flash;

ParallelAddOp flash::getAddition(Value contributions) {
  // What else takes them is refused where they are converted.
  while (contributions.hasOneUse()) {
    OpOperand &use = *contributions.use_begin();
    Operation *user = use.getOwner();
    if (auto addition = dyn_cast<ParallelAddOp>(user))
      return use.get() == addition.getContributions() ? addition
                                                      : ParallelAddOp();
    if (auto next = dyn_cast<ContributeOp>(user))
      contributions = next.getResult();
    else if (isa<scf::YieldOp>(user))
      contributions = user->getParentOp()->getResult(use.getOperandNumber());
    else if (auto loop = dyn_cast<scf::ForOp>(user))
      contributions = loop.getTiedLoopResult(&use);
    else
      return {};
  }
  return {};
}

/// Whether nothing but tiles that were contributed is in `contributions`.
static bool beginsEmpty(Value contributions) {
  if (auto argument = dyn_cast<BlockArgument>(contributions)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && beginsEmpty(loop.getTiedLoopInit(argument)->get());
  }
  Operation *op = contributions.getDefiningOp();
  unsigned number = cast<OpResult>(contributions).getResultNumber();
  if (auto last = dyn_cast<ContributeOp>(op))
    return beginsEmpty(last.getContributions());
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return beginsEmpty(loop.getYieldedValues()[number]);
  if (auto choice = dyn_cast<scf::IfOp>(op))
    return beginsEmpty(choice.thenYield().getOperand(number)) &&
           beginsEmpty(choice.elseYield().getOperand(number));
  return isa<tensor::EmptyOp>(op);
}

namespace {
/// In which order blocks of greater numbers take the tiles of a head.
enum class Direction { Forwards, Backwards, OfHead, None };
} // namespace

static Direction getDirection(TileOrder order) {
  switch (order) {
  case TileOrder::Linear:
  case TileOrder::HeadsFastest:
  case TileOrder::Interleaved:
    return Direction::Forwards;
  case TileOrder::LongestFirst:
  case TileOrder::Reverse:
  case TileOrder::Backwards:
    return Direction::Backwards;
  case TileOrder::BothWays:
    return Direction::OfHead;
  case TileOrder::Snake:
  case TileOrder::Pairs:
  case TileOrder::BothEnds:
    return Direction::None;
  }
  llvm_unreachable("unknown order");
}

LogicalResult BlockConverter::verifyAddition(ParallelAddOp op) {
  if (!beginsEmpty(op.getContributions()))
    return refuse(op, "what a block adds begins as an empty tensor, to which "
                      "flash.contribute puts tiles one after the other");
  if (getDirection(getBlockOrder().getKind()) != Direction::None)
    return success();
  return refuse(op,
                "blocks that add in order take the tiles of a head one after "
                "the other, in the order linear, heads_fastest, interleaved, "
                "reverse, both_ways or longest_first");
}

LogicalResult BlockConverter::convertContribution(ContributeOp op) {
  ParallelAddOp addition = getAddition(op.getResult());
  if (!addition)
    return refuse(op, "a tile is put among contributions that nothing adds, or "
                      "that something else takes, too");
  FailureOr<Value> tile = getSharedTile(op.getTile(), op);
  if (failed(tile))
    return failure();
  Location loc = op.getLoc();
  auto forwards = [&]() -> Value {
    return b.createOrFold<arith::SubIOp>(loc, unit, lookup(op.getFirst()));
  };
  auto backwards = [&]() -> Value {
    Value behind =
        b.createOrFold<arith::SubIOp>(loc, lookup(op.getEnd()), unit);
    return b.createOrFold<arith::SubIOp>(loc, behind, constant(1));
  };
  // An order without a direction is refused where the addition is.
  Direction direction = getDirection(getBlockOrder().getKind());
  Value rank;
  if (op.getBehind()) {
    if (direction != Direction::Backwards)
      return refuse(op, "a contribution with behind needs blocks that take the "
                        "tiles of a head backwards, in the order reverse or "
                        "longest_first");
    rank = lookup(op.getBehind());
  } else {
    rank = direction == Direction::Backwards ? backwards() : forwards();
    if (direction == Direction::OfHead)
      rank =
          b.createOrFold<arith::SelectOp>(loc, isBackwards, backwards(), rank);
  }
  SmallVector<Value> position =
      llvm::map_to_vector(op.getPosition(), [&](Value v) { return lookup(v); });
  Value sums = capture(addition.getSums()),
        counts = capture(addition.getCounts());
  SmallVector<Value> indices = position;
  indices.push_back(constant(0));
  tile::AddInOrderOp::create(b, loc, *tile, sums, indices, rank, counts,
                             position);
  return success();
}
