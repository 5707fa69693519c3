//===- LowerRings.cpp - Rings as groups of copies and barriers ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Steps.h"
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
/// A value, or null for 0, and what is added to it.
using Step = std::pair<Value, int64_t>;

/// A group of copies that fills a stage.
struct Group {
  Value ring;
  /// What the step is that it fills, in terms of values of this point of the
  /// program: as many forms of the one number as are known.
  SmallVector<Step, 2> steps;
  /// Whether its copies are made in any case.
  bool isCertain;

  /// Whether it is not known to be of another step.
  bool mayFill(Step step) const {
    return llvm::none_of(steps, [&](Step own) {
      return own.first == step.first && own.second != step.second;
    });
  }
  bool operator==(const Group &other) const {
    return ring == other.ring && steps == other.steps &&
           isCertain == other.isCertain;
  }
};

/// What is known at a point of the program, on all ways to it.
struct State {
  /// The youngest groups of copies, oldest first. What is older may be pending,
  /// too: a wait leaves at most these.
  SmallVector<Group> pending;
  /// Rings that have been released since the last barrier.
  llvm::SmallPtrSet<Value, 4> released;

  bool operator==(const State &other) const {
    return pending == other.pending &&
           released.size() == other.released.size() &&
           llvm::all_of(released,
                        [&](Value ring) { return other.released.count(ring); });
  }
  /// What is known where two ways meet: the groups that are the youngest on
  /// both.
  void join(const State &other);
  /// Goes on to where `values` are what `was` was here, and out of `region`, if
  /// one is given: its values mean nothing there, or those of another
  /// iteration.
  void pass(ValueRange was, ValueRange values, Region *region);
};

/// Under which condition copies are made, for those that have one.
using Predicates = llvm::DenseMap<Operation *, Value>;

/// Finds how many groups each wait may leave pending, and which acquires need a
/// barrier.
class Analysis {
public:
  explicit Analysis(const Predicates &predicates) : predicates(predicates) {}
  void run(Block &block) { visit(block, State()); }

  llvm::DenseMap<Operation *, int64_t> groupsLeft;
  llvm::DenseMap<Operation *, bool> needsBarrier;
  /// Copies into a ring all of whose stages have pending ones.
  llvm::SmallSetVector<Operation *, 1> overfull;
  /// Guards under which copies are waited for. The groups of their copies are
  /// made there, too: behind the guard they would come after the wait.
  llvm::SmallPtrSet<Operation *, 4> guardsOfWaits;

private:
  State visit(Block &block, State state);
  void visit(Operation &op, State &state);
  void visit(RingOpInterface op, State &state);
  void visit(scf::ForOp loop, State &state);
  void visit(scf::IfOp choice, State &state);
  /// The copies of a group end with this one.
  void addGroup(CopyAsyncOp copy, State &state);

  const Predicates &predicates;
};
} // namespace

void State::join(const State &other) {
  released.insert(other.released.begin(), other.released.end());
  auto haveOneRing = [](const Group &a, const Group &b) {
    return a.ring == b.ring;
  };
  auto same =
      std::mismatch(pending.rbegin(), pending.rend(), other.pending.rbegin(),
                    other.pending.rend(), haveOneRing);
  pending.erase(pending.begin(), same.first.base());
  auto theirs = ArrayRef(other.pending).take_back(pending.size());
  for (auto [group, their] : llvm::zip_equal(pending, theirs)) {
    group.isCertain &= their.isCertain;
    llvm::erase_if(group.steps, [&, &their = their](const Step &step) {
      return !llvm::is_contained(their.steps, step);
    });
  }
}

void State::pass(ValueRange was, ValueRange values, Region *region) {
  for (Group &group : pending) {
    SmallVector<Step, 2> steps;
    auto add = [&](Value base, int64_t offset) {
      if (!llvm::is_contained(steps, Step(base, offset)))
        steps.push_back({base, offset});
    };
    for (auto [base, offset] : group.steps) {
      if (!base || !region || !region->isAncestor(base.getParentRegion()))
        add(base, offset);
      for (auto [before, value] : llvm::zip_equal(was, values))
        if (auto [sameBase, own] = splitStep(before);
            value.getType().isIndex() && base == sameBase)
          add(value, offset - own);
    }
    group.steps = steps;
  }
}

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

/// The copy of a loop over the parts of a stage, null if the op is another one.
static CopyAsyncOp getCopyOfParts(Operation *op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  if (loop)
    for (auto copy : loop.getOps<CopyAsyncOp>())
      if (getEndOfGroup(copy) == op)
        return copy;
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
    // The last of the groups that may be of this step: where a guard did not
    // hold, as at the end of a loop, there is an older one that nobody awaits.
    // Or it is one before all that are known.
    Step step = splitStep(op.getStep());
    auto last =
        llvm::find_if(llvm::reverse(state.pending), [&](const Group &group) {
          return group.ring == ring && group.mayFill(step);
        });
    state.pending.erase(state.pending.begin(), last.base());
    groupsLeft[op] = state.pending.size();
    break;
  }
  case RingEffect::Release:
    state.released.insert(ring);
    break;
  default:
    break;
  }
}

