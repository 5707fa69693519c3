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
#include "mlir/Dialect/Utils/StaticValueUtils.h"

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
  /// Guards under which copies are waited for. The groups of their copies are
  /// made there, too: behind the guard they would come after the wait.
  llvm::SmallPtrSet<Operation *, 4> guardsOfWaits;

private:
  State visit(Block &block, State state);
  void visit(Operation &op, State &state);
  void visit(RingOpInterface op, State &state);
};
} // namespace

State Analysis::visit(Block &block, State state) {
  for (Operation &op : block)
    visit(op, state);
  return state;
}

/// Whether a copy of the op's block behind it fills the same step, too.
static bool isFollowed(CopyAsyncOp copy) {
  for (Operation *op = copy->getNextNode(); op; op = op->getNextNode())
    if (auto other = dyn_cast<CopyAsyncOp>(op);
        other && other.getRing() == copy.getRing() &&
        isEqualConstantIntOrValue(other.getStep(), copy.getStep()))
      return true;
  return false;
}

/// The op behind which the copies of a step are a group: the last of them, or
/// the loop over them. Null for the others.
static Operation *getEndOfGroup(CopyAsyncOp copy) {
  if (!copy.getPart())
    return copy;
  if (auto loop = dyn_cast<scf::ForOp>(copy->getParentOp());
      loop && copy.getPart() == loop.getInductionVar())
    return loop;
  return isFollowed(copy) ? nullptr : copy.getOperation();
}

