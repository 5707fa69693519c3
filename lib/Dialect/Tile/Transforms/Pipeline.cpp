//===- Pipeline.cpp - Loops whose iterations have work of two -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopEntry.h"
#include "Products.h"
#include "RingSteps.h"

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Debug.h"

namespace flash::tile {
#define GEN_PASS_DEF_PIPELINE
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

#define DEBUG_TYPE "tile-pipeline"

using namespace mlir;
using namespace flash::tile;

static bool isOfStage1(Operation &op) {
  PipelineAttr time = PipelineAttr::of(&op);
  return time && time.getStage() == 1;
}

//===----------------------------------------------------------------------===//
// Stage 1 behind tiles that stage 0 puts into rings
//===----------------------------------------------------------------------===//

namespace {
/// What stage 1 of a loop does with a tile that stage 0 puts into a ring: it
/// takes nothing else from the iteration before.
struct WorkOnPut {
  explicit WorkOnPut(RingWaitOp wait);
  /// The operations of stage 0 on the ring.
  SmallVector<RingOpInterface> getStage0();

  RingWaitOp wait;
  SmallVector<Operation *> ops;
  /// Where the result goes, for another role.
  RingPutOp result;
};
} // namespace

WorkOnPut::WorkOnPut(RingWaitOp wait) : wait(wait) {
  llvm::SmallPtrSet<Operation *, 8> own = {wait, wait.getRelease()};
  for (Operation &op : *wait->getBlock()) {
    // Products that may go on are no need of a wait.
    OperandRange operands = op.getOperands().take_front(
        isa<MmaWaitOp>(op) ? 1 : op.getNumOperands());
    bool isOwn = llvm::any_of(operands, [&](Value operand) {
      return own.contains(operand.getDefiningOp());
    });
    if (!isOfStage1(op) || !isOwn)
      continue;
    own.insert(&op);
    result = dyn_cast<RingPutOp>(op);
  }
  for (Operation &op : *wait->getBlock()) {
    auto acquire = dyn_cast<RingAcquireOp>(op);
    if (own.contains(&op) || (acquire && isOfStage1(op) && result &&
                              acquire.getRing() == result.getRing()))
      ops.push_back(&op);
  }
}

SmallVector<RingOpInterface> WorkOnPut::getStage0() {
  return llvm::filter_to_vector(
      wait->getBlock()->getOps<RingOpInterface>(), [&](RingOpInterface op) {
        return op.getRing() == wait.getRing() && !isOfStage1(*op);
      });
}

/// The step behind `step` as many further as tiles have had a step more, this
/// one included or not.
static Value emitShifted(OpBuilder &b, Location loc, Value step, Block *block,
                         bool includesTile) {
  if (auto loop = dyn_cast<scf::ForOp>(block->getParentOp()))
    step = b.createOrFold<arith::AddIOp>(loc, step, loop.getInductionVar());
  if (!includesTile)
    return step;
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  return arith::AddIOp::create(b, loc, step, one);
}

/// Emits the work on what the last iteration puts, behind the loops and the
/// releases there of tiles that it does not read: whoever copies the next ones
/// need not wait for it.
static void emitLast(OpBuilder &b, WorkOnPut &work, Value end, Block *block) {
  auto isRead = [&](RingReleaseOp release) {
    return llvm::any_of(work.ops, [&](Operation *op) {
      return llvm::any_of(op->getOperands(), [&](Value tile) {
        RingOp ring = getRing(tile);
        return ring && ring.getResult() == release.getRing();
      });
    });
  };
  Operation *last = end.getDefiningOp();
  SmallVector<RingReleaseOp> unread;
  for (Operation *op = last->getNextNode(); isa_and_present<RingReleaseOp>(op);
       op = op->getNextNode())
    if (auto release = cast<RingReleaseOp>(op); !isRead(release))
      unread.push_back(release);
  for (RingReleaseOp release : unread) {
    release->moveAfter(last);
    last = release;
  }
  b.setInsertionPointAfter(last);
  IRMapping mapping;
  mapping.map(work.wait.getStep(), emitShifted(b, last->getLoc(), end, block,
                                               /*includesTile=*/false));
  for (Operation *op : work.ops) {
    Operation *clone = b.clone(*op, mapping);
    clone->removeDiscardableAttr(TileDialect::PipelineAttrHelper::getNameStr());
    // What else ran in the loop has ended.
    if (auto wait = dyn_cast<MmaWaitOp>(clone))
      wait.getYoungerMutable().clear();
  }
}

/// Lets another role read a step later, behind the step of nothing with which
/// each tile begins.
static void shift(OpBuilder &b, RingOp ring, const Reader &reader) {
  Location loc = ring.getLoc();
  // A wait and its release name the same value.
  DenseMap<std::pair<Block *, Value>, Value> nextSteps;
  Operation *first = nullptr;
  reader.block->walk([&](RingOpInterface op) {
    if (op.getRing() != ring)
      return;
    Operation *around = reader.block->findAncestorOpInBlock(*op);
    if (!first || around->isBeforeInBlock(first))
      first = around;
    Value step = op.getStep();
    Value &next = nextSteps[{op->getBlock(), step}];
    if (!next) {
      b.setInsertionPoint(op);
      next = emitShifted(b, loc, step, reader.block, /*includesTile=*/true);
    }
    op->replaceUsesOfWith(step, next);
  });
  b.setInsertionPoint(first);
  Value start =
      emitShifted(b, loc, reader.first, reader.block, /*includesTile=*/false);
  RingWaitOp::create(b, loc, ring.getType().getTile(), ring, start);
  RingReleaseOp::create(b, loc, ring, start);
}

/// Expands the works on what is put into one ring. Since nothing but the ring
/// carries what they need, stage 0 of the first iteration need not come before
/// the loops: zeros are put instead, and nothing uses the results for them. So
/// all count a step more for each tile.
static LogicalResult expand(MutableArrayRef<WorkOnPut> works,
                            bool isPersistent) {
  WorkOnPut &first = works.front();
  RingWaitOp wait = first.wait;
  RingOp ring = getRing(wait);
  for (WorkOnPut &work : works) {
    SmallVector<RingOpInterface> stage0 = work.getStage0();
    if (stage0.size() != 2 || !isa<RingAcquireOp>(stage0.front()) ||
        !isa<RingPutOp>(stage0.back()) || !work.result ||
        !work.result.getRing().getDefiningOp<RingOp>() ||
        !wait->getParentOfType<WarpSpecializeOp>())
      return work.wait.emitOpError(
          "is of stage 1, and takes what stage 0 does not put into the ring, "
          "or its result does not go into a ring for another role");
  }
  auto results = first.result.getRing().getDefiningOp<RingOp>();
  Block *block = getBlockOfTile(wait, isPersistent);
  StepCount steps = getStepCount(wait.getStep(), block);
  FailureOr<Reader> ofResults = findReader(results, wait, isPersistent),
                    ofPuts = findReader(ring, wait, isPersistent);
  if (!steps.end || failed(ofResults) || failed(ofPuts) || !ofResults->block)
    return wait.emitOpError("is of stage 1, and its steps are not counted from "
                            "0 on by all roles");
  Location loc = ring.getLoc();
  OpBuilder b(block->findAncestorOpInBlock(*wait));
  Value start = emitShifted(b, loc, steps.start, block, /*includesTile=*/false);
  auto put = cast<RingPutOp>(first.getStage0().back().getOperation());
  Value nothing =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(put.getX().getType()));
  RingAcquireOp::create(b, loc, ring, start);
  RingPutOp::create(b, loc, nothing, ring, start);
  emitLast(b, first, steps.end, block);
  for (WorkOnPut &work : works) {
    Value step = work.wait.getStep();
    SmallVector<RingOpInterface> stage0 = work.getStage0();
    Operation *acquire = stage0.front(), *before = acquire->getPrevNode();
    b.setInsertionPoint(acquire);
    Value next = emitShifted(b, loc, step, block, /*includesTile=*/true),
          own = emitShifted(b, loc, step, block, /*includesTile=*/false);
    PipelineAttr time = PipelineAttr::of(acquire);
    for (Operation *op = acquire->getPrevNode(); time && op != before;
         op = op->getPrevNode())
      PipelineAttr::set(op, time.getStage(), time.getCluster());
    for (RingOpInterface op : stage0)
      op->replaceUsesOfWith(step, next);
    // The steps say now that it is an iteration later.
    for (Operation *op : work.ops) {
      op->replaceUsesOfWith(step, own);
      PipelineAttr::set(op, /*stage=*/0, PipelineAttr::of(op).getCluster());
    }
  }
  shift(b, results, *ofResults);
  if (ofPuts->block)
    shift(b, ring, *ofPuts);
  return success();
}

