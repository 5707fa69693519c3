//===- MakeRings.cpp - Fetches as steps of rings --------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Dialect/Tile/Utils/WideGradients.h"
#include "flash/Schedule/Schedule.h"
#include "flash/Schedule/Warpgroups.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/MapVector.h"

namespace flash::tile {
#define GEN_PASS_DEF_MAKERINGS
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash;
using namespace flash::tile;

/// Whether the op gives a tile of shared memory that a ring is to hold.
static bool isSource(Operation *op) {
  return isa<FetchOp, ShareOp, DequantizeOp>(op);
}

static Type getTileType(Operation *source) {
  return source->getResult(0).getType();
}

/// The ops of the block that give tiles, in their order.
static SmallVector<Operation *> getSources(Block &block) {
  SmallVector<Operation *> sources;
  for (Operation &op : block)
    if (isSource(&op))
      sources.push_back(&op);
  return sources;
}

/// Where a source takes its tile from, none for register tiles, its type,
/// whether the tile is finite, and in how many parts it lies.
using Kind = std::tuple<Value, Type, Attribute, int64_t>;

static Kind getKind(Operation *source) {
  auto fetch = dyn_cast<FetchOp>(source);
  if (!fetch)
    return {Value(), getTileType(source), Attribute(), 1};
  return {fetch.getSource(), getTileType(source), fetch.getFiniteAttr(),
          fetch.getNumParts()};
}

/// The kind of each source.
static SmallVector<Kind> getKinds(ArrayRef<Operation *> sources) {
  return llvm::map_to_vector(sources, getKind);
}

/// The first of the sources of each kind, as many as there are in `kinds`.
static SmallVector<Operation *> takeOfKinds(ArrayRef<Operation *> sources,
                                            ArrayRef<Kind> kinds) {
  SmallVector<Kind> left(kinds);
  SmallVector<Operation *> taken;
  for (Operation *source : sources)
    if (auto *kind = llvm::find(left, getKind(source)); kind != left.end()) {
      taken.push_back(source);
      left.erase(kind);
    }
  return taken;
}

/// What both lists of kinds have, if they have the same kinds, though one may
/// have some of them more often; nothing otherwise.
static SmallVector<Kind> getCommonKinds(ArrayRef<Kind> a, ArrayRef<Kind> b) {
  auto contains = [](ArrayRef<Kind> kinds) {
    return
        [kinds](const Kind &kind) { return llvm::is_contained(kinds, kind); };
  };
  if (!llvm::all_of(a, contains(b)) || !llvm::all_of(b, contains(a)))
    return {};
  SmallVector<Kind> left(b), common;
  for (const Kind &kind : a)
    if (auto *same = llvm::find(left, kind); same != left.end()) {
      common.push_back(kind);
      left.erase(same);
    }
  return common;
}

/// The last op of the block that uses the tile, itself or inside. A product
/// uses it until it has been waited for.
static Operation *getLastUser(Operation *source) {
  Operation *last = source;
  auto visit = [&](Operation *user) {
    Operation *ancestor = source->getBlock()->findAncestorOpInBlock(*user);
    if (last->isBeforeInBlock(ancestor))
      last = ancestor;
  };
  for (Operation *user : source->getUsers()) {
    visit(user);
    if (auto product = dyn_cast<MmaAsyncOp>(user))
      llvm::for_each(product->getUsers(), visit);
  }
  return last;
}

static Operation *getFirstUser(Operation *source) {
  Operation *first = nullptr;
  for (Operation *user : source->getUsers()) {
    Operation *ancestor = source->getBlock()->findAncestorOpInBlock(*user);
    if (!first || ancestor->isBeforeInBlock(first))
      first = ancestor;
  }
  return first;
}

/// Whether no loop of `loops` and no source of the same kind comes before the
/// last use of the source's tile: what follows may have its stage.
static bool endsBeforeNext(Operation *source, ArrayRef<scf::ForOp> loops) {
  Operation *last = getLastUser(source);
  for (Operation *op = source->getNextNode(); op; op = op->getNextNode()) {
    if (last->isBeforeInBlock(op))
      return true;
    if (llvm::is_contained(loops, op) ||
        (isSource(op) && getKind(op) == getKind(source)))
      return false;
  }
  return true;
}

namespace {
/// Where rings go on: by one step in each iteration of a loop, or by one step
/// of sources that stand in the block, such as those that a loop of one
/// iteration leaves when it is inlined.
struct Site {
  scf::ForOp loop;
  SmallVector<Operation *> sources;