/// Whether copies are waited for under the guard.
static bool waitsForCopies(scf::IfOp choice) {
  return choice
      .walk([](RingOpInterface op) {
        RingEffect effect = op.getRingEffect();
        bool waits = effect == RingEffect::Wait || effect == RingEffect::Peek;
        return waits && !op.getRing()
                             .getDefiningOp<RingOp>()
                             .isFilledFromRegisters()
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The ring that the op fills by a loop over the parts of a stage, or null.
static Value getRingOfParts(Operation *op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  if (loop)
    for (auto copy : loop.getOps<CopyAsyncOp>())
      if (getEndOfGroup(copy) == op)
        return copy.getRing();
  return {};
}

void Analysis::visit(RingOpInterface op, State &state) {
  Value ring = op.getRing();
  switch (op.getRingEffect()) {
  case RingEffect::Acquire: {
    bool barrier = state.released.count(ring);
    needsBarrier[op] = barrier;
    if (barrier)
      state.released.clear();
    break;
  }
  case RingEffect::Wait:
  case RingEffect::Peek: {
    state.released.clear();
    // Threads have written at once.
    if (ring.getDefiningOp<RingOp>().isFilledFromRegisters())
      break;
    auto *oldest = llvm::find(state.pending, ring);
    int64_t left = 0;
    if (state.isExact && oldest != state.pending.end())
      left = state.pending.end() - oldest - 1;
    state.pending.erase(state.pending.begin(), state.pending.end() - left);
    state.isExact = true;
    groupsLeft[op] = left;
    break;
  }
  case RingEffect::Release:
    state.released.insert(ring);
    break;
  default:
    break;
  }
}

void Analysis::visit(Operation &op, State &state) {
  if (auto copy = dyn_cast<CopyAsyncOp>(op)) {
    if (getEndOfGroup(copy) == copy)
      state.pending.push_back(copy.getRing());
  } else if (auto ringOp = dyn_cast<RingOpInterface>(op)) {
    visit(ringOp, state);
  } else if (Value ring = getRingOfParts(&op)) {
    state.pending.push_back(ring);
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
    if (waitsForCopies(choice))
      guardsOfWaits.insert(choice);
    State then = visit(*choice.thenBlock(), state);
    State otherwise = state;
    if (choice.elseBlock())
      otherwise = visit(*choice.elseBlock(), state);
    else if (!guardsOfWaits.contains(choice))
      // A guarded copy still makes a group, an empty one where there is none.
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
  /// The stage of a step.
  Value getStage(OpBuilder &b, Location loc, Value ring, Value step);
  const Analysis &analysis;
};
} // namespace

Value Lowering::getStage(OpBuilder &b, Location loc, Value ring, Value step) {
  auto type = cast<RingType>(ring.getType());
  int64_t start = *ring.getDefiningOp<RingOp>().getOffset();
  Value offset = arith::ConstantIndexOp::create(b, loc, start);
  if (type.getStages() > 1) {
    Value stages = arith::ConstantIndexOp::create(b, loc, type.getStages());
    Value bytes =
        arith::ConstantIndexOp::create(b, loc, type.getStageDistance());
    Value stage = arith::RemUIOp::create(b, loc, step, stages);
    Value distance = arith::MulIOp::create(b, loc, stage, bytes);
    offset = arith::AddIOp::create(b, loc, offset, distance);
  }
  return SmemViewOp::create(b, loc, type.getTile(), offset);
}

/// Whether nothing but copies, and what they need, happens in the block.
static bool hasOnlyCopies(Block &block) {
  return llvm::all_of(block.without_terminator(), [](Operation &op) {
    return isa<RingAcquireOp, CopyAsyncOp>(op) ||
           (isPure(&op) && op.getNumRegions() == 0) ||
           (getRingOfParts(&op) &&
            hasOnlyCopies(*cast<scf::ForOp>(op).getBody()));
  });
}

/// Whether nothing but copies happens under the guard.
static bool guardsOnlyCopies(scf::IfOp choice) {
  return choice.getNumResults() == 0 && !choice.elseBlock() &&
         hasOnlyCopies(*choice.thenBlock());
}

/// Makes copies under a guard unconditional copies of no rows where it does not
/// hold: a branch would split the loop for the scheduler of instructions.
static void removeGuard(scf::IfOp choice) {
  choice.walk([&](CopyAsyncOp copy) {
    OpBuilder b(copy);
    Location loc = copy.getLoc();
    Value rows = copy.getRows();
    if (!rows)
      rows = arith::ConstantIndexOp::create(
          b, loc, copy.getRing().getDefiningOp<RingOp>().getRowsOfCopy());
    Value none = arith::ConstantIndexOp::create(b, loc, 0);
    copy.getRowsMutable().assign(
        arith::SelectOp::create(b, loc, choice.getCondition(), rows, none)
            .getResult());
  });
  choice.thenBlock()->getTerminator()->erase();
  choice->getBlock()->getOperations().splice(
      choice->getIterator(), choice.thenBlock()->getOperations());
  choice.erase();
}

void Lowering::lower(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  if (isa<RingAcquireOp>(op)) {
    if (analysis.needsBarrier.lookup(op))
      gpu::BarrierOp::create(b, loc);
  } else if (auto copy = dyn_cast<CopyAsyncOp>(op)) {
    Value firstRow;
    IntegerAttr tileRows;
    if (Value part = copy.getPart()) {
      int64_t rows = copy.getRing().getDefiningOp<RingOp>().getRowsOfCopy();
      tileRows = b.getI64IntegerAttr(rows);
      firstRow = arith::MulIOp::create(
          b, loc, part, arith::ConstantIndexOp::create(b, loc, rows));
    }
    CopyOp::create(b, loc, copy.getSource(), copy.getIndices(), copy.getRows(),
                   getStage(b, loc, copy.getRing(), copy.getStep()), firstRow,
                   tileRows, copy.getPackedAttr());
    if (Operation *last = getEndOfGroup(copy)) {
      // The group is made on both ways of a guard, so that its number is known.
      while (isa<scf::IfOp>(last->getParentOp()) &&
             !analysis.guardsOfWaits.contains(last->getParentOp()))
        last = last->getParentOp();
      b.setInsertionPointAfter(last);
      NVVM::CpAsyncCommitGroupOp::create(b, loc);
    }
  } else if (auto put = dyn_cast<RingPutOp>(op)) {
    // These machines have no stmatrix.
    PutOp::create(b, loc, put.getX(),
                  getStage(b, loc, put.getRing(), put.getStep()),
                  b.getI64IntegerAttr(0), /*by_pairs=*/b.getUnitAttr(),
                  /*alternate=*/UnitAttr());
  } else if (isa<RingWaitOp, RingPeekOp>(op)) {
    // There are none of a ring that register tiles fill.
    if (auto left = analysis.groupsLeft.find(op);
        left != analysis.groupsLeft.end())
      NVVM::CpAsyncWaitGroupOp::create(b, loc, left->second);
    gpu::BarrierOp::create(b, loc);
    auto ringOp = cast<RingOpInterface>(op);
    op->getResult(0).replaceAllUsesWith(
        getStage(b, loc, ringOp.getRing(), ringOp.getStep()));
  }
  op->erase();
}

namespace {
struct LowerRings : flash::tile::impl::LowerRingsBase<LowerRings> {
  void runOnOperation() override {
    WalkResult walk = getOperation().walk([](AddInTurnOp add) {
      add.emitOpError("is for a role of one warp, and the warps of this kernel "
                      "have no roles");
      return WalkResult::interrupt();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    SmallVector<scf::IfOp> guards;
    getOperation().walk([&](scf::IfOp choice) {
      if (guardsOnlyCopies(choice))
        guards.push_back(choice);
    });
    llvm::for_each(guards, removeGuard);

    SmallVector<Operation *> ops;
    SmallVector<RingOp> rings;
    getOperation().walk([&](Operation *op) {
      if (isa<RingOpInterface>(op))
        ops.push_back(op);
      else if (auto ring = dyn_cast<RingOp>(op))
        rings.push_back(ring);
    });
    for (Operation *op : ops)
      if (isa<RingCheckFiniteOp, RingIsFiniteOp>(op)) {
        op->emitOpError("is for warps with roles");
        return signalPassFailure();
      }
    for (RingOp ring : rings)
      if (!ring.getOffset()) {
        ring.emitOpError("has no offset; run tile-allocate-smem first");
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
