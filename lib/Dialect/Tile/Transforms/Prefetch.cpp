//===- Prefetch.cpp - Start copies as early as their stages are free ------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Debug.h"

namespace flash::tile {
#define GEN_PASS_DEF_PREFETCH
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

#define DEBUG_TYPE "tile-prefetch"

using namespace mlir;
using namespace flash::tile;

namespace {
/// What one loop does with one ring in each iteration.
struct RingUse {
  RingOpInterface acquire;
  /// The copy of each part of a stage.
  SmallVector<CopyAsyncOp, 1> copies;
  RingWaitOp wait;
  RingOpInterface release;

  bool isComplete() { return acquire && !copies.empty() && wait && release; }
};

/// One loop of a chain; rings are in the order of their waits.
struct Loop {
  scf::ForOp op;
  llvm::MapVector<Value, RingUse> rings;

  Value getStep() { return op.getRegionIterArgs().back(); }
};

/// Where the copy to a ring goes in the body of a loop.
struct CopyPoint {
  Operation *after;
  int64_t ahead; ///< How many steps ahead it is.
};

/// Loops over the same rings that each count steps on from the one before.
class Chain {
public:
  explicit Chain(Loop first) { loops.push_back(std::move(first)); }
  /// Adds `loop` if it continues the chain.
  bool append(Loop &loop);
  /// Whether nothing else copies to the rings, and copies of any step can be
  /// made anywhere: they depend on nothing in a loop but its induction
  /// variable, which is the row or says where to read it, or the page.
  bool canPrefetch();
  void prefetch();
  Location getLoc() { return loops.front().op.getLoc(); }

private:
  /// A tile that a copy may be started for ahead of its loop's iteration.
  struct Tile {
    Value iteration; ///< The induction variable, most often the row.
    Value rows;      ///< How many of its rows exist; null: all.
    Value exists;    ///< Whether a loop has an iteration for it.
    /// `exists` for each of the loops from the copy's own on, by itself.
    SmallVector<Value> existsIn = {};
  };

  /// Whether what copies need is computed with the copy, since it may be read
  /// from memory, which only holds it for tiles that exist.
  bool readsRows();
  /// Emits how many rows of the tile, or of a part of it, exist, where that is
  /// so; null: all.
  Value emitRows(OpBuilder &b, size_t index, Value ring, size_t part,
                 const Tile &tile);

  /// The op before which the copies of the first steps are inserted.
  Operation *getStart();
  /// Emits `jumps`.
  void emitJumps(OpBuilder &b);
  /// What the loop `index` or one behind it copies to `ring` in the iteration
  /// that would be `iteration` if the loop went on without end.
  Tile emitTile(OpBuilder &b, size_t index, Value ring, Value iteration);
  /// Emits the copies of `tile`, of the loop `index` or one behind it, to
  /// `ring` as step `step`, if there is such a tile.
  void emitCopies(OpBuilder &b, size_t index, Value ring, const Tile &tile,
                  Value step);