//===----------------------------------------------------------------------===//
// Loops that carry what stage 1 needs
//===----------------------------------------------------------------------===//

namespace {
/// A loop whose operations say when they run.
class Loop {
public:
  explicit Loop(scf::ForOp op) : op(op) {}
  /// Finds out when everything runs. Fails where stage 0 needs what stage 1 of
  /// the same iteration gives.
  LogicalResult schedule();

  /// What an iteration leaves to the next: the loop's values, but for those
  /// that stage 1 gives, and what stage 1 needs of its own iteration.
  using Carried = SmallVector<Value>;

  /// Emits stage 0 of the first iteration.
  Carried emitFirst(OpBuilder &b);
  /// Emits the loop from `start` on, where each iteration has stage 1 of the
  /// one before.
  Carried emitOthers(OpBuilder &b, Value start, const Carried &carried);
  /// Emits stage 1 of the last iteration; returns the loop's values.
  SmallVector<Value> emitLast(OpBuilder &b, const Carried &carried);

  /// Whether the loops leave the same to their next iterations, which do the
  /// same with it.
  bool hasStage1Of(const Loop &other) const;

  scf::ForOp op;

private:
  /// Clones stage 0 with the values of `it` and stage 1 with the values of
  /// `before`, where these are given.
  void clone(OpBuilder &b, IRMapping *it, IRMapping *before);
  Carried getCarried(IRMapping &it);
  /// Calls the function for each value that the operation, of the body, takes
  /// from the loop, and for the operation of the body that computes it; null
  /// for what the loop carries. A tile is awaited behind what puts it there,
  /// and given back behind all that read it: these are operations without a
  /// value.
  void forEachNeed(Operation *user,
                   function_ref<void(Value, Operation *)> visit);

