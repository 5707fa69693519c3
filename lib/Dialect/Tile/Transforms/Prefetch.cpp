//===- Prefetch.cpp - Start copies as early as their slots are free -------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace flash::tile {
#define GEN_PASS_DEF_PREFETCH
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

namespace {
/// What one loop does with one ring in each iteration.
struct RingUse {
  RingAcquireOp acquire;
  CopyAsyncOp copy;
  RingWaitOp wait;
  RingReleaseOp release;

  bool isComplete() { return acquire && copy && wait && release; }
};

/// One loop of a chain; rings are in the order of their waits.
struct Loop {
  scf::ForOp op;
  llvm::MapVector<Value, RingUse> rings;

  Value getStep() { return op.getRegionIterArgs().back(); }
};

/// Loops over the same rings, each starting where the one before ends.
class Chain {
public:
  explicit Chain(Loop first) { loops.push_back(std::move(first)); }
  /// Adds `loop` if it continues the chain.
  bool append(Loop &loop);
  /// Whether copies of any step can be made anywhere: they depend on nothing
  /// in the loop but its induction variable, which is the row.
  bool canPrefetch();
  void prefetch();

private:
  /// Emits the copy of `ring` for the tile that starts at `row`, as step
  /// `step`, if there is such a tile.
  void emitCopy(OpBuilder &b, Value ring, Value row, Value step, bool guard);

  SmallVector<Loop> loops;
};
} // namespace

static std::optional<Loop> analyze(scf::ForOp op) {
  Loop loop = {op, {}};
  for (auto wait : op.getOps<RingWaitOp>())
    loop.rings[wait.getRing()].wait = wait;
  for (Operation &inner : *op.getBody()) {
    if (auto acquire = dyn_cast<RingAcquireOp>(inner))
      loop.rings[acquire.getRing()].acquire = acquire;
    else if (auto copy = dyn_cast<CopyAsyncOp>(inner))
      loop.rings[copy.getRing()].copy = copy;
    else if (auto release = dyn_cast<RingReleaseOp>(inner))
      loop.rings[release.getRing()].release = release;
  }
  if (loop.rings.empty() || op.getNumRegionIterArgs() == 0)
    return std::nullopt;
  for (auto &[ring, use] : loop.rings)
    if (!use.isComplete() || use.copy.getStep() != loop.getStep())
      return std::nullopt;
  return loop;
}

bool Chain::append(Loop &loop) {
  Loop &last = loops.back();
  if (loop.op->getBlock() != last.op->getBlock() ||
      loop.op.getLowerBound() != last.op.getUpperBound() ||
      loop.op.getStep() != last.op.getStep() ||
      loop.op.getInitArgs().back() != last.op.getResults().back() ||
      loop.rings.size() != last.rings.size())
    return false;
  for (auto [mine, theirs] : llvm::zip_equal(loop.rings, last.rings))
    if (mine.first != theirs.first ||
        mine.second.copy.getSource() != theirs.second.copy.getSource())
      return false;
  loops.push_back(std::move(loop));
  return true;
}

bool Chain::canPrefetch() {
  for (Loop &loop : loops)
    for (auto &[ring, use] : loop.rings) {
      ValueRange indices = use.copy.getIndices();
      scf::ForOp op = loop.op;
      if (indices.back() != op.getInductionVar() ||
          !llvm::all_of(indices.drop_back(), [&](Value index) {
            return op.isDefinedOutsideOfLoop(index);
          }))
        return false;
    }
  return true;
}

/// Copies the ops of the loop that compute `value` from its induction variable.
static Value cloneFor(OpBuilder &b, Value value, scf::ForOp loop,
                      IRMapping &mapping) {
  if (mapping.contains(value) || loop.isDefinedOutsideOfLoop(value))
    return mapping.lookupOrDefault(value);
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    cloneFor(b, operand, loop, mapping);
  b.clone(*op, mapping);
  return mapping.lookup(value);
}

void Chain::emitCopy(OpBuilder &b, Value ring, Value row, Value step,
                     bool guard) {
  // The last loop is the one that knows how many rows the last tile has.
  Loop &last = loops.back();
  CopyAsyncOp copy = last.rings[ring].copy;
  Location loc = copy.getLoc();
  OpBuilder::InsertionGuard insertion(b);
  if (guard) {
    Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, row,
                                         last.op.getUpperBound());
    auto choice = scf::IfOp::create(b, loc, exists);
    b.setInsertionPointToStart(choice.thenBlock());
  }
  RingAcquireOp::create(b, loc, ring, step);
  IRMapping mapping;
  mapping.map(last.op.getInductionVar(), row);
  Value rows =
      copy.getRows() ? cloneFor(b, copy.getRows(), last.op, mapping) : Value();
  SmallVector<Value> indices(copy.getIndices());
  indices.back() = row;
  CopyAsyncOp::create(b, loc, copy.getSource(), indices, rows, ring, step);
}

