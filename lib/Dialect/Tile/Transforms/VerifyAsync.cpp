//===- VerifyAsync.cpp - Rules of rings and pending products --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyRoles.h"

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

template <typename OpTy> static bool isOfStep(OpTy op, Value ring, Value step) {
  return op && op.getRing() == ring && isSame(op.getStep(), step);
}

/// A copy directly behind the acquire of its step, but for ops that do nothing
/// to this step, in the same block.
static LogicalResult verifyCopy(CopyAsyncOp copy) {
  for (Operation *op = copy->getPrevNode(); op; op = op->getPrevNode()) {
    if (isOfStep(dyn_cast<RingAcquireOp>(op), copy.getRing(), copy.getStep()))
      return success();
    if (isOfStep(dyn_cast<CopyAsyncOp>(op), copy.getRing(), copy.getStep()))
      return copy.emitOpError("fills a slot that a copy before it fills");
  }
  return copy.emitOpError("fills a slot that has not been acquired before it, "
                          "under the same guard");
}

static LogicalResult verifyAcquire(RingAcquireOp acquire) {
  for (Operation *op = acquire->getNextNode(); op; op = op->getNextNode())
    if (isOfStep(dyn_cast<CopyAsyncOp>(op), acquire.getRing(),
                 acquire.getStep()))
      return success();
  return acquire.emitOpError(
      "takes a slot that no copy after it fills, under the same guard");
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
static SmallVector<RingReleaseOp> getReleases(RingWaitOp wait, Operation *op) {
  for (; op; op = op->getNextNode()) {
    if (isOfStep(dyn_cast<RingReleaseOp>(op), wait.getRing(), wait.getStep()))
      return {cast<RingReleaseOp>(op)};
    auto choice = dyn_cast<scf::IfOp>(op);
    if (!choice || !choice.elseBlock())
      continue;
    SmallVector<RingReleaseOp> releases;
    for (Block *branch : {choice.thenBlock(), choice.elseBlock()})
      llvm::append_range(releases, getReleases(wait, &branch->front()));
    if (releases.size() == 2)
      return releases;
  }
  return {};
}

static LogicalResult verifyWait(RingWaitOp wait) {
  SmallVector<RingReleaseOp> releases = getReleases(wait, wait->getNextNode());
  if (releases.empty())
    return wait.emitOpError(
        "gives a tile that is not released after it, in the same block");
  for (Operation *reader : getReaders(wait))
    for (RingReleaseOp release : releases) {
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

static LogicalResult verifyRelease(RingReleaseOp release) {
  for (Operation *at = release; at;
       at = dyn_cast_if_present<scf::IfOp>(at->getParentOp()))
    for (Operation *op = at->getPrevNode(); op; op = op->getPrevNode()) {
      if (isOfStep(dyn_cast<RingWaitOp>(op), release.getRing(),
                   release.getStep()))
        return success();
      WalkResult walk = op->walk([&](RingReleaseOp other) {
        return isOfStep(other, release.getRing(), release.getStep())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      });
      if (walk.wasInterrupted())
        return release.emitOpError("gives a slot back a second time");
    }
  return release.emitOpError(
      "gives a slot back that has not been waited for before it, in the same "
      "block");
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
  // Its slots would never be free.
  if (ring.getInspected() &&
      llvm::none_of(ring->getUsers(), llvm::IsaPred<RingInspectOp>))
    return ring.emitOpError("is inspected, but by nobody");
  llvm::SmallDenseMap<Region *, scf::ForOp> counters;
  for (Operation *user : ring->getUsers()) {
    auto step = TypeSwitch<Operation *, Value>(user)
                    .Case<RingAcquireOp, CopyAsyncOp, RingWaitOp, RingPeekOp,
                          RingReleaseOp, RingInspectOp, RingIsFiniteOp>(
                        [](auto op) { return op.getStep(); })
                    .Default(Value());
    if (!step)
      return user->emitOpError("may not use a ring");
    if (isa<RingInspectOp, RingIsFiniteOp>(user) && !ring.getInspected())
      return user->emitOpError("is of a ring that is not inspected");
    scf::ForOp first = getFirstCounter(step);
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

/// The part of a step that is not known here, null if there is none, and what
/// is added to it.
static std::pair<Value, int64_t> splitStep(Value step) {
  int64_t offset = 0;
  while (true) {
    if (std::optional<int64_t> constant = getConstantIntValue(step))
      return {Value(), offset + *constant};
    auto sum = step.getDefiningOp<arith::AddIOp>();
    if (!sum)
      return {step, offset};
    if (std::optional<int64_t> rhs = getConstantIntValue(sum.getRhs())) {
      offset += *rhs;
      step = sum.getLhs();
    } else if (std::optional<int64_t> lhs = getConstantIntValue(sum.getLhs())) {
      offset += *lhs;
      step = sum.getRhs();
    } else {
      return {step, offset};
    }
  }
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
  using Key = std::tuple<TypeID, Value, int64_t>;
  DenseMap<Key, SmallVector<Operation *, 1>> seen;
  // The last use is listed first.
  SmallVector<Operation *> users(ring->getUsers());
  for (Operation *user : llvm::reverse(users)) {
    // Of roles verifyCounts compares how often each does what.
    if (getRole(user))
      continue;
    auto step =
        TypeSwitch<Operation *, Value>(user)
            .Case<RingAcquireOp, CopyAsyncOp, RingWaitOp, RingReleaseOp>(
                [](auto op) { return op.getStep(); })
            .Default(Value());
    if (!step)
      continue;
    auto [base, offset] = splitStep(step);
    SmallVector<Operation *, 1> &others =
        seen[{user->getName().getTypeID(), base, offset}];
    for (Operation *other : others) {
      // A second wait for the same tile does nothing.
      bool isHarmless =
          isa<RingWaitOp>(user) && user->getBlock() == other->getBlock();
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
      return TypeSwitch<Operation *, LogicalResult>(op)
          .Case([](CopyAsyncOp op) { return verifyCopy(op); })
          .Case([](RingAcquireOp op) { return verifyAcquire(op); })
          .Case([](MmaAsyncOp op) { return verifyProduct(op); })
          .Case([](MmaWaitOp op) { return verifyYounger(op); })
          .Case([](RingWaitOp op) { return verifyWait(op); })
          .Case([](RingReleaseOp op) { return verifyRelease(op); })
          .Case([](RingOp op) { return verifyRing(op); })
          .Case([](WarpSpecializeOp op) { return verifyRoles(op); })
          .Case<TurnWaitOp, TurnPassOp>([](auto op) { return verifyTurn(op); })
          .Case([](AnyOp op) { return verifyAnswerOfWarp(op); })
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
