//===- PersistChoices.cpp - Few blocks of kernels that may end at once ----===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceCondition.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Schedule/Schedule.h"
#include "flash/Schedule/Warpgroups.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/Debug.h"

namespace flash::tile {
#define GEN_PASS_DEF_PERSISTCHOICES
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

#define DEBUG_TYPE "tile-persist-choices"

using namespace mlir;
using namespace flash;
using namespace flash::tile;

/// Whether the device decides if a kernel that is launched has anything to do.
static bool isChosenOnDevice(gpu::LaunchFuncOp launch) {
  auto choice = launch->getParentOfType<scf::IfOp>();
  return choice && DeviceCondition::of(choice.getCondition());
}

static int64_t getNumThreads(gpu::GPUFuncOp kernel) {
  ArrayRef<int32_t> threads =
      kernel.getKnownBlockSize().value_or(ArrayRef<int32_t>());
  return threads.empty() ? 1 : threads[0];
}

/// Whether a thread computes many elements of a tile by themselves. In a loop
/// over tiles, what it computes of their columns would be kept for all tiles,
/// in so many registers that few warps are left to hide the latency of memory
/// (measured: the kernel that rounds gradients of queries, 32 elements, 214
/// registers where it has 56 without a loop).
static bool mapsManyElements(gpu::GPUFuncOp kernel) {
  constexpr int64_t most = 16;
  int64_t numThreads = getNumThreads(kernel);
  WalkResult walk = kernel.walk([&](MapOp map) {
    bool areMany = llvm::any_of(map->getResultTypes(), [&](Type type) {
      return cast<RankedTensorType>(type).getNumElements() > most * numThreads;
    });
    return areMany ? WalkResult::interrupt() : WalkResult::advance();
  });
  return walk.wasInterrupted();
}

/// The bytes of shared memory that hold the tiles which a kernel copies.
static int64_t getBytesOfTiles(gpu::GPUFuncOp kernel) {
  int64_t bytes = 0;
  kernel.walk([&](FetchOp fetch) {
    bytes += cast<SmemType>(fetch.getResult().getType()).getAlignedBytes();
  });
  return bytes;
}

/// How many blocks of a kernel go over all of its tiles on a multiprocessor: as
/// many as it has registers for if a thread has few. With fewer blocks, the
/// multiprocessors that are done first with the kernel before would take all.
static int64_t getBlocksOfMultiprocessor(gpu::GPUFuncOp kernel) {
  constexpr int64_t registersOfThread = 32;
  const Machine &machine = getMachineOfKernels(kernel);
  int64_t mostThreads = machine.registers / registersOfThread;
  int64_t blocks = std::max<int64_t>(mostThreads / getNumThreads(kernel), 1);
  // Barriers and sums of warps are beside the tiles.
  constexpr int64_t bytesBesideTiles = 1024;
  int64_t bytes = getBytesOfTiles(kernel) + bytesBesideTiles;
  while (blocks > 1 && bytes > getSharedLimit(machine, blocks))
    --blocks;
  return blocks;
}

namespace {
struct PersistChoices : flash::tile::impl::PersistChoicesBase<PersistChoices> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      if (!isChosenOnDevice(launch))
        return;
      auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
          launch, launch.getKernelAttr());
      // A schedule says how many blocks there are, and where the device counts
      // the tiles, no block takes a fixed number of them.
      if (!kernel || !getSchedule(kernel).isEmpty() ||
          !kernel.getBody().getOps<EndGridOp>().empty() ||
          mapsManyElements(kernel))
        return;
      Schedule schedule;
      schedule.features = ScheduleFeatures::Persistent;
      schedule.ctasPerSm = getBlocksOfMultiprocessor(kernel);
      LLVM_DEBUG(llvm::dbgs()
                 << kernel.getName() << ": " << *schedule.ctasPerSm
                 << " blocks of a multiprocessor go over all tiles\n");
      setSchedule(kernel, schedule);
    });
  }
};
} // namespace
