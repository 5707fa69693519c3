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
#include "llvm/Support/Debug.h"

namespace flash::tile {
#define GEN_PASS_DEF_DEFERPRODUCTS
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

#define DEBUG_TYPE "tile-defer-products"

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

/// What loops of a block count steps from, and what the last of them makes of
/// it.
struct Count {
  Value start, end;

  bool operator==(const Count &other) const {
    return start == other.start && end == other.end;
  }
};

/// What another role does with the tiles of a ring.
struct Reader {
  RingOp ring;
  /// What it does with a tile of the kernel.
  Block *block = nullptr;
  /// What its loops over steps count from.
  Value first = {};
};

/// The chains of one ring, all in one role, and who takes their results or
/// reads what they put.
struct Deferred {
  RingOp ring, results;
  SmallVector<Chain, 2> chains;
  /// What their role does with a tile.
  Block *block = nullptr;
  /// What the loops over the steps of a tile count.
  Count steps;
  SmallVector<Reader, 2> readers;
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

/// What is counted where loops of `block`, and loops and choices in them, count
/// the step; null values if they do not.
static Count getCount(Value step, Block *block) {
  auto argument = dyn_cast<BlockArgument>(step);
  auto loop = argument
                  ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                  : scf::ForOp();
  if (!loop || argument == loop.getInductionVar())
    return {};
  Value end = loop.getTiedLoopResult(argument);
  for (Value next = end; next;) {
    end = next;
    next = Value();
    for (OpOperand &use : end.getUses()) {
      if (auto other = dyn_cast<scf::ForOp>(use.getOwner());
          other && other.getTiedLoopRegionIterArg(&use))
        next = other.getTiedLoopResult(&use);
      else if (isa<scf::YieldOp>(use.getOwner()) &&
               use.getOwner()->getBlock() != block)
        next = use.getOwner()->getParentOp()->getResult(use.getOperandNumber());
    }
  }
  if (end.getParentBlock() != block)
    return {};
  Value start = end;
  while (auto result = dyn_cast<OpResult>(start)) {
    if (auto choice = dyn_cast<scf::IfOp>(result.getOwner()))
      start = choice.thenYield().getOperand(result.getResultNumber());
    else if (auto other = dyn_cast<scf::ForOp>(result.getOwner()))
      start = other.getTiedLoopInit(result)->get();
    else
      break;
    if (auto outer = dyn_cast<BlockArgument>(start);
        outer && outer.getOwner() != block)
      if (auto around = dyn_cast<scf::ForOp>(outer.getOwner()->getParentOp());
          around && outer != around.getInductionVar())
        start = around.getTiedLoopInit(outer)->get();
  }
  return {start, end};
}

/// The block of an op of a role with its loops over steps: what a block of
/// threads does with a tile, or all that the role does if it has one tile.
static Block *getBlockOfTile(Operation *op, bool isPersistent) {
  Region *role = op->getParentRegion();
  Operation *outermost = nullptr;
  for (; !isa<WarpSpecializeOp>(role->getParentOp());
       role = role->getParentRegion())
    outermost = role->getParentOp();
  auto loop = dyn_cast_if_present<scf::ForOp>(outermost);
  return isPersistent && loop ? loop.getBody() : &role->front();
}

/// Whether the step is counted from 0 on, over all tiles.
static bool beginsAtZero(Value start) {
  if (auto argument = dyn_cast<BlockArgument>(start))
    if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
        loop && argument != loop.getInductionVar())
      start = loop.getTiedLoopInit(argument)->get();
  return getConstantIntValue(start) == 0;
}

/// The products of what is put into the ring, if all can be deferred.
static std::optional<Deferred> match(RingOp ring, bool isPersistent) {
  if (!ring.isFilledFromRegisters() || ring.getNumStages() < 2)
    return std::nullopt;
  Deferred found;
  found.ring = ring;
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
  if (found.chains.empty())
    return std::nullopt;
  constexpr size_t opsOfChain = 4, opsOnResults = 2;
  Chain &first = found.chains.front();
  auto roles = first.put->getParentOfType<WarpSpecializeOp>();
  found.results = first.putResult.getRing().getDefiningOp<RingOp>();
  if (!roles || !found.results)
    return std::nullopt;
  found.block = getBlockOfTile(first.put, isPersistent);
  found.steps = getCount(first.getStep(), found.block);
  if (!found.steps.end || !beginsAtZero(found.steps.start))
    return std::nullopt;
  for (Chain &chain : found.chains) {
    if (!(getCount(chain.getStep(), found.block) == found.steps) ||
        chain.putResult.getRing() != found.results)
      return std::nullopt;
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
      if (!isPut &&
          (operand != ofFirst || operand.getParentBlock() != found.block))
        return std::nullopt;
    }
  }
  // Another role takes all results; one may read what is put, too.
  auto findReader = [&](RingOp ring, size_t opsOfOwn) -> FailureOr<Reader> {
    Reader reader = {ring};
    size_t own = 0;
    llvm::SmallSet<unsigned, 2> readers;
    RingOpInterface any;
    for (Operation *user : ring->getUsers()) {
      unsigned role = roles.getRoleOf(user);
      if (role == roles.getRoleOf(first.put)) {
        ++own;
        continue;
      }
      readers.insert(role);
      any = cast<RingOpInterface>(user);
    }
    if (own != opsOfOwn * found.chains.size() || readers.size() > 1)
      return failure();
    if (!any)
      return reader;
    reader.block = getBlockOfTile(any, isPersistent);
    Count read = getCount(any.getStep(), reader.block);
    if (!read.end || !beginsAtZero(read.start))
      return failure();
    reader.first = read.start;
    return reader;
  };
  FailureOr<Reader> ofResults = findReader(found.results, opsOnResults),
                    ofPuts = findReader(found.ring, opsOfChain);
  if (failed(ofResults) || failed(ofPuts) || !ofResults->block)
    return std::nullopt;
  found.readers.push_back(*ofResults);
  if (ofPuts->block)
    found.readers.push_back(*ofPuts);
  return found;
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

/// Emits the product of what the last iteration puts, behind the loops and the
/// releases there of tiles that it does not read: whoever copies the next ones
/// need not wait for it.
static void emitLast(OpBuilder &b, Deferred &found, Chain &chain) {
  Location loc = found.ring.getLoc();
  auto isRead = [&](RingReleaseOp release) {
    return llvm::any_of(chain.product->getOperands(), [&](Value tile) {
      auto wait = tile.getDefiningOp<RingWaitOp>();
      return wait && wait.getRing() == release.getRing();
    });
  };
  Operation *last = found.steps.end.getDefiningOp();
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
  mapping.map(chain.getStep(), emitShifted(b, loc, found.steps.end, found.block,
                                           /*includesTile=*/false));
  b.clone(*chain.wait, mapping);
  b.clone(*chain.product, mapping);
  Value result = MmaWaitOp::create(b, loc, chain.end.getType(),
                                   mapping.lookup(chain.product.getResult()));
  mapping.map(chain.end.getResult(), result);
  b.clone(*chain.release, mapping);
  b.clone(*chain.acquireResult, mapping);
  b.clone(*chain.putResult, mapping);
}

/// Lets the role read a step later, behind the step of nothing with which each
/// tile begins.
static void shift(OpBuilder &b, Reader &reader) {
  Location loc = reader.ring.getLoc();
  // A wait and its release name the same value.
  DenseMap<std::pair<Block *, Value>, Value> nextSteps;
  Operation *first = nullptr;
  reader.block->walk([&](RingOpInterface op) {
    if (op.getRing() != reader.ring)
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
  RingWaitOp::create(b, loc, reader.ring.getResult().getType().getTile(),
                     reader.ring, start);
  RingReleaseOp::create(b, loc, reader.ring, start);
}

static void defer(Deferred &found) {
  Location loc = found.ring.getLoc();
  auto getAncestor = [&](Operation *op) {
    return found.block->findAncestorOpInBlock(*op);
  };
  auto isBefore = [&](Chain &a, Chain &b) {
    return getAncestor(a.put)->isBeforeInBlock(getAncestor(b.put));
  };
  // The first iteration finds a product of zeros, which nobody asks for.
  Chain &first = *llvm::min_element(found.chains, isBefore);
  OpBuilder b(getAncestor(first.put));
  Value start = emitShifted(b, loc, found.steps.start, found.block,
                            /*includesTile=*/false);
  Value nothing = arith::ConstantOp::create(
      b, loc, b.getZeroAttr(first.put.getX().getType()));
  RingAcquireOp::create(b, loc, found.ring, start);
  RingPutOp::create(b, loc, nothing, found.ring, start);

  emitLast(b, found, first);

  for (Chain &chain : found.chains) {
    b.setInsertionPoint(chain.acquire);
    Value step = chain.getStep();
    Value next = emitShifted(b, loc, step, found.block, /*includesTile=*/true);
    chain.acquire.getStepMutable().assign(next);
    chain.put.getStepMutable().assign(next);
    Value own = emitShifted(b, loc, step, found.block, /*includesTile=*/false);
    for (Operation *op : std::initializer_list<Operation *>{
             chain.wait, chain.release, chain.acquireResult, chain.putResult})
      op->replaceUsesOfWith(step, own);
  }

  for (Reader &reader : found.readers)
    shift(b, reader);
}

namespace {
struct DeferProducts : flash::tile::impl::DeferProductsBase<DeferProducts> {
  void runOnOperation() override {
    flash::Schedule schedule = flash::getSchedule(getOperation());
    if (!schedule.has(flash::ScheduleFeatures::DeferProducts))
      return;
    bool isPersistent = schedule.has(flash::ScheduleFeatures::Persistent);
    SmallVector<RingOp> rings;
    getOperation().walk([&](RingOp ring) { rings.push_back(ring); });
    for (RingOp ring : rings) {
      std::optional<Deferred> found = match(ring, isPersistent);
      LLVM_DEBUG(llvm::dbgs() << ring.getLoc() << ": products of the ring "
                              << (found ? "are deferred\n" : "stay\n"));
      if (found)
        defer(*found);
    }
  }
};
} // namespace
