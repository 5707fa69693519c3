//===- SkipRows.cpp - Warpgroups without rows leave out products ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyRoles.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Schedule/Schedule.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/Debug.h"

namespace flash::tile {
#define GEN_PASS_DEF_SKIPROWS
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

#define DEBUG_TYPE "tile-skip-rows"

using namespace mlir;
using namespace flash::tile;

/// Whether a warpgroup without rows carries the op out, too: other warps wait
/// for it, or its result says which ops these are.
static bool keepsUp(Operation *op) {
  return isa<RingWaitOp, RingPeekOp, RingIsFiniteOp, RingReleaseOp,
             PingPongWaitOp, PingPongArriveOp, ClearOp>(op);
}

/// Whether the op does nothing but compute or read tiles, so that it may be
/// left out where these are stored nowhere.
static bool givesTilesAlone(Operation *op) {
  return isa<MmaAsyncOp, MmaWaitOp>(op) || isMemoryEffectFree(op) ||
         hasSingleEffect<MemoryEffects::Read>(op);
}

namespace {
/// What a role stores at the end of a tile.
struct Stores {
  Block *block = nullptr;
  Value rows;
};

/// Emits what is left of a block for a warpgroup without rows.
class Rest {
public:
  explicit Rest(OpBuilder &b) : b(b) {}

  /// False if what is left depends on what is left out.
  bool emit(Block &block);
  /// The scalars among `values`.
  SmallVector<Value> lookup(ValueRange values);

private:
  bool emit(scf::ForOp loop);
  bool emit(scf::IfOp choice);
  /// Whether a value is known: from outside, or emitted.
  bool isKnown(Value value) {
    return mapping.contains(value) || !ofTile.contains(value);
  }
  /// Makes results of an op, and arguments of its blocks, unknown until they
  /// are in the mapping.
  void forget(Operation *op);