  bool isLate(Operation *inner) const { return late.contains(inner); }
  /// What stage 1 of the iteration before gives as a value that the loop
  /// carries; null if stage 0 gives that.
  Operation *getLateDefinition(Value carried);

  /// What is of stage 1.
  llvm::SmallPtrSet<Operation *, 8> late;
  /// The body, in the order in which it runs.
  SmallVector<Operation *> ops;
  /// Which of the loop's values stage 1 gives.
  SmallVector<bool> isLateValue;
  /// What stage 1 needs of stage 0.
  llvm::SetVector<Value> needs;
};

/// Loops in one pipeline.
using Chain = SmallVector<Loop, 0>;
} // namespace

void Loop::forEachNeed(Operation *user,
                       function_ref<void(Value, Operation *)> visit) {
  user->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      if (definition)
        definition = op.getBody()->findAncestorOpInBlock(*definition);
      if (definition != user &&
          (definition || is_contained(op.getBody()->getArguments(), operand)))
        visit(operand, definition);
    }
  });
  auto visitBefore = [&](Operation *other) {
    other = op.getBody()->findAncestorOpInBlock(*other);
    if (other && other->isBeforeInBlock(user))
      visit(Value(), other);
  };
  if (auto wait = dyn_cast<RingWaitOp>(user))
    for (Operation *other : wait.getRing().getUsers())
      if (isa<RingPutOp>(other))
        visitBefore(other);
  if (isa<RingReleaseOp>(user))
    for (auto wait : op.getBody()->getOps<RingWaitOp>())
      if (wait.getRelease() == user)
        for (Operation *reader : wait->getUsers()) {
          visitBefore(reader);
          if (isa<MmaAsyncOp>(reader))
            llvm::for_each(reader->getUsers(), visitBefore);
        }
}

