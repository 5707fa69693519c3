//===- VerifyAsync.cpp - Rules of rings and pending products --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyRoles.h"
#include "flash/Dialect/Tile/Utils/Steps.h"

#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

namespace flash::tile {
#define GEN_PASS_DEF_VERIFYASYNC
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

/// Whether two values are known to be equal.
static bool isSame(Value a, Value b) {
  std::optional<int64_t> constant = getConstantIntValue(a);
  return a == b || (constant && constant == getConstantIntValue(b));
}

/// Whether `op` has such an effect on the step of a ring.
static bool isOfStep(Operation *op, RingEffect effect, Value ring, Value step) {
  auto ringOp = dyn_cast<RingOpInterface>(op);
  return ringOp && ringOp.hasRingEffect(effect) && ringOp.getRing() == ring &&
         isSame(ringOp.getStep(), step);
}

/// What fills a part of a stage: which part, or that a loop counts them.
struct Part {
  Operation *at; ///< The op, or the loop.
  std::optional<int64_t> number;
};

static FailureOr<Part> getPart(RingOpInterface fill) {
  auto copy = dyn_cast<CopyAsyncOp>(fill.getOperation());
  Value part = copy ? copy.getPart() : Value();
  auto ring = fill.getRing().getDefiningOp<RingOp>();
  int64_t copies = ring ? ring.getNumCopies() : 1;
  if (copies > 1 && !copy)
    return fill.emitOpError("fills a stage that copies fill");
  if ((copies > 1) != !!part)
    return part
               ? fill.emitOpError("names a part of a stage that one copy fills")
               : fill.emitOpError("must name which part of the stage it fills");
  if (!part)
    return Part{fill, 0};
  std::optional<int64_t> number = getConstantIntValue(part);
  if (number && *number >= 0 && *number < copies)
    return Part{fill, number};
  auto loop = dyn_cast<scf::ForOp>(fill->getParentOp());
  if (loop && part == loop.getInductionVar() &&
      getConstantIntValue(loop.getLowerBound()) == 0 &&
      getConstantIntValue(loop.getUpperBound()) == copies &&
      getConstantIntValue(loop.getStep()) == 1)
    return Part{loop, std::nullopt};
  return fill.emitOpError("names a part that is no constant below ")
         << copies << ", nor counted by a loop from 0 to " << copies;
}

/// The ops that fill the step of a ring, in `op` itself or in a loop over
/// parts.
static SmallVector<RingOpInterface, 1> getFills(Operation *op, Value ring,
                                                Value step) {
  SmallVector<RingOpInterface, 1> fills;
  auto add = [&](Operation *inner) {
    if (isOfStep(inner, RingEffect::Fill, ring, step))
      fills.push_back(cast<RingOpInterface>(inner));
  };
  add(op);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    for (Operation &inner : *loop.getBody())
      add(&inner);
  return fills;
}

/// A stage is filled behind the acquire of its step, but for ops that do
/// nothing to this step, in the same block.
static LogicalResult verifyFill(RingOpInterface fill) {
  FailureOr<Part> part = getPart(fill);
  if (failed(part))
    return failure();
  Value ring = fill.getRing(), step = fill.getStep();
  for (Operation *op = part->at->getPrevNode(); op; op = op->getPrevNode()) {
    if (isOfStep(op, RingEffect::Acquire, ring, step))
      return success();
    for (RingOpInterface before : getFills(op, ring, step)) {
      FailureOr<Part> other = getPart(before);
      if (failed(other))
        return failure();
      if (!part->number || !other->number || part->number == other->number)
        return fill.emitOpError("fills a stage that a copy before it fills");
    }
  }
  return fill.emitOpError("fills a stage that has not been acquired before it, "
                          "under the same guard");
}

static LogicalResult verifyAcquire(RingOpInterface acquire) {
  auto ring = acquire.getRing().getDefiningOp<RingOp>();
  int64_t copies = ring ? ring.getNumCopies() : 1, found = 0;
  for (Operation *op = acquire->getNextNode(); op; op = op->getNextNode())
    for (RingOpInterface fill :
         getFills(op, acquire.getRing(), acquire.getStep())) {
      FailureOr<Part> part = getPart(fill);
      if (failed(part))
        return failure();
      found += part->number ? 1 : copies;
    }
  if (found == 0)
    return acquire.emitOpError(
        "takes a stage that no copy after it fills, under the same guard");
  if (found < copies)
    return acquire.emitOpError("takes a stage, but copies after it fill only ")
           << found << " of its " << copies << " parts";
  return success();
}

/// A copy without NaN and infinities is the only one in an acquired stage, and
/// products that read it end before a result is put over it.
static LogicalResult verifyCopyFinite(RingCopyFiniteOp copy) {
  auto isOfSameStep = [&](Operation *op, RingEffect effect) {
    return isOfStep(op, effect, copy.getRing(), copy.getStep());
  };
  bool isAcquired = false;
  for (Operation *op = copy->getPrevNode(); op; op = op->getPrevNode()) {
    isAcquired |= isOfSameStep(op, RingEffect::Acquire);
    if (isa<RingCopyFiniteOp>(op) && isOfSameStep(op, RingEffect::Ask))
      return copy.emitOpError("copies to a stage that has a copy already");
  }
  Operation *put = copy->getNextNode();
  while (put && !isOfSameStep(put, RingEffect::Fill))
    put = put->getNextNode();
  if (!isAcquired || !put)
    return copy.emitOpError("copies to a stage that is not acquired before it, "
                            "and put after it, in the same block");
  auto endsBeforePut = [&](Operation *op) {
    op = copy->getBlock()->findAncestorOpInBlock(*op);
    return op && op->isBeforeInBlock(put);
  };
  for (Operation *reader : copy->getUsers())
    if (!endsBeforePut(reader) ||
        (isa<MmaAsyncOp>(reader) &&
         !llvm::all_of(reader->getUsers(), endsBeforePut)))
      return copy.emitOpError("is read by what has not ended when a result is "
                              "put over the copy");
  return success();
}

static LogicalResult verifyProduct(MmaAsyncOp product) {
  if (product->use_empty())
    return product.emitOpError("is never waited for");
  int numWaits = 0;
  for (Operation *user : product->getUsers()) {
    auto wait = dyn_cast<MmaWaitOp>(user);
    if (!wait)
      return product.emitOpError("may only be waited for, but '")
             << user->getName() << "' uses it";
    if (user->getBlock() != product->getBlock())
      return product.emitOpError("is waited for under another guard");
    numWaits += wait.getPending() == product.getResult();
  }
  if (numWaits == 1)
    return success();
  return product.emitOpError(numWaits == 0 ? "is never waited for"
                                           : "is waited for more than once");
}

/// Products complete in the order of their start, so those that may go on are
/// all that were started later and are not complete yet.
static LogicalResult verifyYounger(MmaWaitOp wait) {
  SmallVector<Value> running;
  for (Operation *op = wait.getPending().getDefiningOp()->getNextNode();
       op != wait; op = op->getNextNode()) {
    if (auto product = dyn_cast<MmaAsyncOp>(op))
      running.push_back(product);
    else if (auto other = dyn_cast<MmaWaitOp>(op))
      llvm::erase(running, other.getPending());
  }
  if (llvm::equal(running, wait.getYounger()))
    return success();
  InFlightDiagnostic error = wait.emitOpError(
      "must name as younger, in their order, the products that "
      "were started behind its own and not waited for");
  for (Value product : running)
    error.attachNote(product.getLoc()) << "one of them";
  return error;
}

/// The ops that read the tile, and those that wait for a product which does.
static SmallVector<Operation *> getReaders(RingWaitOp wait) {
  SmallVector<Operation *> readers(wait->getUsers());
  for (Operation *user : wait->getUsers())
    if (isa<MmaAsyncOp>(user))
      llvm::append_range(readers, user->getUsers());
  return readers;
}

/// The releases of the step in the rest of the op's block: one, or one in each
/// branch of a choice.
static SmallVector<RingOpInterface> getReleases(RingWaitOp wait,
                                                Operation *op) {
  for (; op; op = op->getNextNode()) {
    if (isOfStep(op, RingEffect::Release, wait.getRing(), wait.getStep()))
      return {cast<RingOpInterface>(op)};
    auto choice = dyn_cast<scf::IfOp>(op);
    if (!choice || !choice.elseBlock())
      continue;
    SmallVector<RingOpInterface> releases;
    for (Block *branch : {choice.thenBlock(), choice.elseBlock()})
      llvm::append_range(releases, getReleases(wait, &branch->front()));
    if (releases.size() == 2)
      return releases;
  }
  return {};
}

/// A stage that the op's own warps fill is filled before they wait for it: each
/// step is filled once, and no others will.
static LogicalResult verifyIsFilled(RingWaitOp wait) {
  for (Operation *user : wait.getRing().getUsers()) {
    auto fill = dyn_cast<RingOpInterface>(user);
    if (!fill || !fill.hasRingEffect(RingEffect::Fill) ||
        getRole(fill) != getRole(wait) ||
        splitStep(fill.getStep()) != splitStep(wait.getStep()))
      continue;
    for (Operation *at = wait; at; at = at->getParentOp()) {
      Operation *later = at->getBlock()->findAncestorOpInBlock(*fill);
      if (!later)
        continue;
      if (later == at || later->isBeforeInBlock(at))
        break;
      InFlightDiagnostic error =
          wait.emitOpError("waits for a stage that only its own warps fill, "
                           "and later");
      error.attachNote(fill.getLoc()) << "filled here";
      return error;
    }
  }
  return success();
}

static LogicalResult verifyWait(RingWaitOp wait) {
  if (failed(verifyIsFilled(wait)))
    return failure();
  SmallVector<RingOpInterface> releases =
      getReleases(wait, wait->getNextNode());
  if (releases.empty())
    return wait.emitOpError(
        "gives a tile that is not released after it, in the same block");
  for (Operation *reader : getReaders(wait))
    for (RingOpInterface release : releases) {
      // What is around both comes first, or is a choice that takes the reader's
      // branch.
      Operation *ancestor = release->getBlock()->findAncestorOpInBlock(*reader);
      if (!ancestor)
        ancestor = wait->getBlock()->findAncestorOpInBlock(*reader);
      Operation *end = ancestor->getBlock()->findAncestorOpInBlock(*release);
      if (ancestor == end || ancestor->isBeforeInBlock(end))
        continue;
      InFlightDiagnostic error =
          isa<MmaWaitOp>(reader)
              ? reader->emitOpError("waits for a product behind the release of "
                                    "a tile that it reads")
              : reader->emitOpError("uses a tile behind its release");
      error.attachNote(release.getLoc()) << "released here";
      return error;
    }
  return success();
}

static LogicalResult verifyRelease(RingOpInterface release) {
  for (Operation *at = release; at;
       at = dyn_cast_if_present<scf::IfOp>(at->getParentOp()))
    for (Operation *op = at->getPrevNode(); op; op = op->getPrevNode()) {
      if (isOfStep(op, RingEffect::Wait, release.getRing(), release.getStep()))
        return success();
      WalkResult walk = op->walk([&](Operation *other) {
        return isOfStep(other, RingEffect::Release, release.getRing(),
                        release.getStep())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      });
      if (walk.wasInterrupted())
        return release.emitOpError("gives a stage back a second time");
    }
  return release.emitOpError(
      "gives a stage back that has not been waited for before it, in the same "
      "block");
}

static LogicalResult verifyStep(RingOpInterface op) {
  switch (op.getRingEffect()) {
  case RingEffect::Acquire:
    return verifyAcquire(op);
  case RingEffect::Fill:
    return verifyFill(op);
  case RingEffect::Release:
    return verifyRelease(op);
  default:
    return success();
  }
}

/// The first of the loops that count the step, each from where the one before
/// or around it has stopped; null if no loop does.
static scf::ForOp getFirstCounter(Value step) {
  scf::ForOp first;
  while (true) {
    OpOperand *init = nullptr;
    if (auto argument = dyn_cast<BlockArgument>(step)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (!loop || argument == loop.getInductionVar())
        return first;
      init = loop.getTiedLoopInit(argument);
    } else if (auto loop = step.getDefiningOp<scf::ForOp>()) {
      init = loop.getTiedLoopInit(cast<OpResult>(step));
    } else if (auto choice = step.getDefiningOp<scf::IfOp>()) {
      // The other way goes round the loops of this one.
      step =
          choice.thenYield().getOperand(cast<OpResult>(step).getResultNumber());
      continue;
    } else if (auto sum = step.getDefiningOp<arith::AddIOp>()) {
      if (!getConstantIntValue(sum.getRhs()))
        return first;
      step = sum.getLhs();
      continue;
    } else {
      return first;
    }
    first = cast<scf::ForOp>(init->getOwner());
    step = init->get();
  }
}

/// The steps of a ring have one count in each role.
static LogicalResult verifyRing(RingOp ring) {
  auto hasEffect = [](RingEffect effect) {
    return [effect](Operation *user) {
      auto ringOp = dyn_cast<RingOpInterface>(user);
      return ringOp && ringOp.hasRingEffect(effect);
    };
  };
  // Its stages would never be free.
  if ((ring.getChecked() || ring.getFinite()) &&
      llvm::none_of(ring->getUsers(), hasEffect(RingEffect::CheckFinite)))
    return ring.emitOpError("is checked or made finite, but by nobody");
  llvm::SmallDenseMap<Region *, scf::ForOp> counters;
  for (Operation *user : ring->getUsers()) {
    auto ringOp = dyn_cast<RingOpInterface>(user);
    if (!ringOp)
      return user->emitOpError("may not use a ring");
    if (isa<RingCheckFiniteOp, RingIsFiniteOp>(user) && !ring.getChecked())
      return user->emitOpError("is of a ring that is not checked");
    if (isa<RingMakeFiniteOp>(user) && !ring.getFinite())
      return user->emitOpError("is of a ring that is not finite");
    if (ringOp.hasRingEffect(RingEffect::Fill) &&
        isa<CopyAsyncOp>(user) == ring.isFilledFromRegisters())
      return user->emitOpError("copies into a ring that register tiles fill");
    scf::ForOp first = getFirstCounter(ringOp.getStep());
    scf::ForOp &counter = counters[getRole(user)];
    if (first && counter && first != counter) {
      InFlightDiagnostic error =
          ring.emitOpError("has steps that unrelated loops count");
      error.attachNote(first.getLoc()) << "one of them";
      error.attachNote(counter.getLoc()) << "another one";
      return error;
    }
    if (first)
      counter = first;
  }
  return success();
}

/// Whether only one of the two is ever carried out: the innermost op around
/// both chooses between them, or gives them to different warps.
static bool areExclusive(Operation *a, Operation *b) {
  for (Region *region = a->getParentRegion(); region;
       region = region->getParentRegion())
    if (region->getParentOp()->isAncestor(b))
      return !region->isAncestor(b->getParentRegion()) &&
             isa<scf::IfOp, scf::IndexSwitchOp, WarpSpecializeOp>(
                 region->getParentOp());
  return false;
}

/// Each step of a ring is acquired, filled, waited for and released by one op,
/// whatever the guards are.
static LogicalResult verifyOnce(RingOp ring) {
  // The effect, the step, and for copies the part.
  using Key = std::tuple<int, Value, int64_t, int64_t>;
  DenseMap<Key, SmallVector<Operation *, 1>> seen;
  // The last use is listed first.
  SmallVector<Operation *> users(ring->getUsers());
  for (Operation *user : llvm::reverse(users)) {
    // For roles verifyCounts compares how often each does what.
    if (getRole(user))
      continue;
    auto ringOp = cast<RingOpInterface>(user);
    RingEffect effect = ringOp.getRingEffect();
    if (effect == RingEffect::Peek || effect == RingEffect::Ask)
      continue;
    auto [base, offset] = splitStep(ringOp.getStep());
    int64_t part = 0;
    if (auto copy = dyn_cast<CopyAsyncOp>(user); copy && copy.getPart())
      part = getConstantIntValue(copy.getPart()).value_or(-1);
    SmallVector<Operation *, 1> &others =
        seen[{static_cast<int>(effect), base, offset, part}];
    for (Operation *other : others) {
      // A second wait for the same tile does nothing.
      bool isHarmless =
          effect == RingEffect::Wait && user->getBlock() == other->getBlock();
      if (isHarmless || areExclusive(user, other))
        continue;
      return (user->emitOpError("names a step that another one names, and no "
                                "choice leaves out one of them")
                  .attachNote(other->getLoc())
              << "the other one");
    }
    others.push_back(user);
  }
  return success();
}

namespace {
struct VerifyAsync : flash::tile::impl::VerifyAsyncBase<VerifyAsync> {
  void runOnOperation() override {
    // What a role must not do comes before how it does it.
    auto verify = [](Operation *op) -> WalkResult {
      if (PipelineAttr::of(op))
        return op->emitOpError("is part of a pipeline that has not been "
                               "expanded; run tile-pipeline before");
      return TypeSwitch<Operation *, LogicalResult>(op)
          .Case([](RingWaitOp op) { return verifyWait(op); })
          .Case([](RingCopyFiniteOp op) { return verifyCopyFinite(op); })
          .Case([](RingOpInterface op) { return verifyStep(op); })
          .Case([](MmaAsyncOp op) { return verifyProduct(op); })
          .Case([](MmaWaitOp op) { return verifyYounger(op); })
          .Case([](RingOp op) { return verifyRing(op); })
          .Case([](WarpSpecializeOp op) { return verifyRoles(op); })
          .Case<PingPongWaitOp, PingPongArriveOp>(
              [](auto op) { return verifyPingPong(op); })
          .Case([](AnyOp op) { return verifyVote(op); })
          .Default(success());
    };
    // What is wrong with one op says more than that there are two of them.
    WalkResult result = getOperation().walk<WalkOrder::PreOrder>(verify);
    if (!result.wasInterrupted())
      result = getOperation().walk([](WarpSpecializeOp roles) -> WalkResult {
        return verifyCounts(roles);
      });
    if (!result.wasInterrupted())
      result = getOperation().walk(
          [](RingOp ring) -> WalkResult { return verifyOnce(ring); });
    if (result.wasInterrupted())
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