  Operation *getStart() { return loop ? loop.getOperation() : sources.front(); }
};
} // namespace

/// The sites of a block in their order: `loops`, and steps of sources of the
/// given kinds that stand beside them. Without these steps, if they are not all
/// complete.
static SmallVector<Site> getSites(Block &block, ArrayRef<Kind> kinds,
                                  ArrayRef<scf::ForOp> loops) {
  SmallVector<Site> sites, ofLoops;
  for (scf::ForOp loop : loops)
    ofLoops.push_back({loop, takeOfKinds(getSources(*loop.getBody()), kinds)});
  SmallVector<Operation *> step;
  auto *nextLoop = ofLoops.begin();
  for (Operation &op : block) {
    if (nextLoop != ofLoops.end() && &op == nextLoop->loop) {
      if (!step.empty())
        return ofLoops;
      sites.push_back(*nextLoop++);
    } else if (isSource(&op) && llvm::is_contained(kinds, getKind(&op)) &&
               endsBeforeNext(&op, loops)) {
      step.push_back(&op);
      if (step.size() < kinds.size())
        continue;
      SmallVector<Kind> found = getKinds(step);
      if (!std::is_permutation(found.begin(), found.end(), kinds.begin()))
        return ofLoops;
      sites.push_back({{}, std::move(step)});
      step.clear();
    }
  }
  return step.empty() ? sites : ofLoops;
}

/// The steps of sources of the block that follow one another, none if no source
/// has another of its kind behind it.
static SmallVector<Site> getStepsInBlock(Block &block) {
  llvm::MapVector<Kind, int> counts;
  for (Operation *source : getSources(block))
    if (endsBeforeNext(source, {}))
      ++counts[getKind(source)];
  SmallVector<Kind> kinds;
  for (auto [kind, count] : counts)
    if (count > 1)
      kinds.push_back(kind);
  return getSites(block, kinds, {});
}

/// Whether the source's loop sums up wide gradients.
static bool isBesideWideGradients(Operation *source) {
  auto loop = dyn_cast<scf::ForOp>(source->getParentOp());
  return loop && sumsUpWideGradients(loop);
}

/// The tile as it is, if it is fetched, too; else null.
static FetchOp getUnchanged(FetchOp finite) {
  for (auto other : finite->getBlock()->getOps<FetchOp>())
    if (!other.getFinite() &&
        llvm::equal(other->getOperands(), finite->getOperands()))
      return other;
  return {};
}

/// The product whose result is shared, if it reads a tile without NaN and
/// infinities for which there is no room beside wide gradients; else null.
static MmaAsyncOp getProductOfFinite(Operation *source) {
  auto share = dyn_cast<ShareOp>(source);
  auto end = share ? share.getX().getDefiningOp<MmaWaitOp>() : MmaWaitOp();
  auto product =
      end ? end.getPending().getDefiningOp<MmaAsyncOp>() : MmaAsyncOp();
  auto finite = product ? product.getB().getDefiningOp<FetchOp>() : FetchOp();
  bool isCopied = finite && finite.getFinite() && getUnchanged(finite) &&
                  isBesideWideGradients(source);
  return isCopied ? product : MmaAsyncOp();
}

/// Acquires the stage of the product's result before the product, which reads
/// the tile without NaN and infinities there, if the tile has any.
static void acquireForCopy(MmaAsyncOp product, Value ring, Value step) {
  OpBuilder b(product);
  Location loc = product.getLoc();
  auto finite = product.getB().getDefiningOp<FetchOp>();
  Value tile = getUnchanged(finite);
  RingAcquireOp::create(b, loc, ring, step);
  Value isFinite = IsFiniteOp::create(b, loc, b.getI1Type(), tile,
                                      /*warps=*/IntegerAttr());
  product.getBMutable().assign(RingCopyFiniteOp::create(
      b, loc, tile.getType(), tile, isFinite, ring, step));
  if (finite->use_empty())
    finite.erase();
}

/// Replaces what gives a tile by step `step` of `ring`.
static void expandSource(Operation *source, Value ring, Value step) {
  Location loc = source->getLoc();
  Operation *last = getLastUser(source), *first = getFirstUser(source);
  OpBuilder b(source);
  if (MmaAsyncOp product = getProductOfFinite(source))
    acquireForCopy(product, ring, step);
  else
    RingAcquireOp::create(b, loc, ring, step);
  if (auto share = dyn_cast<ShareOp>(source)) {
    RingPutOp::create(b, loc, share.getX(), ring, step);
  } else if (auto dequantize = dyn_cast<DequantizeOp>(source)) {
    auto put =
        RingDequantizeOp::create(b, loc, dequantize.getTile(), ring, step);
    put.getScale().takeBody(dequantize.getScale());
  } else {
    auto fetch = cast<FetchOp>(source);
    for (int64_t part = 0; part < fetch.getNumParts(); ++part)
      CopyAsyncOp::create(
          b, loc, fetch.getSource(), fetch.getIndicesOfPart(part),
          fetch.getRowsOfPart(part), ring, step,
          fetch.getParts() ? arith::ConstantIndexOp::create(b, loc, part)
                           : Value(),
          fetch.getToEnd(), fetch.getPackedAttr());
  }
  b.setInsertionPoint(first);
  Value tile = RingWaitOp::create(b, loc, getTileType(source), ring, step);
  if (std::get<Attribute>(getKind(source)))
    MakeFiniteOp::create(b, loc, tile, /*copy=*/Value(),
                         /*warps=*/IntegerAttr());
  b.setInsertionPointAfter(last);
  RingReleaseOp::create(b, loc, ring, step);
  source->getResult(0).replaceAllUsesWith(tile);
  source->erase();
}

/// Makes `loop` carry the number of the step, from `first` on; returns the loop
/// that replaces it.
static scf::ForOp addStepCounter(scf::ForOp loop, Value first) {
  IRRewriter rewriter(loop.getContext());
  rewriter.setInsertionPoint(loop);
  auto next = [](OpBuilder &b, Location loc, ArrayRef<BlockArgument> args) {
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    return SmallVector<Value>{
        arith::AddIOp::create(b, loc, args.back(), one).getResult()};
  };
  return cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, first, /*replaceInitOperandUsesInLoop=*/false, next));
}

