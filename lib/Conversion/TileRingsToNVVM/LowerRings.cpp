//===- LowerRings.cpp - Rings as groups of copies and barriers ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Conversion/Passes.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Utils/Steps.h"
#include "flash/Machine/TargetAttr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace flash {
#define GEN_PASS_DEF_LOWERTILERINGS
#include "flash/Conversion/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash::tile;

namespace {
/// A value, or null for 0, and what is added to it.
using Step = std::pair<Value, int64_t>;

/// A group of copies that fills a stage.
struct Group {
  TypedValue<RingType> ring;
  /// What the step is that it fills, in terms of values of this point of the
  /// program: as many forms of the one number as are known.
  SmallVector<Step, 2> steps;

  Group(CopyAsyncOp copy)
      : ring(copy.getRing()), steps({splitStep(copy.getStep())}) {}

  /// Whether it is not known to fill another stage than the one of a step.
  bool mayFill(Value otherRing, Step step) const {
    return ring == otherRing && llvm::none_of(steps, [&](Step own) {
             return own.first == step.first &&
                    (own.second - step.second) % ring.getType().getStages();
           });
  }
  bool operator==(const Group &other) const {
    return ring == other.ring && steps == other.steps;
  }
};

using Rings = llvm::SmallDenseSet<Value, 4>;

/// What is known at a point of the program, on all ways to it.
struct State {
  /// The youngest groups of copies, oldest first.
  SmallVector<Group> pending;
  /// Rings of groups before these that may still be pending.
  Rings older;
  /// Rings that have been released since the last barrier.
  Rings released;

  bool operator==(const State &other) const {
    return pending == other.pending && older == other.older &&
           released == other.released;
  }
  /// What is known where two ways meet: the groups that are the youngest on
  /// both.
  void join(const State &other);
  /// Goes on to where `values` are what `was` was here, and out of `region`, if
  /// one is given: its values mean nothing there, or belong to another
  /// iteration.
  void pass(ValueRange was, ValueRange values, Region *region);
  /// Whether a group that fills the stage of a step may be pending.
  bool mayFill(Value ring, Step step) const;
  /// What holds when all groups are complete that may fill the stage of a step;
  /// returns how many are left.
  int64_t complete(Value ring, Step step);
};

/// Finds how many groups each wait may leave pending, and which acquires need a
/// barrier, or to wait.
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
  void visit(scf::ForOp loop, State &state);
  void visit(scf::IfOp choice, State &state);
  /// Whether copies are waited for under the guard, once that was visited.
  bool waitsForCopies(scf::IfOp choice) const;
};
} // namespace

