//===- AllocateSmem.cpp - Offsets in shared memory ------------------------===//
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
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

namespace flash::tile {
#define GEN_PASS_DEF_ALLOCATESMEM
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash;
using namespace flash::tile;

/// Allocates the kernel's rings one after the other; returns the bytes in all.
static int64_t allocate(gpu::GPUFuncOp kernel) {
  int64_t end = 0;
  Builder b(kernel.getContext());
  kernel.walk([&](RingOp ring) {
    end = llvm::alignTo(end, ring.getStageType().getAlignment());
    ring.setOffsetAttr(b.getI64IntegerAttr(end));
    end += ring.getNumBytes();
  });
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
      end += ring.getNumBarrierBytes();
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
