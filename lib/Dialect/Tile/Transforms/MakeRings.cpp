//===- MakeRings.cpp - Fetches as steps of rings --------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/MapVector.h"

namespace flash::tile {
#define GEN_PASS_DEF_MAKERINGS
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

/// Whether the op gives a tile of shared memory that a ring is to hold.
static bool isSource(Operation *op) { return isa<FetchOp, ShareOp>(op); }

static Type getTileType(Operation *source) {
  return source->getResult(0).getType();
}

/// The ops of the block that give tiles, in their order.
static SmallVector<Operation *> getSources(Block &block) {
  SmallVector<Operation *> sources;
  for (Operation &op : block)
    if (isSource(&op))
      sources.push_back(&op);
  return sources;
}

/// Where a source takes its tile from, none for register tiles, and its type.
using Kind = std::pair<Value, Type>;

static Kind getKind(Operation *source) {
  auto fetch = dyn_cast<FetchOp>(source);
  return {fetch ? Value(fetch.getSource()) : Value(), getTileType(source)};
}

/// The kinds of the sources of the loop's body, those of two sources twice.
static SmallVector<Kind> getKinds(scf::ForOp loop) {
  return llvm::map_to_vector(getSources(*loop.getBody()), getKind);
}

/// The last op of the block that uses the tile, itself or inside. A product
/// uses it until it has been waited for.
static Operation *getLastUser(Operation *source) {
  Operation *last = source;
  auto visit = [&](Operation *user) {
    Operation *ancestor = source->getBlock()->findAncestorOpInBlock(*user);
    if (last->isBeforeInBlock(ancestor))
      last = ancestor;
  };
  for (Operation *user : source->getUsers()) {
    visit(user);
    if (auto product = dyn_cast<MmaAsyncOp>(user))
      llvm::for_each(product->getUsers(), visit);
  }
  return last;
}

static Operation *getFirstUser(Operation *source) {
  Operation *first = nullptr;
  for (Operation *user : source->getUsers()) {
    Operation *ancestor = source->getBlock()->findAncestorOpInBlock(*user);
    if (!first || ancestor->isBeforeInBlock(first))
      first = ancestor;
  }
  return first;
}

/// Replaces what gives a tile by step `step` of `ring`.
static void expandSource(Operation *source, Value ring, Value step) {
  Location loc = source->getLoc();
  Operation *last = getLastUser(source), *first = getFirstUser(source);
  OpBuilder b(source);
  RingAcquireOp::create(b, loc, ring, step);
  if (auto share = dyn_cast<ShareOp>(source)) {
    RingPutOp::create(b, loc, share.getX(), ring, step);
  } else {
    auto fetch = cast<FetchOp>(source);
    CopyAsyncOp::create(b, loc, fetch.getSource(), fetch.getIndices(),
                        fetch.getRows(), ring, step, /*part=*/Value(),
                        fetch.getUnfilled(), fetch.getPackedAttr());
  }
  b.setInsertionPoint(first);
  Value tile = RingWaitOp::create(b, loc, getTileType(source), ring, step);
  b.setInsertionPointAfter(last);
  RingReleaseOp::create(b, loc, ring, step);
  source->getResult(0).replaceAllUsesWith(tile);
  source->erase();
}

/// Makes `loop` carry the number of the step, from `first` on; returns the loop
/// that replaces it.
static scf::ForOp addStepCounter(scf::ForOp loop, Value first) {
  IRRewriter rewriter(loop.getContext());
  rewriter.setInsertionPoint(loop);
  auto next = [](OpBuilder &b, Location loc, ArrayRef<BlockArgument> args) {
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    return SmallVector<Value>{
        arith::AddIOp::create(b, loc, args.back(), one).getResult()};
  };
  return cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, first, /*replaceInitOperandUsesInLoop=*/false, next));
}

/// Makes `choice` give `then` or, where it goes the other way, `otherwise`, as
/// one more result; returns that result.
static Value addResult(scf::IfOp choice, Value then, Value otherwise) {
  OpBuilder b(choice);
  SmallVector<Type> types(choice.getResultTypes());
  types.push_back(then.getType());
  auto copy =
      scf::IfOp::create(b, choice.getLoc(), types, choice.getCondition());
  Value values[] = {then, otherwise};
  for (auto [from, to, value] : llvm::zip_equal(
           choice->getRegions(), copy->getRegions(), ArrayRef(values))) {
    to.takeBody(from);
    if (to.empty()) {
      OpBuilder inBranch = OpBuilder::atBlockEnd(&to.emplaceBlock());
      scf::YieldOp::create(inBranch, choice.getLoc());
    }
    to.front().getTerminator()->insertOperands(choice.getNumResults(), value);
  }
  choice->replaceAllUsesWith(copy->getResults().drop_back());
  choice.erase();
  return copy->getResults().back();
}

/// Whether the loop's induction variable is the number of its iteration and of
/// the step, as in a loop over tiles that no other loop is around.
static bool isCounter(scf::ForOp loop) {
  return getConstantIntValue(loop.getLowerBound()) == 0 &&
         getConstantIntValue(loop.getStep()) == 1 &&
         !loop->getParentOfType<scf::ForOp>();
}

/// How many loops there are around the op.
static int64_t getDepth(Operation *op) {
  int64_t depth = 0;
  while ((op = op->getParentOp()))
    depth += isa<LoopLikeOpInterface>(op);
  return depth;
}