  SmallVector<Loop> loops;
  /// What to add to a row behind the end of each loop but the last for the row
  /// of the next loop: 0 where that starts at this end.
  SmallVector<Value> jumps;
};
} // namespace

/// Whether a copy fills each stage of the op's ring, or each of its parts. What
/// a loop over the parts fills, or registers, stays where it is.
static bool isFilledByCopies(RingOpInterface op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  return ring && !ring.isFilledFromRegisters() &&
         llvm::all_of(ring->getUsers(), [](Operation *user) {
           auto copy = dyn_cast<CopyAsyncOp>(user);
           return !copy || !copy.getPart() ||
                  getConstantIntValue(copy.getPart());
         });
}

static std::optional<Loop> analyze(scf::ForOp op) {
  Loop loop = {op, {}};
  for (auto wait : op.getOps<RingWaitOp>())
    if (isFilledByCopies(wait))
      loop.rings[wait.getRing()].wait = wait;
  for (auto inner : op.getOps<RingOpInterface>()) {
    if (!isFilledByCopies(inner))
      continue;
    RingUse &use = loop.rings[inner.getRing()];
    switch (inner.getRingEffect()) {
    case RingEffect::Acquire:
      use.acquire = inner;
      break;
    case RingEffect::Fill:
      use.copies.push_back(cast<CopyAsyncOp>(inner.getOperation()));
      break;
    case RingEffect::Release:
      use.release = inner;
      break;
    default:
      break;
    }
  }
  if (loop.rings.empty() || op.getNumRegionIterArgs() == 0)
    return std::nullopt;
  for (auto &[ring, use] : loop.rings)
    if (!use.isComplete() || llvm::any_of(use.copies, [&](CopyAsyncOp copy) {
          return copy.getStep() != loop.getStep();
        }))
      return std::nullopt;
  return loop;
}

/// The wait for what a tile is dequantized to, which follows the tile's
/// release; null if it is not dequantized.
static RingWaitOp getWaitForDequantized(RingUse &use) {
  for (Operation *user : use.wait.getTile().getUsers()) {
    auto dequantize = dyn_cast<RingDequantizeOp>(user);
    if (!dequantize || dequantize->getBlock() != use.release->getBlock())
      continue;
    for (Operation *other : dequantize.getRing().getUsers())
      if (auto wait = dyn_cast<RingWaitOp>(other);
          wait && wait->getBlock() == use.release->getBlock() &&
          use.release->isBeforeInBlock(wait))
        return wait;
  }
  return {};
}

/// Where a copy's stage has just become free, and all threads meet anyway:
/// behind the wait for what it was dequantized to, or the first wait for
/// another ring that follows the release, in this iteration or the next, or
/// else behind the release.
static CopyPoint getCopyPoint(Loop &loop, Value ring) {
  RingUse &use = loop.rings[ring];
  int64_t stages = cast<RingType>(ring.getType()).getStages();
  if (RingWaitOp wait = getWaitForDequantized(use))
    return {wait, stages};
  for (auto &[other, otherUse] : loop.rings)
    if (use.release->isBeforeInBlock(otherUse.wait))
      return {otherUse.wait, stages};
  auto &[first, firstUse] = loop.rings.front();
  if (first != ring || stages > 1)
    return {firstUse.wait, stages - 1};
  return {use.release, stages};
}

/// Whether the values of two loops are computed alike from their induction
/// variables.
static bool areAlike(Value lhs, scf::ForOp lhsLoop, Value rhs,
                     scf::ForOp rhsLoop) {
  if (lhs == rhs ||
      (lhs == lhsLoop.getInductionVar() && rhs == rhsLoop.getInductionVar()))
    return true;
  auto lhsResult = dyn_cast<OpResult>(lhs), rhsResult = dyn_cast<OpResult>(rhs);
  if (!lhsResult || !rhsResult || lhsLoop.isDefinedOutsideOfLoop(lhs) ||
      rhsLoop.isDefinedOutsideOfLoop(rhs) ||
      lhsResult.getResultNumber() != rhsResult.getResultNumber())
    return false;
  return OperationEquivalence::isEquivalentTo(
      lhsResult.getOwner(), rhsResult.getOwner(),
      [&](Value x, Value y) {
        return success(areAlike(x, lhsLoop, y, rhsLoop));
      },
      /*markEquivalent=*/nullptr, OperationEquivalence::IgnoreLocations);
}

bool Chain::append(Loop &loop) {
  Loop &last = loops.back();
  if (loop.op->getBlock() != last.op->getBlock() ||
      loop.op.getStep() != last.op.getStep() ||
      loop.op.getInitArgs().back() != last.op.getResults().back() ||
      loop.rings.size() != last.rings.size())
    return false;
  for (auto [mine, theirs] : llvm::zip_equal(loop.rings, last.rings)) {
    if (mine.first != theirs.first ||
        getCopyPoint(loop, mine.first).ahead !=
            getCopyPoint(last, mine.first).ahead ||
        mine.second.copies.size() != theirs.second.copies.size())
      return false;
    for (auto [copy, before] :
         llvm::zip_equal(mine.second.copies, theirs.second.copies))
      if (copy.getSource() != before.getSource() ||
          copy.getPacked() != before.getPacked() ||
          (copy.getPart() &&
           !isEqualConstantIntOrValue(copy.getPart(), before.getPart())) ||
          !llvm::equal(copy.getIndices(), before.getIndices(),
                       [&](Value index, Value other) {
                         return areAlike(index, loop.op, other, last.op);
                       }))
        return false;
  }
  loops.push_back(std::move(loop));
  return true;
}

/// Whether the op reads memory that the kernel writes nowhere.
static bool readsConstantMemory(Operation *op) {
  auto load = dyn_cast<memref::LoadOp>(op);
  return load && isa<BlockArgument>(load.getMemRef()) &&
         llvm::all_of(load.getMemRef().getUsers(),
                      llvm::IsaPred<memref::LoadOp, memref::DimOp>);
}

/// Whether `value` can be computed anew for another iteration of the loop: of
/// any, or with `mayRead` of one that exists, since it may read memory there.
static bool dependsOnIterationOnly(Value value, scf::ForOp loop, bool mayRead) {
  if (value == loop.getInductionVar() || loop.isDefinedOutsideOfLoop(value))
    return true;
  Operation *op = value.getDefiningOp();
  return op && op->getNumRegions() == 0 &&
         (isPure(op) || (mayRead && readsConstantMemory(op))) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return dependsOnIterationOnly(operand, loop, mayRead);
         });
}

