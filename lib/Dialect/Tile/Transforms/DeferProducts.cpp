//===- DeferProducts.cpp - Products of tiles put an iteration before ------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Products.h"

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SmallSet.h"

namespace flash::tile {
#define GEN_PASS_DEF_DEFERPRODUCTS
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

namespace {
/// What an iteration does with a tile that its threads put into a ring: a
/// product reads it, whose result is put into another ring.
struct Chain {
  RingAcquireOp acquire;
  RingPutOp put;
  RingWaitOp wait;
  MmaAsyncOp product;
  MmaWaitOp end;
  RingReleaseOp release;
  RingAcquireOp acquireResult;
  RingPutOp putResult;

  Value getStep() { return put.getStep(); }
};

/// The chains of one ring, all in one role, and who takes their results.
struct Deferred {
  RingOp ring, results;
  SmallVector<Chain, 2> chains;
  WarpSpecializeOp roles;
  unsigned role, readingRole;
  /// How many steps there are, behind the loops.
  Value numSteps;
};
} // namespace

/// The only op of the block of that kind on the ring; null if there is none, or
/// several.
template <typename OpTy> static OpTy getOnly(Block &block, Value ring) {
  OpTy found;
  for (auto op : block.getOps<OpTy>()) {
    if (op.getRing() != ring)
      continue;
    if (found)
      return {};
    found = op;
  }
  return found;
}

static std::optional<Chain> matchChain(RingPutOp put) {
  Block &block = *put->getBlock();
  Chain chain = {getOnly<RingAcquireOp>(block, put.getRing()),
                 getOnly<RingPutOp>(block, put.getRing()),
                 getOnly<RingWaitOp>(block, put.getRing()),
                 {},
                 {},
                 getOnly<RingReleaseOp>(block, put.getRing()),
                 {},
                 {}};
  if (!isa<scf::ForOp>(block.getParentOp()) || !chain.acquire || !chain.put ||
      !chain.wait || !chain.release || !chain.wait->hasOneUse())
    return std::nullopt;
  chain.product = dyn_cast<MmaAsyncOp>(*chain.wait->user_begin());
  if (!chain.product || chain.product.getC() ||
      chain.product->getBlock() != &block)
    return std::nullopt;
  for (Operation *user : chain.product->getUsers())
    if (auto end = dyn_cast<MmaWaitOp>(user);
        end && end.getPending() == chain.product.getResult())
      chain.end = end;
  if (!chain.end || !chain.end->hasOneUse())
    return std::nullopt;
  chain.putResult = dyn_cast<RingPutOp>(*chain.end->user_begin());
  if (!chain.putResult || chain.putResult->getBlock() != &block)
    return std::nullopt;
  chain.acquireResult =
      getOnly<RingAcquireOp>(block, chain.putResult.getRing());
  Value step = chain.getStep();
  if (!chain.acquireResult || chain.acquire.getStep() != step ||
      chain.wait.getStep() != step || chain.release.getStep() != step ||
      chain.acquireResult.getStep() != step ||
      chain.putResult.getStep() != step)
    return std::nullopt;
  return chain;
}

/// Whether loops count the step from 0 on; sets `end` to what the last of them,
/// in a block of its own, makes of it.
static bool isCounted(Value step, Block *block, Value &end) {
  auto argument = dyn_cast<BlockArgument>(step);
  auto loop = argument
                  ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                  : scf::ForOp();
  if (!loop || argument == loop.getInductionVar())
    return false;
  end = loop.getTiedLoopResult(argument);
  for (Value next = end; next;) {
    end = next;
    next = Value();
    for (OpOperand &use : end.getUses()) {
      if (auto other = dyn_cast<scf::ForOp>(use.getOwner());
          other && other.getTiedLoopRegionIterArg(&use))
        next = other.getTiedLoopResult(&use);
      else if (isa<scf::YieldOp>(use.getOwner()))
        next = use.getOwner()->getParentOp()->getResult(use.getOperandNumber());
    }
  }
  if (end.getParentBlock() != block)
    return false;
  Value start = end;
  while (auto result = dyn_cast<OpResult>(start)) {
    if (auto choice = dyn_cast<scf::IfOp>(result.getOwner()))
      start = choice.thenYield().getOperand(result.getResultNumber());
    else if (auto other = dyn_cast<scf::ForOp>(result.getOwner()))
      start = other.getTiedLoopInit(result)->get();
    else
      break;
    if (auto outer = dyn_cast<BlockArgument>(start))
      if (auto around = dyn_cast<scf::ForOp>(outer.getOwner()->getParentOp());
          around && outer != around.getInductionVar())
        start = around.getTiedLoopInit(outer)->get();
  }
  return getConstantIntValue(start) == 0;
}

/// The products of what is put into the ring, if all can be deferred.
static std::optional<Deferred> match(RingOp ring) {
  if (!ring.isFilledFromRegisters() || ring.getNumStages() < 2)
    return std::nullopt;
  Deferred found = {ring, {}, {}, {}, 0, 0, {}};
  SmallVector<Operation *> users(ring->getUsers());
  for (Operation *user : llvm::reverse(users)) {
    auto put = dyn_cast<RingPutOp>(user);
    if (!put)
      continue;
    std::optional<Chain> chain = matchChain(put);
    if (!chain)
      return std::nullopt;
    found.chains.push_back(*chain);
  }
  constexpr size_t opsOfChain = 4, opsOnResults = 2;
  if (users.size() != opsOfChain * found.chains.size())
    return std::nullopt;
  Chain &first = found.chains.front();
  found.roles = first.put->getParentOfType<WarpSpecializeOp>();
  found.results = first.putResult.getRing().getDefiningOp<RingOp>();
  if (!found.roles || !found.results)
    return std::nullopt;
  found.role = found.roles.getRoleOf(first.put);
  Block &block = found.roles.getRoles()[found.role].front();
  for (Chain &chain : found.chains) {
    Value end;
    if (!isCounted(chain.getStep(), &block, end) ||
        chain.putResult.getRing() != found.results ||
        (found.numSteps && end != found.numSteps))
      return std::nullopt;
    found.numSteps = end;
    // An iteration has the product of the one before, which may be another
    // loop's, and behind the loops there is one more: all are alike.
    if (chain.product->getAttrs() != first.product->getAttrs() ||
        chain.product->getPropertiesAsAttribute() !=
            first.product->getPropertiesAsAttribute())
      return std::nullopt;
    for (unsigned i = 0; i < chain.product->getNumOperands(); ++i) {
      Value operand = chain.product->getOperand(i),
            ofFirst = first.product->getOperand(i);
      bool isPut =
          operand == chain.wait.getTile() && ofFirst == first.wait.getTile();
      if (!isPut && (operand != ofFirst || operand.getParentBlock() != &block))
        return std::nullopt;
    }
  }
  size_t own = 0;
  llvm::SmallSet<unsigned, 2> readers;
  for (Operation *user : found.results->getUsers()) {
    unsigned role = found.roles.getRoleOf(user);
    if (role == found.role)
      ++own;
    else
      readers.insert(role);
  }
  if (own != opsOnResults * found.chains.size() || readers.size() != 1)
    return std::nullopt;
  found.readingRole = *readers.begin();
  return found;
}

static void defer(Deferred &found) {
  Block &block = found.roles.getRoles()[found.role].front();
  Location loc = found.ring.getLoc();
  auto getAncestor = [&](Operation *op) {
    return block.findAncestorOpInBlock(*op);
  };
  auto isBefore = [&](Chain &a, Chain &b) {
    return getAncestor(a.put)->isBeforeInBlock(getAncestor(b.put));
  };
  // The first iteration finds a product of zeros, which nobody asks for.
  Chain &first = *llvm::min_element(found.chains, isBefore);
  OpBuilder b(getAncestor(first.put));
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value nothing = arith::ConstantOp::create(
      b, loc, b.getZeroAttr(first.put.getX().getType()));
  RingAcquireOp::create(b, loc, found.ring, zero);
  RingPutOp::create(b, loc, nothing, found.ring, zero);

  // The product of what the last iteration puts.
  b.setInsertionPointAfter(found.numSteps.getDefiningOp());
  IRMapping mapping;
  mapping.map(first.getStep(), found.numSteps);
  b.clone(*first.wait, mapping);
  b.clone(*first.product, mapping);
  Value result = MmaWaitOp::create(b, loc, first.end.getType(),
                                   mapping.lookup(first.product.getResult()));
  mapping.map(first.end.getResult(), result);
  b.clone(*first.release, mapping);
  b.clone(*first.acquireResult, mapping);
  b.clone(*first.putResult, mapping);

  for (Chain &chain : found.chains) {
    b.setInsertionPoint(chain.acquire);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    Value next = arith::AddIOp::create(b, loc, chain.getStep(), one);
    chain.acquire.getStepMutable().assign(next);
    chain.put.getStepMutable().assign(next);
  }

  Region &reading = found.roles.getRoles()[found.readingRole];
  // A wait and its release name the same value.
  DenseMap<std::pair<Block *, Value>, Value> nextSteps;
  reading.walk([&](RingOpInterface op) {
    if (op.getRing() != found.results)
      return;
    Value step = op.getStep();
    Value &next = nextSteps[{op->getBlock(), step}];
    if (!next) {
      b.setInsertionPoint(op);
      Value one = arith::ConstantIndexOp::create(b, loc, 1);
      next = arith::AddIOp::create(b, loc, step, one);
    }
    op->replaceUsesOfWith(step, next);
  });
  b.setInsertionPointToStart(&reading.front());
  zero = arith::ConstantIndexOp::create(b, loc, 0);
  RingWaitOp::create(b, loc, found.results.getResult().getType().getTile(),
                     found.results, zero);
  RingReleaseOp::create(b, loc, found.results, zero);
}

namespace {
struct DeferProducts : flash::tile::impl::DeferProductsBase<DeferProducts> {
  void runOnOperation() override {
    if (!flash::getSchedule(getOperation())
             .has(flash::ScheduleFeatures::DeferProducts))
      return;
    SmallVector<RingOp> rings;
    getOperation().walk([&](RingOp ring) { rings.push_back(ring); });
    for (RingOp ring : rings)
      if (std::optional<Deferred> found = match(ring))
        defer(*found);
  }
};
} // namespace
