//===- BulkStores.cpp - Results by bulk copies from shared memory ---------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StoreStages.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Dialect/Tile/Utils/ClaimLoop.h"
#include "flash/Schedule/Warpgroups.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace flash::tile {
#define GEN_PASS_DEF_BULKSTORES
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash;
using namespace flash::tile;

/// The number of rows that a bulk copy needs as an operand: none where the
/// memory ends behind them, where it stops.
static Value getRowsOfCopy(StoreOp store) {
  return store.getToEnd() ? Value() : store.getRows();
}

/// Whether a bulk copy can store the tile, to whole rows of an argument.
static bool canBeBulk(StoreOp store) {
  auto type = cast<RankedTensorType>(store.getX().getType());
  MemRefType memory = store.getDestination().getType();
  bool rows = static_cast<bool>(getRowsOfCopy(store));
  return type.getRank() == 2 && isa<FragmentAttr>(type.getEncoding()) &&
         (type.getElementTypeBitWidth() == 16 || store.getAdd()) &&
         !store.getColumns() && (!rows || !store.getAdd()) &&
         memory.getRank() <= StoreBulkOp::getMaxRank(/*ofSomeRows=*/rows) &&
         type.getDimSize(1) % 16 == 0 &&
         isa<BlockArgument>(store.getDestination()) &&
         static_cast<int64_t>(store.getIndices().size()) ==
             memory.getRank() - 1 &&
         !store.getPacked() && store->getParentOfType<WarpSpecializeOp>();
}

/// The bytes of shared memory that the kernel needs up to now.
static int64_t getSharedBytes(gpu::GPUFuncOp kernel) {
  int64_t bytes = 0, scratchBytes = 0;
  kernel.walk([&](RingOp ring) {
    bytes += ring.getNumBytes() + ring.getNumBarrierBytes();
  });
  kernel.walk([&](ReduceRowsOp reduce) {
    scratchBytes = std::max(scratchBytes, reduce.getNumScratchBytes());
  });
  for (const StoreStage &stage : getStoreStages(kernel))
    bytes += stage.bytes;
  if (ClaimOp claim = findClaim(kernel))
    bytes += claim.getNumSharedBytes();
  return bytes + scratchBytes;
}

/// Lets the store go through shared memory, with as many of its columns at a
/// time as fit into `limit` bytes of the kernel; returns whether one panel
/// does.
static bool makeStage(StoreBulkOp store, gpu::GPUFuncOp kernel, int64_t limit) {
  SmemType whole = store.getStageType();
  for (int64_t times = 1;; ++times) {
    // The panels are divided into `times` parts as evenly as possible.
    int64_t panels = llvm::divideCeil(whole.getNumPanels(), times);
    store.setStage(SmemType::get(store.getContext(), whole.getRows(),
                                 panels * whole.getPanelColumns(),
                                 whole.getElementType(), whole.getSwizzle()));
    if (getSharedBytes(kernel) <= limit)
      return true;
    if (panels == 1)
      return false;
  }
}

/// Whether copies of packed rows fill the stages, which are whole tiles then.
static bool holdsPackedRows(RingOp ring) {
  return llvm::any_of(ring->getUsers(), [](Operation *user) {
    auto copy = dyn_cast<CopyAsyncOp>(user);
    return copy && copy.getPacked();
  });
}

/// Whether each of several warpgroups reads its own rows of the tile alone, by
/// products or also `byLoads`.
static bool areReadByOwners(RingWaitOp wait, bool byLoads) {
  return wait.getTile().getType().getRows() > rowsOfWarpgroup &&
         llvm::all_of(wait->getUsers(), [&](Operation *user) {
           if (auto load = dyn_cast<LoadOp>(user))
             return byLoads &&
                    isa<FragmentAttr>(load.getResult().getType().getEncoding());
           auto product = dyn_cast<MmaAsyncOp>(user);
           return product && product.getWarpgroup() &&
                  !product.getTransposeA() &&
                  product.getA() == wait.getTile() &&
                  product.getB() != wait.getTile();
         });
}

/// The tiles in front of the store that are the only ones in their rings, which
/// copies of whole tiles fill.
static SmallVector<RingWaitOp> getTilesBefore(StoreOp store) {
  SmallVector<RingWaitOp> tiles;
  for (auto wait : store->getBlock()->getOps<RingWaitOp>()) {
    auto ring = wait.getRing().getDefiningOp<RingOp>();
    if (wait->isBeforeInBlock(store) && !ring.getRowStages() &&
        !ring.getChecked() && ring.getNumCopies() == 1 &&
        !ring.isFilledFromRegisters() && !holdsPackedRows(ring) &&
        wait.getRing().getType().getStages() == 1 && wait.getRelease())
      tiles.push_back(wait);
  }
  return tiles;
}