/// Whether `value` is known at `before`, or can be computed there. Divisions
/// may be among what computes it: it is in any case.
static bool canHoist(Value value, Operation *before) {
  Operation *op = value.getDefiningOp();
  return !op || op->getBlock() != before->getBlock() ||
         op->isBeforeInBlock(before) ||
         (isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
          llvm::all_of(op->getOperands(), [&](Value operand) {
            return canHoist(operand, before);
          }));
}

Operation *Chain::getStart() {
  Operation *start = loops.front().op;
  for (auto wait : start->getBlock()->getOps<RingWaitOp>()) {
    // The copies of the first steps go before anything is waited for.
    if (wait->isBeforeInBlock(start))
      start = wait;
    break;
  }
  return start;
}

bool Chain::canPrefetch() {
  Operation *start = getStart();
  llvm::SmallPtrSet<Operation *, 8> own;
  for (Loop &loop : loops) {
    scf::ForOp op = loop.op;
    if (!canHoist(op.getLowerBound(), start) ||
        !canHoist(op.getUpperBound(), start))
      return false;
    for (auto &[ring, use] : loop.rings)
      for (CopyAsyncOp copy : use.copies) {
        own.insert(copy);
        SmallVector<Value> needed(copy.getIndices());
        if (copy.getRows())
          needed.push_back(copy.getRows());
        if (!llvm::all_of(needed, [&](Value value) {
              return dependsOnIterationOnly(value, op, /*mayRead=*/true);
            }))
          return false;
      }
  }
  // The first steps would be copied once for each chain.
  for (auto &[ring, use] : loops.front().rings)
    for (Operation *user : ring.getUsers())
      if (isa<CopyAsyncOp>(user) && !own.contains(user))
        return false;
  return true;
}

/// Copies the ops of the loop that compute `value` from its induction variable.
static Value cloneFor(OpBuilder &b, Value value, scf::ForOp loop,
                      IRMapping &mapping) {
  if (mapping.contains(value) || loop.isDefinedOutsideOfLoop(value))
    return mapping.lookupOrDefault(value);
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    cloneFor(b, operand, loop, mapping);
  b.clone(*op, mapping);
  return mapping.lookup(value);
}

bool Chain::readsRows() {
  return llvm::any_of(loops, [](Loop &loop) {
    return llvm::any_of(loop.rings, [&](auto &entry) {
      CopyAsyncOp copy = entry.second.copies.front();
      return copy.getIndices().back() != loop.op.getInductionVar() ||
             !llvm::all_of(copy.getIndices().drop_back(),
                           [&](Value index) {
                             return loop.op.isDefinedOutsideOfLoop(index);
                           }) ||
             (copy.getRows() && !dependsOnIterationOnly(copy.getRows(), loop.op,
                                                        /*mayRead=*/false));
    });
  });
}

