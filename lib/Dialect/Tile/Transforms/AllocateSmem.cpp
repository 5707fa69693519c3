//===- AllocateSmem.cpp - Offsets in shared memory ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StoreStages.h"
#include "VerifyRoles.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Dialect/Tile/Utils/ClaimLoop.h"
#include "flash/Dialect/Tile/Utils/Panels.h"
#include "flash/Schedule/Warpgroups.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace flash::tile {
#define GEN_PASS_DEF_ALLOCATESMEM
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash;
using namespace flash::tile;

/// The operations on two rings in a block, in their order, and whether each is
/// on the second one.
using Steps = SmallVector<std::pair<RingEffect, bool>>;

/// Whether a role does what is expected to both rings, in each block that has
/// operations on the second one.
static bool doesAlternate(Region *role, RingOp first, RingOp second,
                          ArrayRef<std::pair<RingEffect, bool>> expected) {
  llvm::MapVector<Block *, Steps> ofBlocks;
  role->walk([&](RingOpInterface op) {
    bool isOfSecond = op.getRing() == second.getResult();
    if (isOfSecond || op.getRing() == first.getResult())
      ofBlocks[op->getBlock()].push_back({op.getRingEffect(), isOfSecond});
  });
  return llvm::all_of(ofBlocks, [&](auto &ofBlock) {
    return ofBlock.second == expected ||
           llvm::none_of(ofBlock.second, [](auto op) { return op.second; });
  });
}

/// Whether two roles share tiles with each other alternately, so that the two
/// rings may have the same memory: one role puts a tile into the first ring and
/// waits for one of the second, if there is one, before it puts the next; the
/// other role puts that only when it has given back the tile of the first ring.
static bool alternate(RingOp first, RingOp second) {
  if (first.getResult().getType() != second.getResult().getType() ||
      first.getNumStages() != 1 || !first.isFilledFromRegisters() ||
      !second.isFilledFromRegisters())
    return false;
  auto getRoleOf = [](RingOp ring, bool ofWriters) {
    Region *found = nullptr;
    for (Operation *user : ring->getUsers()) {
      auto op = cast<RingOpInterface>(user);
      bool writes = op.hasRingEffect(RingEffect::Acquire) ||
                    op.hasRingEffect(RingEffect::Fill);
      if (writes != ofWriters)
        continue;
      if (found && found != getRole(user))
        return static_cast<Region *>(nullptr);
      found = getRole(user);
    }
    return found;
  };
  Region *writer = getRoleOf(first, true), *reader = getRoleOf(first, false);
  if (!writer || !reader || writer == reader ||
      getRoleOf(second, true) != reader || getRoleOf(second, false) != writer)
    return false;
  return doesAlternate(writer, first, second,
                       {{RingEffect::Acquire, false},
                        {RingEffect::Fill, false},
                        {RingEffect::Wait, true},
                        {RingEffect::Release, true}}) &&
         doesAlternate(reader, first, second,
                       {{RingEffect::Wait, false},
                        {RingEffect::Release, false},
                        {RingEffect::Acquire, true},
                        {RingEffect::Fill, true}});
}

/// Allocates the kernel's rings one after the other; returns the bytes in all.
static int64_t allocate(gpu::GPUFuncOp kernel) {
  int64_t end = 0;
  Builder b(kernel.getContext());
  SmallVector<RingOp> rings, alone;
  kernel.walk([&](RingOp ring) { rings.push_back(ring); });
  bool alternates = getSchedule(kernel).alternatesTiles();
  // Pieces of tiles leave no room for gaps before the large ones.
  if (alternates)
    llvm::stable_sort(rings, [](RingOp a, RingOp b) {
      return a.getStageType().getAlignment() > b.getStageType().getAlignment();
    });
  for (RingOp ring : rings) {
    auto *other = alone.end();
    if (alternates)
      other = llvm::find_if(alone, [&](RingOp other) {
        return alternate(other, ring) || alternate(ring, other);
      });
    if (other != alone.end()) {
      ring.setOffsetAttr(other->getOffsetAttr());
      alone.erase(other);
      continue;
    }
    alone.push_back(ring);
    end = llvm::alignTo(end, ring.getStageType().getAlignment());
    ring.setOffsetAttr(b.getI64IntegerAttr(end));
    end += ring.getNumBytes();
  }
  for (const StoreStage &stage : getStoreStages(kernel)) {
    StoreBulkOp first = stage.stores.front();
    end = llvm::alignTo(end, first.getStageType().getAlignment());
    for (StoreBulkOp store : stage.stores)
      store.setOffsetAttr(b.getI64IntegerAttr(end));
    end += stage.bytes;
  }
  // Reductions share their bytes: warps meet before they write there.
  int64_t scratchBytes = 0;
  auto shareScratch = [&](auto reduce) {
    int64_t bytes = reduce.getNumScratchBytes();
    if (bytes > 0)
      reduce.setOffsetAttr(b.getI64IntegerAttr(end));
    scratchBytes = std::max(scratchBytes, bytes);
  };
  kernel.walk([&](ReduceOp reduce) { shareScratch(reduce); });
  kernel.walk([&](ReduceRowsOp reduce) { shareScratch(reduce); });
  end += scratchBytes;
  bool hasRoles = false;
  kernel.walk([&](WarpSpecializeOp) { hasRoles = true; });
  if (hasRoles)
    kernel.walk([&](RingOp ring) {
      ring.setBarriersAttr(b.getI64IntegerAttr(end));
      end += ring.getNumBarrierBytes() + getNumPanelBarrierBytes(ring);
    });
  // All roles have the claims of one loop.
  int64_t claimBytes = 0;
  kernel.walk([&](ClaimOp claim) {
    claim.setOffset(end);
    claimBytes = claim.getNumSharedBytes();
  });
  return end + claimBytes;
}

namespace {
struct AllocateSmem : flash::tile::impl::AllocateSmemBase<AllocateSmem> {
  using Base::Base;
  void runOnOperation() override {
    SymbolTableCollection symbols;
    DenseMap<Operation *, int64_t> bytes;
    WalkResult walk = getOperation().walk([&](gpu::GPUFuncOp kernel) {
      int64_t needed = allocate(kernel);
      bytes[kernel] = needed;
      int64_t most =
          getSharedLimit(getMachineOfKernels(kernel), getCtasPerSm(kernel));
      if (needed <= most)
        return WalkResult::advance();
      kernel.emitError("the kernel '")
          << kernel.getName() << "' needs " << needed
          << " bytes of shared memory, and a block may have " << most
          << "; choose smaller tiles or fewer stages";
      return WalkResult::interrupt();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      Operation *kernel =
          symbols.lookupNearestSymbolFrom(launch, launch.getKernelAttr());
      OpBuilder b(launch);
      Value size = arith::ConstantIntOp::create(
          b, launch.getLoc(), b.getI32Type(), bytes.lookup(kernel));
      launch.getDynamicSharedMemorySizeMutable().assign(size);
    });
  }
};
} // namespace
