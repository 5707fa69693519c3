//===- Pipeline.cpp - Loops of which an iteration has work of two ---------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopEntry.h"
#include "Products.h"

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/Debug.h"

namespace flash::tile {
#define GEN_PASS_DEF_PIPELINE
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

#define DEBUG_TYPE "tile-pipeline"

using namespace mlir;
using namespace flash::tile;

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
  /// Emits the loop from `start` on, each iteration of which has stage 1 of the
  /// one before.
  Carried emitOthers(OpBuilder &b, Value start, const Carried &carried);
  /// Emits stage 1 of the last iteration; returns the loop's values.
  SmallVector<Value> emitLast(OpBuilder &b, const Carried &carried);

  /// Whether the loops leave the same to their next iterations.
  bool hasShapeOf(const Loop &other) const {
    return isLateValue == other.isLateValue &&
           needs.getArrayRef().size() == other.needs.size() &&
           llvm::equal(ValueRange(needs.getArrayRef()).getTypes(),
                       ValueRange(other.needs.getArrayRef()).getTypes());
  }

  scf::ForOp op;

private:
  /// Clones stage 0 with the values of `it` and stage 1 with those of `before`,
  /// where these are given.
  void clone(OpBuilder &b, IRMapping *it, IRMapping *before);
  Carried getCarried(IRMapping &it);
  /// Calls the function for each value that the operation, of the body, takes
  /// from the loop, and for the operation of the body that computes it; null
  /// for what the loop carries.
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

static bool isOfStage1(Operation &op) {
  PipelineAttr time = PipelineAttr::of(&op);
  return time && time.getStage() == 1;
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

/// Pipelines loops of which each goes on where the one before has stopped:
/// there is one beginning and one end.
static void expand(MutableArrayRef<Loop> chain) {
  scf::ForOp first = chain.front().op, last = chain.back().op;
  scf::IfOp guard = getEntryGuard(first);
  if (!isAlwaysEntered(first)) {
    // The only one then: nothing says that others are not entered where it is
    // not.
    assert(chain.size() == 1 && "of several loops the first is always entered");
    guard = emitGuard(first);
  }
  // No register has the result while the queries are awaited, unless others ask
  // for it, too.
  if (guard && guard.getCondition().hasOneUse())
    guard.getCondition().getDefiningOp()->moveBefore(guard);
  SmallVector<RingReleaseOp> releases = getEarlyReleases(
      chain, guard ? guard.getOperation() : last.getOperation());
  OpBuilder b(last);
  Location loc = first.getLoc();
  Loop::Carried carried;
  for (Loop &loop : chain) {
    Value start = loop.op.getLowerBound();
    if (loop.op == first) {
      carried = loop.emitFirst(b);
      // Of one iteration this is the end, and the loop behind it goes.
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

/// Adds the loops behind the first, which is always entered, that go on with
/// all its values one after the other.
static void addLoopsBehind(Chain &chain, ArrayRef<Loop> others) {
  if (!isAlwaysEntered(chain.front().op))
    return;
  for (Operation *op = chain.front().op->getNextNode(); op;
       op = op->getNextNode()) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop)
      continue;
    const Loop *next = llvm::find_if(
        others, [&](const Loop &other) { return other.op == op; });
    scf::ForOp before = chain.back().op;
    if (next == others.end() || !next->hasShapeOf(chain.front()) ||
        !llvm::equal(loop.getInitArgs(), before.getResults()) ||
        !llvm::all_of(before.getResults(),
                      [](Value result) { return result.hasOneUse(); }))
      return;
    chain.push_back(*next);
  }
}

namespace {
struct Pipeline : flash::tile::impl::PipelineBase<Pipeline> {
  void runOnOperation() override {
    Chain loops;
    getOperation().walk<WalkOrder::PreOrder>([&](scf::ForOp op) {
      if (llvm::any_of(*op.getBody(), isOfStage1))
        loops.emplace_back(op);
    });
    for (Loop &loop : loops)
      if (failed(loop.schedule()))
        return signalPassFailure();
    SmallVector<Chain> chains;
    for (Loop &loop : loops) {
      if (llvm::any_of(chains, [&](ArrayRef<Loop> chain) {
            return llvm::any_of(
                chain, [&](const Loop &other) { return other.op == loop.op; });
          }))
        continue;
      chains.emplace_back(1, loop);
      addLoopsBehind(chains.back(), loops);
    }
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
