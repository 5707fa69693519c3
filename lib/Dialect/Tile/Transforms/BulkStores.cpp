//===- BulkStores.cpp - Results by bulk copies from shared memory ---------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/IR/Warpgroups.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"

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
         type.getElementTypeBitWidth() == 16 && type.getDimSize(1) % 16 == 0 &&
         isa<BlockArgument>(store.getDestination()) &&
         static_cast<int64_t>(store.getIndices().size()) ==
             memory.getRank() - 1 &&
         store->getParentOfType<WarpSpecializeOp>();
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

namespace {
struct BulkStores : flash::tile::impl::BulkStoresBase<BulkStores> {
  using Base::Base;

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    if (!kernel->hasAttr("tile.bulk_store"))
      return;
    int64_t left = getSharedLimit(limit, getResidentBlocks(kernel));
    kernel.walk([&](RingOp ring) {
      RingType type = ring.getResult().getType();
      left -= type.getNumBytes() + ring.getNumBarrierBytes();
    });
    SmallVector<StoreOp> stores;
    kernel.walk([&](StoreOp store) {
      if (canBeBulk(store))
        stores.push_back(store);
    });
    for (StoreOp store : stores) {
      SmemType stage =
          getStage(cast<RankedTensorType>(store.getX().getType()), left);
      if (!stage)
        continue;
      OpBuilder b(store);
      StoreBulkOp::create(b, store.getLoc(), store.getX(),
                          store.getDestination(), store.getIndices(),
                          store.getRows(), TypeAttr::get(stage),
                          /*offset=*/IntegerAttr());
      store.erase();
    }
  }
};
} // namespace