/// Whether a product, whose result is shared, is all that reads the tile.
static bool isOfSharedProduct(Operation *source) {
  auto getOnlyUser = [](Operation *op) {
    return op && op->hasOneUse() ? *op->user_begin() : nullptr;
  };
  auto product = dyn_cast_if_present<MmaAsyncOp>(getOnlyUser(source));
  auto end = dyn_cast_if_present<MmaWaitOp>(getOnlyUser(product));
  return product && !product.getC() &&
         isa_and_present<ShareOp>(getOnlyUser(end));
}

namespace {
struct MakeRings : flash::tile::impl::MakeRingsBase<MakeRings> {
  int64_t stages = 1, queryStages = 1;
  bool defersProducts = false;

  /// A ring for tiles like the source's, at the kernel's start. Threads read
  /// what they have written at once: one stage is enough, and two where they
  /// may read it an iteration later (tile-defer-products).
  Value createRing(Operation *source, int64_t stages) {
    OpBuilder b = OpBuilder::atBlockBegin(&getOperation().getBody().front());
    if (isa<ShareOp>(source))
      stages = defersProducts && isOfSharedProduct(source) ? 2 : 1;
    auto type = RingType::get(&getContext(), stages,
                              cast<SmemType>(getTileType(source)));
    return RingOp::create(b, source->getLoc(), type);
  }

  /// Loops of a block, one after the other, with sources of the same kinds.
  void expandLoops(ArrayRef<scf::ForOp> loops, int64_t stages) {
    // By kind, and how many such sources of the loop there were before: a
    // product of a matrix with itself has two.
    llvm::MapVector<std::pair<Kind, int>, Value> rings;
    scf::ForOp first = loops.front();
    Operation *outermost = first;
    while (isa<scf::IfOp>(outermost->getParentOp()))
      outermost = outermost->getParentOp();
    OpBuilder b(outermost);
    Value start = arith::ConstantIndexOp::create(b, first.getLoc(), 0);
    Value step = start;
    bool countsSteps = loops.size() == 1 && isCounter(first);
    for (scf::ForOp loop : loops) {
      SmallVector<Operation *> sources = getSources(*loop.getBody());
      Value number = loop.getInductionVar();
      if (!countsSteps) {
        loop = addStepCounter(loop, step);
        step = loop.getResults().back();
        number = loop.getRegionIterArgs().back();
      }
      llvm::DenseMap<Kind, int> seen;
      for (Operation *source : sources) {
        Kind kind = getKind(source);
        Value &ring = rings[{kind, seen[kind]++}];
        if (!ring)
          ring = createRing(source, stages);
        expandSource(source, ring, number);
      }
    }
    // Loops around them, and around choices whether they are reached, go on
    // counting where they stopped before.
    while (auto outer = step.getDefiningOp()->getParentOfType<scf::ForOp>()) {
      while (auto choice =
                 dyn_cast<scf::IfOp>(step.getDefiningOp()->getParentOp()))
        step = addResult(choice, step, start);
      IRRewriter rewriter(&getContext());
      rewriter.setInsertionPoint(outer);
      Value zero = arith::ConstantIndexOp::create(rewriter, outer.getLoc(), 0);
      auto yieldStep = [&](OpBuilder &, Location,
                           ArrayRef<BlockArgument> args) {
        start.replaceAllUsesWith(args.back());
        return SmallVector<Value>{step};
      };
      LoopLikeOpInterface counting = *outer.replaceWithAdditionalYields(
          rewriter, zero, /*replaceInitOperandUsesInLoop=*/false, yieldStep);
      start = zero;
      step = counting->getResults().back();
    }
  }

  /// The first source with the most loops around it; null if none is left.
  Operation *findInnermost() {
    Operation *innermost = nullptr;
    getOperation().walk([&](Operation *op) {
      if (isSource(op) && (!innermost || getDepth(op) > getDepth(innermost)))
        innermost = op;
    });
    return innermost;
  }

  /// Expands a source, with those of its loop and of the loops next to that
  /// which have the same. A ring of some loops only would lack the steps of the
  /// others, so loops with other sources have rings of their own.
  LogicalResult expand(Operation *source) {
    if (getDepth(source) == 0) {
      OpBuilder b(source);
      Value zero = arith::ConstantIndexOp::create(b, source->getLoc(), 0);
      expandSource(source, createRing(source, 1), zero);
      return success();
    }
    auto loop = dyn_cast<scf::ForOp>(source->getParentOp());
    if (!loop)
      return source->emitOpError(
          "in a loop can become a ring only directly in its body");
    SmallVector<scf::ForOp> loops;
    SmallVector<Kind> kinds = getKinds(loop);
    bool isInnermost = true;
    for (auto other : loop->getBlock()->getOps<scf::ForOp>()) {
      SmallVector<Kind> others = getKinds(other);
      if (!std::is_permutation(kinds.begin(), kinds.end(), others.begin(),
                               others.end()))
        continue;
      loops.push_back(other);
      other.getBody()->walk([&](RingOpInterface) { isInnermost = false; });
    }
    expandLoops(loops, isInnermost ? stages : queryStages);
    return success();
  }

  void runOnOperation() override {
    flash::Schedule schedule = flash::getSchedule(getOperation());
    stages = schedule.stages.value_or(1);
    queryStages = schedule.queryStages.value_or(1);
    defersProducts = schedule.has(flash::ScheduleFeatures::DeferProducts);
    getOperation().walk([](Operation *op) {
      if (isSource(op) && op->use_empty())
        op->erase();
    });
    while (Operation *source = findInnermost())
      if (failed(expand(source)))
        return signalPassFailure();
  }
};
} // namespace