Chain::Tile Chain::emitTile(OpBuilder &b, size_t index, Value ring,
                            Value iteration) {
  Loop &loop = loops[index];
  CopyAsyncOp copy = loop.rings[ring].copies.front();
  Location loc = copy.getLoc();
  bool hasRows = !readsRows();
  Tile tile = {iteration, hasRows ? Value(copy.getRows()) : Value(), {}};
  if (tile.rows) {
    IRMapping mapping;
    mapping.map(loop.op.getInductionVar(), iteration);
    tile.rows = cloneFor(b, tile.rows, loop.op, mapping);
  }
  tile.exists = b.createOrFold<arith::CmpIOp>(
      loc, arith::CmpIPredicate::slt, iteration, loop.op.getUpperBound());
  tile.existsIn.push_back(tile.exists);
  if (index + 1 == loops.size())
    return tile;
  Tile next =
      emitTile(b, index + 1, ring,
               b.createOrFold<arith::AddIOp>(loc, iteration, jumps[index]));
  llvm::append_range(tile.existsIn, next.existsIn);
  if (tile.rows || next.rows) {
    Value all = arith::ConstantIndexOp::create(
        b, loc, copy.getRing().getType().getTile().getRows());
    tile.rows = b.createOrFold<arith::SelectOp>(loc, tile.exists,
                                                tile.rows ? tile.rows : all,
                                                next.rows ? next.rows : all);
  }
  tile.iteration = b.createOrFold<arith::SelectOp>(
      loc, tile.exists, tile.iteration, next.iteration);
  tile.exists = b.createOrFold<arith::OrIOp>(loc, tile.exists, next.exists);
  return tile;
}

Value Chain::emitRows(OpBuilder &b, size_t index, Value ring, size_t part,
                      const Tile &tile) {
  CopyAsyncOp copy = loops[index].rings[ring].copies[part];
  Value rows, existing = copy.getRows();
  if (existing) {
    IRMapping mapping;
    mapping.map(loops[index].op.getInductionVar(), tile.iteration);
    existing = cloneFor(b, existing, loops[index].op, mapping);
  }
  size_t numBehind = tile.existsIn.size();
  if (numBehind > 1)
    rows = emitRows(b, index + 1, ring, part,
                    {tile.iteration,
                     {},
                     {},
                     SmallVector<Value>(llvm::drop_begin(tile.existsIn))});
  if (numBehind <= 1 || (!existing && !rows))
    return existing;
  Value all = arith::ConstantIndexOp::create(
      b, copy.getLoc(), ring.getDefiningOp<RingOp>().getRowsOfCopy());
  return b.createOrFold<arith::SelectOp>(copy.getLoc(), tile.existsIn.front(),
                                         existing ? existing : all,
                                         rows ? rows : all);
}

void Chain::emitCopies(OpBuilder &b, size_t index, Value ring, const Tile &tile,
                       Value step) {
  scf::ForOp loop = loops[index].op;
  MutableArrayRef<CopyAsyncOp> copies = loops[index].rings[ring].copies;
  Location loc = copies.front().getLoc();
  OpBuilder::InsertionGuard insertion(b);
  if (tile.exists)
    b.setInsertionPointToStart(
        scf::IfOp::create(b, loc, tile.exists).thenBlock());
  RingAcquireOp::create(b, loc, ring, step);
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), tile.iteration);
  bool reads = readsRows();
  for (auto [number, copy] : llvm::enumerate(copies)) {
    SmallVector<Value> indices =
        llvm::map_to_vector(copy.getIndices(), [&](Value index) {
          return cloneFor(b, index, loop, mapping);
        });
    Value rows = reads ? emitRows(b, index, ring, number, tile) : tile.rows;
    Value part = copy.getPart();
    if (part)
      part = cloneFor(b, part, loop, mapping);
    CopyAsyncOp::create(b, loc, copy.getSource(), indices, rows, ring, step,
                        part, copy.getToEnd(), copy.getPackedAttr());
  }
}

/// Moves what `[before, end)` computes from values known earlier to before it:
/// bounds of later loops, which say where copies end.
static void hoistScalars(Operation *before, Operation *end) {
  for (Operation *op = before, *next; op != end; op = next) {
    next = op->getNextNode();
    if (op != before && op->getNumResults() > 0 &&
        canHoist(op->getResult(0), before))
      op->moveBefore(before);
  }
}

