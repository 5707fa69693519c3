//===- SkipRows.cpp - Warpgroups without rows leave out products ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleSlice.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Schedule/Schedule.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
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
} // namespace

/// Whether the op, or one in it, is one that a warpgroup without rows does.
static bool hasRest(Operation &op) {
  return op
      .walk([](Operation *inner) {
        return keepsUp(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The stores of a role, if all are in one loop and of the same number of rows,
/// and if the role does nothing else that others depend on.
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
  auto begin = llvm::find_if(*stores.block, hasRest);
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
  RoleSlice rest(OpBuilder(begin), keepsUp);
  SmallVector<unsigned> kept = rest.getKept(TypeRange(ValueRange(results)));
  if (kept.size() != results.size())
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
  if (failed(rest.cloneBody(*then, *none, kept))) {
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