/// How many loops there are around the op.
static int64_t getDepth(Operation *op) {
  int64_t depth = 0;
  while ((op = op->getParentOp()))
    depth += isa<LoopLikeOpInterface>(op);
  return depth;
}

/// Makes `choice` give one more result: in each branch the one of `values` that
/// is computed there, or `otherwise` if none is; returns that result.
static Value addResult(scf::IfOp choice, ArrayRef<Value> values,
                       Value otherwise) {
  OpBuilder b(choice);
  SmallVector<Type> types(choice.getResultTypes());
  types.push_back(otherwise.getType());
  auto copy =
      scf::IfOp::create(b, choice.getLoc(), types, choice.getCondition());
  for (auto [from, to] :
       llvm::zip_equal(choice->getRegions(), copy->getRegions())) {
    to.takeBody(from);
    if (to.empty()) {
      OpBuilder inBranch = OpBuilder::atBlockEnd(&to.emplaceBlock());
      scf::YieldOp::create(inBranch, choice.getLoc());
    }
    Value ofBranch = otherwise;
    for (Value value : values)
      if (value.getParentRegion() == &to)
        ofBranch = value;
    to.front().getTerminator()->insertOperands(choice.getNumResults(),
                                               ofBranch);
  }
  choice->replaceAllUsesWith(copy->getResults().drop_back());
  choice.erase();
  return copy->getResults().back();
}

/// How many choices there are around the op that no loop is between.
static int64_t countChoices(Operation *op) {
  int64_t count = 0;
  while ((op = op->getParentOp()) && isa<scf::IfOp>(op))
    ++count;
  return count;
}

/// Sources of one kind in different branches of the choices around one of them:
/// at most one of these is reached each time.
static SmallVector<Operation *> getAlternatives(Operation *source) {
  Operation *outermost = source;
  while (isa<scf::IfOp>(outermost->getParentOp()))
    outermost = outermost->getParentOp();
  SmallVector<Operation *> found;
  outermost->walk([&](Operation *op) {
    if (isSource(op) && getKind(op) == getKind(source) &&
        getDepth(op) == getDepth(source) &&
        llvm::all_of(found, [&](Operation *other) {
          return insideMutuallyExclusiveRegions(op, other);
        }))
      found.push_back(op);
  });
  return found;
}

