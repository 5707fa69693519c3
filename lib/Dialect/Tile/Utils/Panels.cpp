//===- Panels.cpp - Tiles that arrive panel by panel ----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/Utils/Panels.h"

#include "flash/Schedule/Warpgroups.h"

using namespace mlir;
using namespace flash;
using namespace flash::tile;

MmaAsyncOp flash::tile::getProductOfPanels(RingWaitOp wait) {
  Operation *first = nullptr;
  for (Operation *user : wait->getUsers()) {
    user = wait->getBlock()->findAncestorOpInBlock(*user);
    if (!first || user->isBeforeInBlock(first))
      first = user;
  }
  auto product = dyn_cast_if_present<MmaAsyncOp>(first);
  return product && product.getB() == wait.getTile() &&
                 product.getTransposeB() && !product.getTransposeA() &&
                 product.getWarpgroup() &&
                 isa<SmemType>(product.getA().getType())
             ? product
             : MmaAsyncOp();
}

bool flash::tile::arrivesByPanels(RingOp ring) {
  SmemType stage = ring.getStageType();
  if (ring.getNumStages() != 1 || ring.getRowStages() || ring.getChecked() ||
      ring.getFinite() || ring.getNumCopies() != 1 ||
      ring.isFilledFromRegisters() || stage.getNumPanels() < 2)
    return false;
  auto isPlain = [&](Operation *user) {
    auto copy = dyn_cast<CopyAsyncOp>(user);
    return copy ? copy.getSource().getType().getShape().back() >
                      stage.getColumns()
                : isa<RingAcquireOp, RingWaitOp, RingReleaseOp>(user);
  };
  return llvm::all_of(ring->getUsers(), isPlain) &&
         llvm::any_of(ring->getUsers(), [](Operation *user) {
           auto wait = dyn_cast<RingWaitOp>(user);
           return wait && getProductOfPanels(wait);
         });
}

int64_t flash::tile::getNumPanelBarrierBytes(RingOp ring) {
  return arrivesByPanels(ring)
             ? (ring.getStageType().getNumPanels() - 1) * barrierBytes
             : 0;
}