bool Loop::hasStage1Of(const Loop &other) const {
  if (isLateValue != other.isLateValue ||
      !llvm::equal(ValueRange(needs.getArrayRef()).getTypes(),
                   ValueRange(other.needs.getArrayRef()).getTypes()))
    return false;
  IRMapping ofOther;
  ofOther.map(needs.getArrayRef(), other.needs.getArrayRef());
  auto check = [&](Value own, Value others) {
    return success(own.getType() == others.getType() &&
                   ofOther.lookupOrDefault(own) == others);
  };
  auto isOwn = [&](Operation *inner) { return isLate(inner); };
  auto isOthers = [&](Operation *inner) { return other.isLate(inner); };
  auto own = llvm::make_filter_range(ops, isOwn);
  auto others = llvm::make_filter_range(other.ops, isOthers);
  return llvm::equal(own, others, [&](Operation *a, Operation *b) {
    return OperationEquivalence::isEquivalentTo(
        a, b, check, [&](Value ofA, Value ofB) { ofOther.map(ofA, ofB); },
        OperationEquivalence::IgnoreLocations);
  });
}

Operation *Loop::getLateDefinition(Value carried) {
  if (carried == op.getInductionVar())
    return nullptr;
  Value next = op.getTiedLoopYieldedValue(cast<BlockArgument>(carried))->get();
  Operation *definition = next.getDefiningOp();
  return definition && isLate(definition) ? definition : nullptr;
}

LogicalResult Loop::schedule() {
  for (Operation &inner : op.getBody()->without_terminator()) {
    ops.push_back(&inner);
    PipelineAttr own = PipelineAttr::of(&inner);
    Operation *lateNeed = nullptr;
    forEachNeed(&inner, [&](Value, Operation *definition) {
      if (definition && isLate(definition))
        lateNeed = definition;
    });
    if (own && own.getStage() == 0 && lateNeed) {
      InFlightDiagnostic error = inner.emitOpError(
          "is of stage 0 and needs what stage 1 of its iteration computes");
      error.attachNote(lateNeed->getLoc()) << "which is of stage 1";
      return failure();
    }
    if (own ? own.getStage() == 1 : lateNeed != nullptr)
      late.insert(&inner);
  }
  // What stage 0 needs of stage 1 was computed in the iteration before, and so
  // may stand behind it.
  DenseMap<Operation *, int64_t> clusters;
  for (bool isOfStage1 : {true, false})
    for (Operation *inner : ops) {
      if (isLate(inner) != isOfStage1)
        continue;
      PipelineAttr own = PipelineAttr::of(inner);
      int64_t &cluster = clusters[inner] = own ? own.getCluster() : 0;
      forEachNeed(inner, [&](Value value, Operation *definition) {
        if (!definition && !isOfStage1)
          definition = getLateDefinition(value);
        else if (definition && isLate(definition) != isOfStage1)
          return;
        cluster = std::max(cluster, clusters.lookup(definition));
      });
    }
  llvm::sort(ops, [&](Operation *a, Operation *b) {
    std::pair ofA(clusters[a], !isLate(a)), ofB(clusters[b], !isLate(b));
    return ofA < ofB || (ofA == ofB && a->isBeforeInBlock(b));
  });
  for (Value carried : op.getRegionIterArgs())
    isLateValue.push_back(getLateDefinition(carried));
  for (Operation *inner : ops)
    if (isLate(inner))
      forEachNeed(inner, [&](Value value, Operation *definition) {
        if (!definition || !isLate(definition))
          needs.insert(value);
      });
  return success();
}

void Loop::clone(OpBuilder &b, IRMapping *it, IRMapping *before) {
  for (Operation *inner : ops) {
    IRMapping *mapping = isLate(inner) ? before : it;
    if (!mapping)
      continue;
    b.clone(*inner, *mapping);
    if (it && isLate(inner))
      for (auto [value, argument] :
           llvm::zip_equal(op.getYieldedValues(), op.getRegionIterArgs()))
        if (value.getDefiningOp() == inner)
          it->map(argument, before->lookup(value));
  }
}