void Chain::emitJumps(OpBuilder &b) {
  for (size_t i = 0; i + 1 < loops.size(); ++i) {
    scf::ForOp loop = loops[i].op;
    Location loc = loop.getLoc();
    Value distance = b.createOrFold<arith::SubIOp>(loc, loop.getUpperBound(),
                                                   loop.getLowerBound());
    Value steps =
        b.createOrFold<arith::CeilDivSIOp>(loc, distance, loop.getStep());
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    steps = b.createOrFold<arith::MaxSIOp>(loc, steps, zero);
    Value end = b.createOrFold<arith::AddIOp>(
        loc, loop.getLowerBound(),
        b.createOrFold<arith::MulIOp>(loc, steps, loop.getStep()));
    jumps.push_back(b.createOrFold<arith::SubIOp>(
        loc, loops[i + 1].op.getLowerBound(), end));
  }
}

void Chain::prefetch() {
  scf::ForOp first = loops.front().op;
  Location loc = first.getLoc();
  Operation *start = getStart();
  hoistScalars(start, loops.back().op);
  OpBuilder b(start);
  emitJumps(b);
  int64_t furthest = 0;
  for (auto &[ring, use] : loops.front().rings)
    furthest = std::max(furthest, getCopyPoint(loops.front(), ring).ahead);
  Value row = first.getLowerBound(), firstStep = first.getInitArgs().back();
  for (int64_t step = 0; step < furthest; ++step) {
    Value offset = arith::ConstantIndexOp::create(b, loc, step);
    Value number = b.createOrFold<arith::AddIOp>(loc, firstStep, offset);
    for (auto &[ring, use] : loops.front().rings)
      if (step < getCopyPoint(loops.front(), ring).ahead)
        emitCopies(b, 0, ring, emitTile(b, 0, ring, row), number);
    row = b.createOrFold<arith::AddIOp>(loc, row, first.getStep());
  }

  // The last one of several copies behind the same op is inserted first: they
  // are in the order of the copies before the loop, so that a wait knows which
  // are younger.
  for (size_t i = 0; i < loops.size(); ++i)
    for (auto &[ring, use] : llvm::reverse(loops[i].rings)) {
      Loop &loop = loops[i];
      CopyPoint point = getCopyPoint(loop, ring);
      b.setInsertionPointAfter(point.after);
      Value row = loop.op.getInductionVar(), step = loop.getStep();
      if (point.ahead == 0) {
        // This tile itself: what its copy needs may stand behind the point.
        IRMapping mapping;
        mapping.map(row, row);
        Value rows = readsRows() ? Value() : use.copies.front().getRows();
        emitCopies(
            b, i, ring,
            {row, rows ? cloneFor(b, rows, loop.op, mapping) : Value(), {}},
            step);
        continue;
      }
      Value ahead = arith::ConstantIndexOp::create(b, loc, point.ahead);
      Value distance =
          b.createOrFold<arith::MulIOp>(loc, ahead, first.getStep());
      row = arith::AddIOp::create(b, loc, row, distance);
      step = arith::AddIOp::create(b, loc, step, ahead);
      emitCopies(b, i, ring, emitTile(b, i, ring, row), step);
    }
  for (Loop &loop : loops)
    for (auto &[ring, use] : loop.rings) {
      use.acquire->erase();
      for (CopyAsyncOp copy : use.copies)
        copy.erase();
    }
}

namespace {
struct Prefetch : flash::tile::impl::PrefetchBase<Prefetch> {
  void runOnOperation() override {
    SmallVector<Chain> chains;
    getOperation().walk<WalkOrder::PreOrder>([&](scf::ForOp op) {
      std::optional<Loop> loop = analyze(op);
      // Loops over other rings may be between the loops of a chain.
      if (loop && llvm::none_of(chains, [&](Chain &chain) {
            return chain.append(*loop);
          }))
        chains.emplace_back(std::move(*loop));
    });
    for (Chain &chain : chains)
      if (chain.canPrefetch())
        chain.prefetch();
      else
        LLVM_DEBUG(llvm::dbgs() << chain.getLoc() << ": copies stay\n");
  }
};
} // namespace