void State::join(const State &other) {
  released.insert(other.released.begin(), other.released.end());
  older.insert(other.older.begin(), other.older.end());
  auto haveOneRing = [](const Group &a, const Group &b) {
    return a.ring == b.ring;
  };
  auto same =
      std::mismatch(pending.rbegin(), pending.rend(), other.pending.rbegin(),
                    other.pending.rend(), haveOneRing);
  for (const Group &group :
       llvm::make_range(pending.begin(), same.first.base()))
    older.insert(group.ring);
  for (const Group &group :
       llvm::make_range(other.pending.begin(), same.second.base()))
    older.insert(group.ring);
  pending.erase(pending.begin(), same.first.base());
  auto theirs = ArrayRef(other.pending).take_back(pending.size());
  for (auto [group, their] : llvm::zip_equal(pending, theirs))
    llvm::erase_if(group.steps, [&, &their = their](const Step &step) {
      return !llvm::is_contained(their.steps, step);
    });
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

bool State::mayFill(Value ring, Step step) const {
  return older.contains(ring) || llvm::any_of(pending, [&](const Group &group) {
           return group.mayFill(ring, step);
         });
}

int64_t State::complete(Value ring, Step step) {
  // The last one: where a guard did not hold, as at the end of a loop, there is
  // an older one that nobody has waited for. None is one before these.
  auto last = llvm::find_if(llvm::reverse(pending), [&](const Group &group) {
    return group.mayFill(ring, step);
  });
  pending.erase(pending.begin(), last.base());
  older.clear();
  return pending.size();
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
  Step step = splitStep(op.getStep());
  switch (op.getRingEffect()) {
  case RingEffect::Acquire: {
    // Where a guard did not hold, zeros may be on their way into the stage, and
    // copies are not ordered among each other. Each thread writes the same
    // chunks of a stage each time, so its own are all that it waits for.
    groupsLeft.erase(op);
    if (state.mayFill(ring, step))
      groupsLeft[op] = state.complete(ring, step);
    bool barrier = state.released.contains(ring);
    needsBarrier[op] = barrier;
    if (barrier)
      state.released.clear();
    break;
  }
  case RingEffect::Wait:
  case RingEffect::Peek: {
    state.released.clear();
    // Threads have written at once.
    if (!ring.getDefiningOp<RingOp>().isFilledFromRegisters())
      groupsLeft[op] = state.complete(ring, step);
    break;
  }
  case RingEffect::Release:
    state.released.insert(ring);
    break;
  default:
    break;
  }
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

bool Analysis::waitsForCopies(scf::IfOp choice) const {
  return choice.thenBlock()
      ->walk([&](Operation *op) {
        return groupsLeft.contains(op) ? WalkResult::interrupt()
                                       : WalkResult::advance();
      })
      .wasInterrupted();
}

void Analysis::visit(scf::IfOp choice, State &state) {
  State then = visit(*choice.thenBlock(), state);
  if (waitsForCopies(choice))
    guardsOfWaits.insert(choice);
  then.pass(choice.thenYield().getOperands(), choice.getResults(),
            &choice.getThenRegion());
  if (choice.elseBlock()) {
    state = visit(*choice.elseBlock(), state);
    state.pass(choice.elseYield().getOperands(), choice.getResults(),
               &choice.getElseRegion());
  } else if (!guardsOfWaits.contains(choice)) {
    // A guarded copy still makes a group, an empty one where there is none.
    state.pending = then.pending;
  }
  state.join(then);
}

void Analysis::visit(Operation &op, State &state) {
  if (auto copy = dyn_cast<CopyAsyncOp>(op)) {
    if (getEndOfGroup(copy) == copy)
      state.pending.push_back(copy);
  } else if (auto ringOp = dyn_cast<RingOpInterface>(op)) {
    visit(ringOp, state);
  } else if (CopyAsyncOp copy = getCopyOfParts(&op)) {
    state.pending.push_back(copy);
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
  Lowering(const Analysis &analysis, bool isAsync)
      : analysis(analysis), isAsync(isAsync) {}
  void lower(Operation *op);

private:
  /// The stage of a step.
  Value getStage(OpBuilder &b, Location loc, Value ring, Value step);
  /// Emits a wait for groups of copies, if the op needs one.
  void waitForGroups(OpBuilder &b, Operation *op);
  const Analysis &analysis;
  /// Whether copies go on beside what follows them, in groups.
  bool isAsync;
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

void Lowering::waitForGroups(OpBuilder &b, Operation *op) {
  if (auto left = analysis.groupsLeft.find(op);
      isAsync && left != analysis.groupsLeft.end())
    NVVM::CpAsyncWaitGroupOp::create(b, op->getLoc(), left->second);
}

/// Whether nothing but copies, and what they need, happens in the block.
static bool hasOnlyCopies(Block &block) {
  return llvm::all_of(block.without_terminator(), [](Operation &op) {
    return isa<RingAcquireOp, CopyAsyncOp>(op) ||
           (isPure(&op) && op.getNumRegions() == 0) ||
           (getCopyOfParts(&op) &&
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
    waitForGroups(b, op);
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
    if (Operation *last = isAsync ? getEndOfGroup(copy) : nullptr) {
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
  } else if (auto dequantize = dyn_cast<RingDequantizeOp>(op)) {
    auto put = PutDequantizedOp::create(
        b, loc, dequantize.getTile(),
        getStage(b, loc, dequantize.getRing(), dequantize.getStep()));
    put.getScale().takeBody(dequantize.getScale());
  } else if (isa<RingWaitOp, RingPeekOp>(op)) {
    waitForGroups(b, op);
    gpu::BarrierOp::create(b, loc);
    auto ringOp = cast<RingOpInterface>(op);
    op->getResult(0).replaceAllUsesWith(
        getStage(b, loc, ringOp.getRing(), ringOp.getStep()));
  }
  op->erase();
}

namespace {
struct LowerTileRings : flash::impl::LowerTileRingsBase<LowerTileRings> {
  void runOnOperation() override {
    WalkResult walk = getOperation().walk([](Operation *op) -> WalkResult {
      // What roles do with diagonals of their rings stays as it is.
      auto diagonals = dyn_cast<StoreDiagonalsOp>(op);
      if (isa<AddInOrderOp>(op) ||
          (diagonals && !diagonals.getTile().getDefiningOp<SmemViewOp>()))
        return op->emitOpError("is for a role of one warp, and the warps of "
                               "this kernel have no roles");
      if (auto change = dyn_cast<MakeFiniteOp>(op);
          change && !change.getWarps())
        return op->emitOpError("is for warps with roles");
      return WalkResult::advance();
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
      if (isa<RingCheckFiniteOp, RingIsFiniteOp, RingMakeFiniteOp,
              RingCopyFiniteOp>(op)) {
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
    bool isAsync = flash::getMachineOfKernels(getOperation()).copies >=
                   flash::TileCopies::Async;
    Lowering lowering(analysis, isAsync);
    for (Operation *op : ops)
      lowering.lower(op);
    for (RingOp ring : rings)
      ring.erase();
  }
};
} // namespace
