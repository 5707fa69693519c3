//===- LowerRings.cpp - Rings as groups of copies and barriers ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace flash::tile {
#define GEN_PASS_DEF_LOWERRINGS
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

namespace {
/// What is known at a point of the program, on all ways to it.
struct State {
  /// Groups of copies that may still be pending, oldest first, by their ring.
  SmallVector<Value> pending;
  /// Whether `pending` is exact; else a wait must leave none pending.
  bool isExact = true;
  /// Rings that have been released since the last barrier.
  llvm::SmallPtrSet<Value, 4> released;

  bool operator==(const State &other) const {
    return pending == other.pending && isExact == other.isExact &&
           released.size() == other.released.size() &&
           llvm::all_of(released,
                        [&](Value ring) { return other.released.count(ring); });
  }
  /// What is known where two ways meet.
  void join(const State &other) {
    if (pending != other.pending)
      isExact = false;
    isExact &= other.isExact;
    released.insert(other.released.begin(), other.released.end());
  }
};

/// Finds how many groups each wait may leave pending, and which acquires need a
/// barrier.
class Analysis {
public:
  void run(Block &block) { visit(block, State()); }

  llvm::DenseMap<Operation *, int64_t> groupsLeft;
  llvm::DenseMap<Operation *, bool> needsBarrier;

private:
  State visit(Block &block, State state);
  void visit(Operation &op, State &state);
};
} // namespace

State Analysis::visit(Block &block, State state) {
  for (Operation &op : block)
    visit(op, state);
  return state;
}

void Analysis::visit(Operation &op, State &state) {
  if (auto acquire = dyn_cast<RingAcquireOp>(op)) {
    bool barrier = state.released.count(acquire.getRing());
    needsBarrier[&op] = barrier;
    if (barrier)
      state.released.clear();
  } else if (auto copy = dyn_cast<CopyAsyncOp>(op)) {
    state.pending.push_back(copy.getRing());
  } else if (auto wait = dyn_cast<RingWaitOp>(op)) {
    auto *oldest = llvm::find(state.pending, wait.getRing());
    int64_t left = 0;
    if (state.isExact && oldest != state.pending.end())
      left = state.pending.end() - oldest - 1;
    state.pending.erase(state.pending.begin(), state.pending.end() - left);
    state.isExact = true;
    groupsLeft[&op] = left;
    state.released.clear();
  } else if (auto release = dyn_cast<RingReleaseOp>(op)) {
    state.released.insert(release.getRing());
  } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
    // Until what holds at the start of the body holds at its end.
    State entry = state;
    while (true) {
      State end = visit(*loop.getBody(), entry);
      State joined = entry;
      joined.join(end);
      if (joined == entry)
        break;
      entry = joined;
    }
    state = entry;
  } else if (auto choice = dyn_cast<scf::IfOp>(op)) {
    // A guarded copy still makes a group, an empty one where there is none.
    State then = visit(*choice.thenBlock(), state);
    State otherwise = state;
    if (choice.elseBlock())
      otherwise = visit(*choice.elseBlock(), state);
    else
      otherwise.pending = then.pending;
    then.join(otherwise);
    state = then;
  }
}

namespace {
/// Replaces the ops of rings.
class Lowering {
public:
  explicit Lowering(const Analysis &analysis) : analysis(analysis) {}
  void lower(Operation *op);

private:
  /// The slot of a step.
  Value getSlot(OpBuilder &b, Location loc, Value ring, Value step);
  const Analysis &analysis;
};
} // namespace

Value Lowering::getSlot(OpBuilder &b, Location loc, Value ring, Value step) {
  auto type = cast<RingType>(ring.getType());
  int64_t start = *ring.getDefiningOp<RingOp>().getOffset();
  Value offset = arith::ConstantIndexOp::create(b, loc, start);
  if (type.getStages() > 1) {
    Value stages = arith::ConstantIndexOp::create(b, loc, type.getStages());
    Value bytes =
        arith::ConstantIndexOp::create(b, loc, type.getSlotDistance());
    Value slot = arith::RemUIOp::create(b, loc, step, stages);
    Value distance = arith::MulIOp::create(b, loc, slot, bytes);
    offset = arith::AddIOp::create(b, loc, offset, distance);
  }
  return SmemViewOp::create(b, loc, type.getSlot(), offset);
}

