//===- BulkStores.cpp - Results by bulk copies from shared memory ---------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/IR/Warpgroups.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace flash::tile {
#define GEN_PASS_DEF_BULKSTORES
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

/// Whether a bulk copy can store the tile: to whole rows of an argument.
static bool canBeBulk(StoreOp store) {
  auto type = cast<RankedTensorType>(store.getX().getType());
  MemRefType memory = store.getDestination().getType();
  return type.getRank() == 2 && isa<FragmentAttr>(type.getEncoding()) &&
         (type.getElementTypeBitWidth() == 16 || store.getAdd()) &&
         !store.getColumns() && type.getDimSize(1) % 16 == 0 &&
         isa<BlockArgument>(store.getDestination()) &&
         static_cast<int64_t>(store.getIndices().size()) ==
             memory.getRank() - 1 &&
         !store.getPacked() && store->getParentOfType<WarpSpecializeOp>();
}

/// The tile of shared memory with as many of the columns as fit into `bytes`;
/// null if there is no room for a panel.
static SmemType getStage(RankedTensorType type, int64_t bytes) {
  SmemType whole = SmemType::get(type.getDimSize(0), type.getDimSize(1),
                                 type.getElementType());
  int64_t panels =
      std::min(whole.getNumPanels(), bytes / whole.getPanelBytes());
  if (panels <= 0)
    return {};
  // As many times the same number as there must be.
  int64_t times = llvm::divideCeil(whole.getNumPanels(), panels);
  panels = llvm::divideCeil(whole.getNumPanels(), times);
  return SmemType::get(type.getContext(), whole.getRows(),
                       panels * whole.getPanelColumns(), type.getElementType(),
                       whole.getSwizzle());
}

/// Whether copies of packed rows fill the stages, which are whole tiles then.
static bool holdsPackedRows(RingOp ring) {
  return llvm::any_of(ring->getUsers(), [](Operation *user) {
    auto copy = dyn_cast<CopyAsyncOp>(user);
    return copy && copy.getPacked();
  });
}

/// The tile in front of the store whose shared memory the result can take: the
/// only one in its ring, as many rows, no fewer bytes, and read by products
/// alone, of which each of several warpgroups reads its own rows. Null if there
/// is none, or no tile follows for which the ring would need a stage early.
/// Sizes known at run time only take the registers that addresses in row stages
/// need.
static RingWaitOp findReused(StoreOp store) {
  if (!isa<scf::ForOp>(store->getParentOp()) ||
      !store.getDestination().getType().hasStaticShape())
    return {};
  auto type = cast<RankedTensorType>(store.getX().getType());
  SmemType result = SmemType::get(type.getDimSize(0), type.getDimSize(1),
                                  type.getElementType());
  for (auto wait : store->getBlock()->getOps<RingWaitOp>()) {
    SmemType tile = wait.getTile().getType();
    auto ring = wait.getRing().getDefiningOp<RingOp>();
    if (wait->isBeforeInBlock(store) && !ring.getRowStages() &&
        !ring.getChecked() && ring.getNumCopies() == 1 &&
        !ring.isFilledFromRegisters() && !holdsPackedRows(ring) &&
        wait.getRing().getType().getStages() == 1 &&
        tile.getRows() > rowsOfWarpgroup &&
        tile.getRows() == result.getRows() &&
        tile.getNumBytes() >= result.getNumBytes() &&
        llvm::all_of(wait->getUsers(), [&](Operation *user) {
          auto product = dyn_cast<MmaAsyncOp>(user);
          return product && product.getWarpgroup() &&
                 !product.getTransposeA() && product.getA() == wait.getTile() &&
                 product.getB() != wait.getTile();
        }))
      return wait;
  }
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
    int64_t left = getSharedLimit(limit, getCtasPerSm(kernel));
    kernel.walk([&](RingOp ring) {
      left -= ring.getNumBytes() + ring.getNumBarrierBytes();
    });
    int64_t scratchBytes = 0;
    kernel.walk([&](ReduceRowsOp reduce) {
      scratchBytes = std::max(scratchBytes, reduce.getNumScratchBytes());
    });
    left -= scratchBytes;
    SmallVector<StoreOp> stores;
    kernel.walk([&](StoreOp store) {
      if (canBeBulk(store))
        stores.push_back(store);
    });
    for (StoreOp store : stores) {
      auto type = cast<RankedTensorType>(store.getX().getType());
      RingWaitOp reused = store.getAdd() ? RingWaitOp() : findReused(store);
      RingReleaseOp release = reused ? reused.getRelease() : RingReleaseOp();
      SmemType stage;
      if (release && makeRowStages(reused, left)) {
        SmemType whole = SmemType::get(rowsOfWarpgroup, type.getDimSize(1),
                                       type.getElementType());
        stage = SmemType::get(&getContext(), rowsOfWarpgroup,
                              whole.getNumPanels() * whole.getPanelColumns(),
                              type.getElementType(), whole.getSwizzle());
        release->moveAfter(store);
      } else {
        reused = {};
        stage = getStage(type, left);
      }
      if (!stage)
        continue;
      OpBuilder b(store);
      StoreBulkOp::create(b, store.getLoc(), store.getAddAttr(), store.getX(),
                          store.getDestination(), store.getIndices(),
                          store.getRows(), TypeAttr::get(stage),
                          reused ? reused.getTile() : Value(),
                          /*offset=*/IntegerAttr());
      store.erase();
    }
  }
};
} // namespace