void Analysis::addGroup(CopyAsyncOp copy, State &state) {
  Value ring = copy.getRing();
  bool isCertain = !predicates.contains(copy);
  int64_t filled = llvm::count_if(state.pending, [&](const Group &group) {
    return group.ring == ring && group.isCertain;
  });
  if (isCertain && filled >= copy.getRing().getType().getStages())
    overfull.insert(copy);
  state.pending.push_back({ring, {splitStep(copy.getStep())}, isCertain});
}

void Analysis::visit(scf::ForOp loop, State &state) {
  Region &body = loop.getRegion();
  state.pass(loop.getInitArgs(), loop.getRegionIterArgs(), nullptr);
  // Until what holds at the start of the body holds at its end.
  while (true) {
    State end = visit(*loop.getBody(), state);
    end.pass(loop.getYieldedValues(), loop.getRegionIterArgs(), &body);
    State joined = state;
    joined.join(end);
    if (joined == state)
      break;
    state = joined;
  }
  state.pass(loop.getRegionIterArgs(), loop.getResults(), &body);
}

void Analysis::visit(scf::IfOp choice, State &state) {
  if (waitsForCopies(choice))
    guardsOfWaits.insert(choice);
  State then = visit(*choice.thenBlock(), state);
  then.pass(choice.thenYield().getOperands(), choice.getResults(),
            &choice.getThenRegion());
  if (choice.elseBlock()) {
    state = visit(*choice.elseBlock(), state);
    state.pass(choice.elseYield().getOperands(), choice.getResults(),
               &choice.getElseRegion());
  } else if (!guardsOfWaits.contains(choice)) {
    // A guarded copy still makes a group, an empty one where there is none.
    auto added = std::mismatch(then.pending.begin(), then.pending.end(),
                               state.pending.begin(), state.pending.end());
    for (Group &group : llvm::make_range(added.first, then.pending.end()))
      group.isCertain = false;
    state.pending = then.pending;
  }
  state.join(then);
}

void Analysis::visit(Operation &op, State &state) {
  if (auto copy = dyn_cast<CopyAsyncOp>(op)) {
    if (getEndOfGroup(copy) == copy)
      addGroup(copy, state);
  } else if (auto ringOp = dyn_cast<RingOpInterface>(op)) {
    visit(ringOp, state);
  } else if (CopyAsyncOp copy = getCopyOfParts(&op)) {
    addGroup(copy, state);
  } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
    visit(loop, state);
  } else if (auto choice = dyn_cast<scf::IfOp>(op)) {
    visit(choice, state);
  }
}

namespace {
/// Replaces the ops of rings.
class Lowering {
public:
  Lowering(const Analysis &analysis, const Predicates &predicates)
      : analysis(analysis), predicates(predicates) {}
  void lower(Operation *op);

private:
  /// The stage of a step.
  Value getStage(OpBuilder &b, Location loc, Value ring, Value step);
  const Analysis &analysis;
  const Predicates &predicates;
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

static bool guardsOnlyCopies(Operation *op);

/// Whether nothing but copies, and what they need, happens in the block.
static bool hasOnlyCopies(Block &block) {
  return llvm::all_of(block.without_terminator(), [](Operation &op) {
    return isa<RingAcquireOp, CopyAsyncOp>(op) ||
           (isPure(&op) && op.getNumRegions() == 0) || guardsOnlyCopies(&op) ||
           (getCopyOfParts(&op) &&
            hasOnlyCopies(*cast<scf::ForOp>(op).getBody()));
  });
}

/// Whether the op is a guard under which nothing but copies happens.
static bool guardsOnlyCopies(Operation *op) {
  auto choice = dyn_cast<scf::IfOp>(op);
  return choice && choice.getNumResults() == 0 && !choice.elseBlock() &&
         hasOnlyCopies(*choice.thenBlock());
}

/// Makes a guard the predicate of its copies: a branch would split the loop for
/// the scheduler of instructions. Copies of no rows would not do: they write
/// zeros, also behind the end of a loop, where nobody waits for them.
static void removeGuard(scf::IfOp choice, Predicates &predicates) {
  choice.walk([&](CopyAsyncOp copy) {
    Value &predicate = predicates[copy];
    OpBuilder b(copy);
    predicate = predicate
                    ? arith::AndIOp::create(b, copy.getLoc(),
                                            choice.getCondition(), predicate)
                          .getResult()
                    : choice.getCondition();
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
                   predicates.lookup(copy),
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
    // Those inside come first.
    Predicates predicates;
    for (scf::IfOp guard : guards)
      removeGuard(guard, predicates);

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
    Analysis analysis(predicates);
    analysis.run(getOperation().getBody().front());
    for (Operation *copy : analysis.overfull)
      copy->emitOpError(
          "fills a stage before the copy that filled it last has been waited "
          "for, and such copies have no order; wait for that one first, or "
          "give the ring more stages");
    if (!analysis.overfull.empty())
      return signalPassFailure();
    Lowering lowering(analysis, predicates);
    for (Operation *op : ops)
      lowering.lower(op);
    for (RingOp ring : rings)
      ring.erase();
  }
};
} // namespace