/// Whether nothing but copies happens under the guard.
static bool guardsOnlyCopies(scf::IfOp choice) {
  return choice.getNumResults() == 0 && !choice.elseBlock() &&
         llvm::all_of(choice.thenBlock()->without_terminator(),
                      [](Operation &op) {
                        return isa<RingAcquireOp, CopyAsyncOp>(op) ||
                               (isPure(&op) && op.getNumRegions() == 0);
                      });
}

/// Makes copies under a guard unconditional copies of no rows where it does not
/// hold: a branch would split the loop for the scheduler of instructions.
static void removeGuard(scf::IfOp choice) {
  for (auto copy : choice.thenBlock()->getOps<CopyAsyncOp>()) {
    OpBuilder b(copy);
    Location loc = copy.getLoc();
    Value rows = copy.getRows();
    if (!rows)
      rows = arith::ConstantIndexOp::create(
          b, loc, copy.getRing().getType().getSlot().getRows());
    Value none = arith::ConstantIndexOp::create(b, loc, 0);
    copy.getRowsMutable().assign(
        arith::SelectOp::create(b, loc, choice.getCondition(), rows, none)
            .getResult());
  }
  choice.thenBlock()->getTerminator()->erase();
  choice->getBlock()->getOperations().splice(
      choice->getIterator(), choice.thenBlock()->getOperations());
  choice.erase();
}

void Lowering::lower(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  if (auto acquire = dyn_cast<RingAcquireOp>(op)) {
    if (analysis.needsBarrier.lookup(op))
      gpu::BarrierOp::create(b, loc);
  } else if (auto copy = dyn_cast<CopyAsyncOp>(op)) {
    CopyOp::create(b, loc, copy.getSource(), copy.getIndices(), copy.getRows(),
                   getSlot(b, loc, copy.getRing(), copy.getStep()));
    // The group is made on both ways of a guard, so that its number is known.
    Operation *last = op;
    while (isa<scf::IfOp>(last->getParentOp()))
      last = last->getParentOp();
    b.setInsertionPointAfter(last);
    NVVM::CpAsyncCommitGroupOp::create(b, loc);
  } else if (auto wait = dyn_cast<RingWaitOp>(op)) {
    NVVM::CpAsyncWaitGroupOp::create(b, loc, analysis.groupsLeft.lookup(op));
    gpu::BarrierOp::create(b, loc);
    wait.replaceAllUsesWith(getSlot(b, loc, wait.getRing(), wait.getStep()));
  }
  op->erase();
}

namespace {
struct LowerRings : flash::tile::impl::LowerRingsBase<LowerRings> {
  void runOnOperation() override {
    SmallVector<scf::IfOp> guards;
    getOperation().walk([&](scf::IfOp choice) {
      if (guardsOnlyCopies(choice))
        guards.push_back(choice);
    });
    llvm::for_each(guards, removeGuard);

    SmallVector<Operation *> ops;
    SmallVector<RingOp> rings;
    getOperation().walk([&](Operation *op) {
      if (isa<RingAcquireOp, CopyAsyncOp, RingWaitOp, RingReleaseOp>(op))
        ops.push_back(op);
      else if (auto ring = dyn_cast<RingOp>(op))
        rings.push_back(ring);
    });
    for (RingOp ring : rings)
      if (!ring.getOffset()) {
        ring.emitOpError("has no place; run tile-allocate-smem first");
        return signalPassFailure();
      }
    Analysis analysis;
    analysis.run(getOperation().getBody().front());
    Lowering lowering(analysis);
    for (Operation *op : ops)
      lowering.lower(op);
    for (RingOp ring : rings)
      ring.erase();
  }
};
} // namespace