/// The one of `steps` whose branch is taken, behind all choices that no loop is
/// around; `otherwise` where none is taken.
static Value joinBranches(SmallVector<Value> steps, Value otherwise) {
  auto countOf = [](Value step) { return countChoices(step.getDefiningOp()); };
  while (true) {
    Value innermost = *llvm::max_element(steps, [&](Value lhs, Value rhs) {
      return countOf(lhs) < countOf(rhs);
    });
    if (countOf(innermost) == 0)
      return innermost;
    auto choice = cast<scf::IfOp>(innermost.getDefiningOp()->getParentOp());
    Value joined = addResult(choice, steps, otherwise);
    llvm::erase_if(steps, [&](Value step) {
      return joined.getDefiningOp()->isProperAncestor(step.getDefiningOp());
    });
    steps.push_back(joined);
  }
}

/// Whether the loop's induction variable is the number of its iteration and of
/// the step, as in a loop over tiles that no other loop is around.
static bool isCounter(scf::ForOp loop) {
  return getConstantIntValue(loop.getLowerBound()) == 0 &&
         getConstantIntValue(loop.getStep()) == 1 &&
         !loop->getParentOfType<scf::ForOp>();
}

/// Whether a product, whose result is shared, is all that reads the tile,
/// beside a role that adds up its diagonals.
static bool isOfSharedProduct(Operation *source) {
  auto getOnlyUser = [](Operation *op) -> Operation * {
    if (!op)
      return nullptr;
    SmallVector<Operation *> users(op->getUsers());
    llvm::erase_if(users, llvm::IsaPred<StoreDiagonalsOp>);
    return users.size() == 1 ? users.front() : nullptr;
  };
  auto product = dyn_cast_if_present<MmaAsyncOp>(getOnlyUser(source));
  auto end = dyn_cast_if_present<MmaWaitOp>(getOnlyUser(product));
  return product && !product.getC() &&
         isa_and_present<ShareOp>(getOnlyUser(end));
}

namespace {
struct MakeRings : flash::tile::impl::MakeRingsBase<MakeRings> {
  int64_t stages = 1, queryStages = 1;
  bool isPersistent = false, takesPairs = false;

  /// A ring for tiles like the source's, at the kernel's start. One stage is
  /// enough for what threads put there themselves, but for factors of products
  /// that are shared (Warpgroups.h).
  Value createRing(Operation *source, int64_t stages) {
    OpBuilder b = OpBuilder::atBlockBegin(&getOperation().getBody().front());
    if (isa<DequantizeOp>(source))
      stages = 1;
    if (isa<ShareOp>(source))
      stages = isOfSharedProduct(source)
                   ? getStagesOfSharedProducts(isBesideWideGradients(source))
                   : 1;
    auto type = RingType::get(&getContext(), stages,
                              cast<SmemType>(getTileType(source)));
    auto ring = RingOp::create(b, source->getLoc(), type);
    if (auto fetch = dyn_cast<FetchOp>(source))
      ring.setCopiesAttr(fetch.getPartsAttr());
    return ring;
  }

  /// Sites with sources of the same kinds: of a block, one after the other, or
  /// of branches, one of them at most in each iteration.
  void expandSites(MutableArrayRef<Site> sites, int64_t stages,
                   bool areBranches = false) {
    // By kind, and how many such sources of the site there were before: a
    // product of a matrix with itself has two.
    llvm::MapVector<std::pair<Kind, int>, Value> rings;
    Operation *outermost = sites.front().getStart();
    Location loc = outermost->getLoc();
    while (isa<scf::IfOp>(outermost->getParentOp()))
      outermost = outermost->getParentOp();
    OpBuilder b(outermost);
    Value start = arith::ConstantIndexOp::create(b, loc, 0);
    Value step = start;
    SmallVector<Value> ends;
    bool countsSteps = sites.size() == 1 && sites.front().loop &&
                       isCounter(sites.front().loop);
    for (Site &site : sites) {
      if (areBranches)
        step = start;
      Value number = step;
      if (countsSteps) {
        number = site.loop.getInductionVar();
      } else if (site.loop) {
        scf::ForOp loop = addStepCounter(site.loop, step);
        step = loop.getResults().back();
        number = loop.getRegionIterArgs().back();
      } else {
        OpBuilder inStep(site.getStart());
        Value one = arith::ConstantIndexOp::create(inStep, loc, 1);
        step = arith::AddIOp::create(inStep, loc, step, one);
      }
      llvm::DenseMap<Kind, int> seen;
      for (Operation *source : site.sources) {
        Kind kind = getKind(source);
        Value &ring = rings[{kind, seen[kind]++}];
        if (!ring)
          ring = createRing(source, stages);
        expandSource(source, ring, number);
      }
      ends.push_back(step);
    }
    if (!areBranches)
      ends = {step};
    // Loops around them, and around choices whether they are reached, go on
    // counting where they stopped before.
    while (auto outer =
               ends.front().getDefiningOp()->getParentOfType<scf::ForOp>()) {
      step = joinBranches(ends, start);
      IRRewriter rewriter(&getContext());
      rewriter.setInsertionPoint(outer);
      Value zero = arith::ConstantIndexOp::create(rewriter, outer.getLoc(), 0);
      auto yieldStep = [&](OpBuilder &, Location,
                           ArrayRef<BlockArgument> args) {
        start.replaceAllUsesWith(args.back());
        return SmallVector<Value>{step};
      };
      LoopLikeOpInterface counting = *outer.replaceWithAdditionalYields(
          rewriter, zero, /*replaceInitOperandUsesInLoop=*/false, yieldStep);
      start = zero;
      ends = {counting->getResults().back()};
    }
  }