  OpBuilder &b;
  IRMapping mapping;
  DenseSet<Value> ofTile;
};
} // namespace

static bool isScalar(Type type) { return type.isIntOrIndexOrFloat(); }

/// What can be carried where tiles are left out.
static SmallVector<Value> getScalars(ValueRange values) {
  SmallVector<Value> scalars;
  llvm::copy_if(values, std::back_inserter(scalars),
                [](Value value) { return isScalar(value.getType()); });
  return scalars;
}

/// Whether the op, or one in it, is one that a warpgroup without rows does.
static bool hasRest(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return keepsUp(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

void Rest::forget(Operation *op) {
  for (Value result : op->getResults())
    ofTile.insert(result);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Value argument : block.getArguments())
        ofTile.insert(argument);
}

SmallVector<Value> Rest::lookup(ValueRange values) {
  return llvm::map_to_vector(getScalars(values), [&](Value value) {
    return isKnown(value) ? mapping.lookupOrDefault(value) : Value();
  });
}

bool Rest::emit(scf::ForOp loop) {
  SmallVector<Value> bounds =
      lookup({loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
  SmallVector<Value> inits = lookup(loop.getInitArgs());
  if (llvm::is_contained(bounds, Value()) || llvm::is_contained(inits, Value()))
    return false;
  auto copy = scf::ForOp::create(b, loop.getLoc(), bounds[0], bounds[1],
                                 bounds[2], inits);
  mapping.map(loop.getInductionVar(), copy.getInductionVar());
  mapping.map(getScalars(ValueRange(loop.getRegionIterArgs())),
              copy.getRegionIterArgs());
  OpBuilder::InsertionGuard guard(b);
  // A loop that carries nothing has a terminator already.
  if (inits.empty())
    copy.getBody()->getTerminator()->erase();
  b.setInsertionPointToEnd(copy.getBody());
  if (!emit(*loop.getBody()))
    return false;
  mapping.map(getScalars(loop.getResults()), copy.getResults());
  return true;
}

bool Rest::emit(scf::IfOp choice) {
  if (!isKnown(choice.getCondition()))
    return false;
  SmallVector<Value> scalars = getScalars(choice.getResults());
  auto copy = scf::IfOp::create(b, choice.getLoc(), TypeRange(scalars),
                                mapping.lookupOrDefault(choice.getCondition()),
                                /*addThenBlock=*/true,
                                /*addElseBlock=*/bool(choice.elseBlock()));
  for (auto [from, to] :
       llvm::zip_equal(choice->getRegions(), copy->getRegions())) {
    if (from.empty())
      continue;
    OpBuilder::InsertionGuard guard(b);
    Block &block = to.front();
    block.clear();
    b.setInsertionPointToEnd(&block);
    if (!emit(from.front()))
      return false;
  }
  mapping.map(scalars, copy.getResults());
  return true;
}

bool Rest::emit(Block &block) {
  auto areKnown = [&](ValueRange values) {
    return llvm::all_of(values, [&](Value value) { return isKnown(value); });
  };
  for (Operation &op : block)
    forget(&op);
  for (Operation &op : block) {
    bool isNeeded = hasRest(&op);
    if (auto yield = dyn_cast<scf::YieldOp>(op)) {
      SmallVector<Value> scalars = lookup(yield.getOperands());
      if (llvm::is_contained(scalars, Value()))
        return false;
      scf::YieldOp::create(b, yield.getLoc(), scalars);
    } else if (auto loop = dyn_cast<scf::ForOp>(op); loop && isNeeded) {
      if (!emit(loop))
        return false;
    } else if (auto choice = dyn_cast<scf::IfOp>(op); choice && isNeeded) {
      if (!emit(choice))
        return false;
    } else if (areKnown(op.getOperands()) &&
               (isNeeded ||
                (computesScalars(&op) && op.getNumRegions() == 0))) {
      // Of scalars some are where other loops and steps begin.
      b.clone(op, mapping);
    } else if (isNeeded) {
      return false;
    }
  }
  return true;
}

/// The stores of a role, if all are in one loop and of the same number of rows,
/// and if the role does nothing else that somebody may miss.
static std::optional<Stores> findStores(Region &role) {
  Stores stores;
  WalkResult walk = role.walk([&](Operation *op) {
    if (isa<StoreOp, StoreBulkOp>(op)) {
      auto store = dyn_cast<StoreOp>(op);
      Value rows = store ? store.getRows() : cast<StoreBulkOp>(op).getRows();
      bool isFirst = !stores.block;
      if (!rows || !isa<scf::ForOp>(op->getParentOp()) ||
          (!isFirst && (stores.block != op->getBlock() || stores.rows != rows)))
        return WalkResult::interrupt();
      stores = {op->getBlock(), rows};
      return WalkResult::advance();
    }
    if (isa<ClaimOp>(op))
      return WalkResult::skip();
    bool hasRegions = op->getNumRegions() > 0;
    return hasRegions || keepsUp(op) || givesTilesAlone(op)
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  if (walk.wasInterrupted() || !stores.block)
    return std::nullopt;
  return stores;
}

/// The first op of the tile that a warpgroup without rows does, too, behind
/// what computes its rows; null if there is none, or rows are computed later.
static Operation *findBegin(const Stores &stores) {
  auto begin =
      llvm::find_if(*stores.block, [](Operation &op) { return hasRest(&op); });
  if (begin == stores.block->end())
    return nullptr;
  Operation *rows = stores.rows.getDefiningOp();
  bool isLate =
      rows && rows->getBlock() == stores.block && begin->isBeforeInBlock(rows);
  return isLate ? nullptr : &*begin;
}

/// Lets warpgroups without rows of a tile skip what is from `begin` on.
static bool skip(const Stores &stores, Operation *begin) {
  Block &block = *stores.block;
  Operation *yield = block.getTerminator();
  auto isSkipped = [&](Value value) {
    Operation *op = value.getDefiningOp();
    return op && op->getBlock() == &block && !op->isBeforeInBlock(begin);
  };
  SmallVector<Value> results;
  llvm::copy_if(yield->getOperands(), std::back_inserter(results), isSkipped);
  if (getScalars(results).size() != results.size())
    return false;
  OpBuilder b(begin);
  Location loc = begin->getLoc();
  Value has = HasRowsOp::create(b, loc, stores.rows);
  auto choice = scf::IfOp::create(b, loc, TypeRange(ValueRange(results)), has,
                                  /*withElseRegion=*/true);
  Block *then = choice.thenBlock(), *none = choice.elseBlock();
  then->clear();
  none->clear();
  then->getOperations().splice(then->end(), block.getOperations(),
                               begin->getIterator(), yield->getIterator());
  b.setInsertionPointToEnd(then);
  scf::YieldOp::create(b, loc, results);
  b.setInsertionPointToEnd(none);
  if (!Rest(b).emit(*then)) {
    // The tile is as it was.
    then->getTerminator()->erase();
    block.getOperations().splice(yield->getIterator(), then->getOperations());
    choice.erase();
    has.getDefiningOp()->erase();
    return false;
  }
  for (auto [result, value] : llvm::zip_equal(choice.getResults(), results))
    yield->replaceUsesOfWith(value, result);
  return true;
}

namespace {
struct SkipRows : flash::tile::impl::SkipRowsBase<SkipRows> {
  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    if (!flash::getSchedule(kernel).has(flash::ScheduleFeatures::SkipRows))
      return;
    kernel.walk([&](WarpSpecializeOp roles) {
      // The role that starts at warp 0 has register tiles.
      std::optional<Stores> stores = findStores(roles.getRoles()[0]);
      Operation *begin = stores ? findBegin(*stores) : nullptr;
      [[maybe_unused]] bool isDone = begin && skip(*stores, begin);
      LLVM_DEBUG(llvm::dbgs()
                 << kernel.getName() << ": "
                 << (isDone    ? "warpgroups without rows skip tiles\n"
                     : !stores ? "not every store has the same rows alone\n"
                               : "steps depend on tiles, or rows on steps\n"));
    });
  }
};
} // namespace