/// The shared memory that the result has as a tile of its own.
static SmemType getWholeStage(StoreOp store) {
  auto type = cast<RankedTensorType>(store.getX().getType());
  return SmemType::get(type.getDimSize(0), type.getDimSize(1),
                       type.getElementType());
}

/// The tile in front of the store whose shared memory the result can take: as
/// many rows, no fewer bytes, and read by products alone, where each of several
/// warpgroups reads its own rows. Null if there is none, or no tile follows
/// that would need the ring's stage early. Sizes known at run time only take
/// the registers that addresses in row stages need.
static RingWaitOp findReused(StoreOp store) {
  if (store.getAdd() || !isa<scf::ForOp>(store->getParentOp()) ||
      !store.getDestination().getType().hasStaticShape())
    return {};
  SmemType result = getWholeStage(store);
  for (RingWaitOp wait : getTilesBefore(store)) {
    SmemType tile = wait.getTile().getType();
    if (tile.getRows() == result.getRows() &&
        tile.getNumBytes() >= result.getNumBytes() &&
        areReadByOwners(wait, /*byLoads=*/false))
      return wait;
  }
  return {};
}

/// The tile in front of the store whose memory can take the result, because
/// none follows or the next one can wait: it has the same type, and each
/// warpgroup reads its own rows.
static RingWaitOp findLast(StoreOp store) {
  bool isLast = isa<WarpSpecializeOp>(store->getParentOp());
  bool isClaimed = !store->getBlock()->getOps<ClaimOp>().empty();
  SmemType stage = getWholeStage(store);
  // Bulk stores take whole panels.
  if (store.getAdd() || (!isLast && !isClaimed) ||
      stage.getColumns() % stage.getPanelColumns() != 0)
    return {};
  for (RingWaitOp wait : getTilesBefore(store))
    if (wait.getTile().getType() == stage &&
        areReadByOwners(wait, /*byLoads=*/true))
      return wait;
  return {};
}

/// Gives each warpgroup a stage of its own for its rows of the tile, and one
/// more where the first of the next rows can come early, if there are `bytes`
/// for that; returns whether there are.
static bool makeRowStages(RingWaitOp wait, int64_t bytes) {
  auto ring = wait.getRing().getDefiningOp<RingOp>();
  int64_t before = ring.getNumBytes() + ring.getNumBarrierBytes();
  ring.setRowStages(wait.getTile().getType().getRows() / rowsOfWarpgroup + 1);
  if (ring.getNumBytes() + ring.getNumBarrierBytes() - before > bytes) {
    ring.removeRowStagesAttr();
    return false;
  }
  // Who copies has more to count.
  auto roles = wait->getParentOfType<WarpSpecializeOp>();
  for (Operation *user : ring->getUsers())
    if (auto copy = dyn_cast<CopyAsyncOp>(user)) {
      roles.leaveRegisters(roles.getRoleOf(wait), roles.getRoleOf(copy),
                           registersOfBusyProducer);
      break;
    }
  return true;
}

namespace {
struct BulkStores : flash::tile::impl::BulkStoresBase<BulkStores> {
  using Base::Base;

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    if (!flash::getSchedule(kernel).has(flash::ScheduleFeatures::BulkStore))
      return;
    int64_t most =
        getSharedLimit(getMachineOfKernels(kernel), getCtasPerSm(kernel));
    // Row stages take registers of loops that have none left.
    bool claims = bool(findClaim(kernel));
    SmallVector<StoreOp> stores;
    kernel.walk([&](StoreOp store) {
      if (canBeBulk(store))
        stores.push_back(store);
    });
    for (StoreOp store : stores) {
      RingWaitOp reused = claims ? RingWaitOp() : findReused(store);
      if (reused && !makeRowStages(reused, most - getSharedBytes(kernel)))
        reused = {};
      SmemType whole = getWholeStage(store);
      SmemType stage = SmemType::get(
          &getContext(), reused ? rowsOfWarpgroup : whole.getRows(),
          whole.getNumPanels() * whole.getPanelColumns(),
          whole.getElementType(), whole.getSwizzle());
      OpBuilder b(store);
      auto bulk = StoreBulkOp::create(
          b, store.getLoc(), store.getAddAttr(), store.getX(),
          store.getDestination(), store.getIndices(), getRowsOfCopy(store),
          TypeAttr::get(stage), reused ? reused.getTile() : Value(),
          /*offset=*/IntegerAttr());
      if (!reused && !makeStage(bulk, kernel, most)) {
        reused = findLast(store);
        if (!reused) {
          bulk.erase();
          continue;
        }
        bulk.setStage(reused.getTile().getType());
        bulk.getReusedMutable().assign(reused.getTile());
      }
      if (reused)
        reused.getRelease()->moveAfter(store);
      store.erase();
    }
  }
};
} // namespace