/// Moves what `[before, end)` computes from values known earlier to before it:
/// bounds of later loops, which say where copies end. They are computed in any
/// case, so that divisions may be among them.
static void hoistScalars(Operation *before, Operation *end) {
  auto isLate = [&](Value value) {
    Operation *op = value.getDefiningOp();
    return op && op->getBlock() == before->getBlock() &&
           !op->isBeforeInBlock(before);
  };
  for (Operation *op = before, *next; op != end; op = next) {
    next = op->getNextNode();
    if (op != before && isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
        llvm::none_of(op->getOperands(), isLate))
      op->moveBefore(before);
  }
}

void Chain::prefetch() {
  scf::ForOp first = loops.front().op;
  Location loc = first.getLoc();
  /// Where a ring's copy goes in the body, and how many steps ahead it is.
  struct Place {
    Value after; ///< The ring whose wait it follows; null: its release.
    int64_t ahead = 0;
  };
  llvm::MapVector<Value, Place> places;
  Loop &model = loops.front();
  for (auto &[ring, use] : model.rings) {
    int64_t stages = cast<RingType>(ring.getType()).getStages();
    Place place = {Value(), stages};
    // The first wait behind the release, in this iteration or the next.
    RingWaitOp next, nextAround;
    for (auto &[other, otherUse] : model.rings) {
      if (!next && use.release->isBeforeInBlock(otherUse.wait))
        next = otherUse.wait;
      if (!nextAround)
        nextAround = otherUse.wait;
    }
    if (next) {
      place.after = next.getRing();
    } else if (nextAround.getRing() != ring || stages > 1) {
      place.after = nextAround.getRing();
      place.ahead = stages - 1;
    }
    places[ring] = place;
  }

  // The copies of the first steps go before anything is waited for.
  Operation *before = first;
  for (auto wait : first->getBlock()->getOps<RingWaitOp>()) {
    if (wait->isBeforeInBlock(before))
      before = wait;
    break;
  }
  hoistScalars(before, loops.back().op);
  OpBuilder b(before);
  int64_t furthest = 0;
  for (auto &[ring, place] : places)
    furthest = std::max(furthest, place.ahead);
  Value row = first.getLowerBound();
  for (int64_t step = 0; step < furthest; ++step) {
    Value number = arith::ConstantIndexOp::create(b, loc, step);
    for (auto &[ring, place] : places)
      if (step < place.ahead)
        emitCopy(b, ring, row, number, /*guard=*/true);
    row = arith::AddIOp::create(b, loc, row, first.getStep());
  }

  for (Loop &loop : loops)
    for (auto &[ring, place] : places) {
      RingUse &use = loop.rings[ring];
      if (place.after)
        b.setInsertionPointAfter(loop.rings[place.after].wait);
      else
        b.setInsertionPointAfter(use.release);
      Value row = loop.op.getInductionVar(), step = loop.getStep();
      if (place.ahead > 0) {
        Value ahead = arith::ConstantIndexOp::create(b, loc, place.ahead);
        Value distance = arith::MulIOp::create(b, loc, ahead, first.getStep());
        row = arith::AddIOp::create(b, loc, row, distance);
        step = arith::AddIOp::create(b, loc, step, ahead);
      }
      emitCopy(b, ring, row, step, /*guard=*/place.ahead > 0);
    }
  for (Loop &loop : loops)
    for (auto &[ring, use] : loop.rings) {
      use.acquire.erase();
      use.copy.erase();
    }
}

namespace {
struct Prefetch : flash::tile::impl::PrefetchBase<Prefetch> {
  void runOnOperation() override {
    SmallVector<Chain> chains;
    getOperation().walk<WalkOrder::PreOrder>([&](scf::ForOp op) {
      std::optional<Loop> loop = analyze(op);
      if (loop && (chains.empty() || !chains.back().append(*loop)))
        chains.emplace_back(std::move(*loop));
    });
    for (Chain &chain : chains)
      if (chain.canPrefetch())
        chain.prefetch();
  }
};
} // namespace
