//===- Contributions.cpp - Tiles that blocks add to sums in order ---------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockConverter.h"
#include "flash/Dialect/Tile/Utils/TileOrder.h"
#include "flash/Dialect/Tile/Utils/WideGradients.h"
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

LogicalResult BlockConverter::verifyAddition(ParallelAddOp op) {
  if (!beginsEmpty(op.getContributions()))
    return refuse(op, "what a block adds begins as an empty tensor, to which "
                      "flash.contribute puts tiles one after the other");
  if (tile::getDirection(getBlockOrder().getKind()) != tile::Direction::None)
    return success();
  return refuse(op,
                "blocks that add in order take the tiles of a head one after "
                "the other, in the order linear, heads_fastest, interleaved, "
                "reverse, both_ways or longest_first");
}

bool BlockConverter::addsToOthers() {
  Block *stores = forall.getTerminator().getBody();
  return !stores->getOps<ParallelAddOp>().empty();
}

bool BlockConverter::hasWideGradients() {
  return addsToOthers() && forall
                               .walk([](scf::ForOp loop) {
                                 return tile::sumsUpWideGradients(loop)
                                            ? WalkResult::interrupt()
                                            : WalkResult::advance();
                               })
                               .wasInterrupted();
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
  // An order without a direction is refused where the addition is.
  TileOrder order = getBlockOrder().getKind();
  Value rank;
  if (op.getBehind()) {
    // A position in the loop's body is an order of its own.
    bool hasOwn = order == TileOrder::HeadsFastest &&
                  !forall.getBody()->getOps<tile::PositionOp>().empty();
    if (!hasOwn && tile::getDirection(order) != tile::Direction::Backwards)
      return refuse(op, "a contribution with behind needs blocks that take the "
                        "tiles of a head backwards, in the order reverse or "
                        "longest_first");
    rank = lookup(op.getBehind());
  } else if (tile::getDirection(order) != tile::Direction::None) {
    rank = tile::emitRank(
        b, loc, blockPosition, [&] { return lookup(op.getFirst()); },
        [&] { return lookup(op.getEnd()); });
  } else {
    rank = constant(0);
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