  /// The first source with the most loops around it; null if none is left.
  Operation *findInnermost() {
    Operation *innermost = nullptr;
    getOperation().walk([&](Operation *op) {
      if (isSource(op) && (!innermost || getDepth(op) > getDepth(innermost)))
        innermost = op;
    });
    return innermost;
  }

  /// Expands sources of the block of `source` that follow one another. If there
  /// are none, expands the source and what shares rings with it: sources in its
  /// loop, in neighbouring loops that have the same sources, in steps beside
  /// these loops, or in other branches. A ring of some loops only would lack
  /// the steps of the others, so loops with other sources have rings of their
  /// own.
  void expand(Operation *source) {
    Block &block = *source->getBlock();
    auto loop = dyn_cast<scf::ForOp>(source->getParentOp());
    bool isOverTiles = loop && isPersistent && getDepth(loop) == 0;
    if (!loop || isOverTiles)
      if (SmallVector<Site> steps = getStepsInBlock(block); !steps.empty())
        return expandSites(steps, stages);
    if (getDepth(source) == 0) {
      OpBuilder b(source);
      Value zero = arith::ConstantIndexOp::create(b, source->getLoc(), 0);
      return expandSource(source, createRing(source, 1), zero);
    }
    if (!loop) {
      auto sites =
          llvm::map_to_vector(getAlternatives(source), [](Operation *branch) {
            return Site{{}, {branch}};
          });
      return expandSites(sites, stages, /*areBranches=*/true);
    }
    SmallVector<Kind> kinds = getKinds(getSources(*loop.getBody()));
    // A loop over pairs of tiles has further rings for the second ones, beside
    // those that it shares with a loop over a last tile.
    if (takesPairs)
      for (auto other : loop->getBlock()->getOps<scf::ForOp>())
        if (SmallVector<Kind> common =
                getCommonKinds(kinds, getKinds(getSources(*other.getBody())));
            !common.empty())
          kinds = common;
    SmallVector<scf::ForOp> loops;
    // A tile that a persistent block takes is work of its own, with or without
    // loops.
    bool isInnermost = !isOverTiles;
    for (auto other : loop->getBlock()->getOps<scf::ForOp>()) {
      SmallVector<Kind> others = getKinds(getSources(*other.getBody()));
      if (takesPairs)
        others = getCommonKinds(kinds, others);
      if (!std::is_permutation(kinds.begin(), kinds.end(), others.begin(),
                               others.end()))
        continue;
      loops.push_back(other);
      other.getBody()->walk([&](RingOpInterface op) {
        isInnermost &= op->getParentOfType<scf::ForOp>() == other;
      });
    }
    SmallVector<Site> sites = getSites(*loop->getBlock(), kinds, loops);
    expandSites(sites, isInnermost ? stages : queryStages);
  }

  void runOnOperation() override {
    flash::Schedule schedule = flash::getSchedule(getOperation());
    stages = schedule.stages.value_or(1);
    // Each of two tiles of a step has half of the stages.
    takesPairs = schedule.alternatesTiles();
    if (takesPairs)
      stages = std::max<int64_t>(1, stages / 2);
    queryStages = schedule.queryStages.value_or(1);
    isPersistent = schedule.has(flash::ScheduleFeatures::Persistent);
    getOperation().walk([](Operation *op) {
      if (isSource(op) && op->use_empty())
        op->erase();
    });
    while (Operation *source = findInnermost())
      expand(source);
  }
};
} // namespace