Loop::Carried Loop::getCarried(IRMapping &it) {
  Carried carried;
  for (auto [value, isLate] :
       llvm::zip_equal(op.getYieldedValues(), isLateValue))
    if (!isLate)
      carried.push_back(it.lookupOrDefault(value));
  for (Value need : needs)
    carried.push_back(it.lookup(need));
  return carried;
}

Loop::Carried Loop::emitFirst(OpBuilder &b) {
  IRMapping it;
  it.map(op.getInductionVar(), op.getLowerBound());
  it.map(op.getRegionIterArgs(), op.getInitArgs());
  clone(b, &it, /*before=*/nullptr);
  return getCarried(it);
}

Loop::Carried Loop::emitOthers(OpBuilder &b, Value start,
                               const Carried &carried) {
  auto rotated = scf::ForOp::create(b, op.getLoc(), start, op.getUpperBound(),
                                    op.getStep(), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(rotated.getBody());
  IRMapping before, it;
  before.map(needs.getArrayRef(),
             rotated.getRegionIterArgs().take_back(needs.size()));
  it.map(op.getInductionVar(), rotated.getInductionVar());
  for (size_t i = 0, n = 0; i < op.getNumResults(); ++i)
    if (!isLateValue[i])
      it.map(op.getRegionIterArg(i), rotated.getRegionIterArg(n++));
  clone(b, &it, &before);
  scf::YieldOp::create(b, op.getLoc(), getCarried(it));
  nameYounger(*rotated.getBody());
  return Carried(rotated.getResults());
}

SmallVector<Value> Loop::emitLast(OpBuilder &b, const Carried &carried) {
  IRMapping before;
  before.map(needs.getArrayRef(), ArrayRef(carried).take_back(needs.size()));
  clone(b, /*it=*/nullptr, &before);
  SmallVector<Value> results;
  for (size_t i = 0, n = 0; i < op.getNumResults(); ++i)
    results.push_back(isLateValue[i] ? before.lookup(op.getYieldedValues()[i])
                                     : carried[n++]);
  return results;
}

/// Makes a choice that reaches the loop where it is entered.
static scf::IfOp emitGuard(scf::ForOp loop) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  auto guard =
      scf::IfOp::create(b, loc, loop.getResultTypes(), emitIsEntered(b, loop),
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  loop.replaceAllUsesWith(guard.getResults());
  OpBuilder otherwise = guard.getElseBodyBuilder();
  scf::YieldOp::create(otherwise, loc, loop.getInitArgs());
  loop->moveBefore(guard.thenBlock(), guard.thenBlock()->end());
  OpBuilder then = guard.getThenBodyBuilder();
  scf::YieldOp::create(then, loc, loop.getResults());
  return guard;
}

/// The releases behind `around`, of tiles that the loops alone read, which say
/// that they come before the last operations of stage 1.
static SmallVector<RingReleaseOp> getEarlyReleases(ArrayRef<Loop> chain,
                                                   Operation *around) {
  SmallVector<RingReleaseOp> releases;
  for (auto wait : around->getBlock()->getOps<RingWaitOp>()) {
    RingReleaseOp release = wait.getRelease();
    if (release && PipelineAttr::of(release) &&
        around->isBeforeInBlock(release) &&
        llvm::all_of(wait->getUsers(), [&](Operation *user) {
          return llvm::any_of(chain, [&](const Loop &loop) {
            return scf::ForOp(loop.op)->isProperAncestor(user);
          });
        }))
      releases.push_back(release);
  }
  return releases;
}

/// Pipelines loops that each go on where the one before has stopped: there is
/// one beginning and one end.
static void expand(MutableArrayRef<Loop> chain) {
  scf::ForOp first = chain.front().op, last = chain.back().op;
  scf::IfOp guard = getEntryGuard(first);
  if (!isAlwaysEntered(first)) {
    // The only one then: nothing says that others are not entered where it is
    // not.
    assert(chain.size() == 1 && "of several loops the first is always entered");
    guard = emitGuard(first);
  }
  // So no register holds the condition while the queries are awaited, unless it
  // has other uses.
  if (guard && guard.getCondition().hasOneUse())
    if (Operation *condition = guard.getCondition().getDefiningOp())
      condition->moveBefore(guard);
  SmallVector<RingReleaseOp> releases = getEarlyReleases(
      chain, guard ? guard.getOperation() : last.getOperation());
  OpBuilder b(last);
  Location loc = first.getLoc();
  Loop::Carried carried;
  for (Loop &loop : chain) {
    Value start = loop.op.getLowerBound();
    if (loop.op == first) {
      carried = loop.emitFirst(b);
      // A loop of one iteration ends here.
      if (std::optional<APInt> count = first.getStaticTripCount();
          count && count->isOne())
        continue;
      start = arith::AddIOp::create(b, loc, start, first.getStep(),
                                    arith::IntegerOverflowFlags::nsw);
    }
    carried = loop.emitOthers(b, start, carried);
  }
  for (RingReleaseOp release : releases)
    b.clone(*release);
  last.replaceAllUsesWith(chain.back().emitLast(b, carried));
  Block *block = last->getBlock();
  for (Loop &loop : llvm::reverse(chain))
    loop.op.erase();
  nameYounger(*block);
  for (RingReleaseOp release : releases) {
    if (guard) {
      b.setInsertionPoint(guard.elseYield());
      b.clone(*release);
    }
    release.erase();
  }
}

/// Whether the loop is the next one behind the chain, whose first is always
/// entered, and goes on with all its values.
static bool goesOn(Chain &chain, Loop &loop) {
  scf::ForOp before = chain.back().op;
  Operation *behind = before->getNextNode();
  while (behind && !isa<scf::ForOp>(behind))
    behind = behind->getNextNode();
  return behind == loop.op && isAlwaysEntered(chain.front().op) &&
         loop.hasStage1Of(chain.front()) &&
         llvm::equal(loop.op.getInitArgs(), before.getResults()) &&
         llvm::all_of(before.getResults(),
                      [](Value result) { return result.hasOneUse(); });
}

namespace {
struct Pipeline : flash::tile::impl::PipelineBase<Pipeline> {
  void runOnOperation() override {
    bool isPersistent = flash::getSchedule(getOperation())
                            .has(flash::ScheduleFeatures::Persistent);
    llvm::MapVector<Value, SmallVector<WorkOnPut>> works;
    getOperation().walk<WalkOrder::PreOrder>([&](RingWaitOp wait) {
      if (isa<scf::ForOp>(wait->getParentOp()) && isOfStage1(*wait) &&
          getRing(wait) && getRing(wait).isFilledFromRegisters())
        works[wait.getRing()].emplace_back(wait);
    });
    for (auto &[ring, ofRing] : works)
      if (failed(expand(ofRing, isPersistent)))
        return signalPassFailure();
    SmallVector<Chain> chains;
    WalkResult walk =
        getOperation().walk<WalkOrder::PreOrder>([&](scf::ForOp op) {
          if (llvm::none_of(*op.getBody(), isOfStage1))
            return WalkResult::advance();
          Loop loop(op);
          if (failed(loop.schedule()))
            return WalkResult::interrupt();
          auto *chain = llvm::find_if(
              chains, [&](Chain &chain) { return goesOn(chain, loop); });
          if (chain == chains.end())
            chain = &chains.emplace_back();
          chain->push_back(std::move(loop));
          return WalkResult::advance();
        });
    if (walk.wasInterrupted())
      return signalPassFailure();
    for (Chain &chain : chains) {
      LLVM_DEBUG(llvm::dbgs() << chain.front().op.getLoc() << ": "
                              << chain.size() << " loops in one pipeline\n");
      expand(chain);
    }
    getOperation().walk([](Operation *op) {
      op->removeDiscardableAttr(TileDialect::PipelineAttrHelper::getNameStr());
    });
  }
};
} // namespace
