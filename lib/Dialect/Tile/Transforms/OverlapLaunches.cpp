//===- OverlapLaunches.cpp - Kernels start before others end --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/DependentLaunch.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace flash::tile {
#define GEN_PASS_DEF_OVERLAPLAUNCHES
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

/// The launch that is always the last one before, or null.
static gpu::LaunchFuncOp getLaunchBefore(gpu::LaunchFuncOp launch) {
  for (Operation *op = launch->getPrevNode(); op; op = op->getPrevNode()) {
    if (auto before = dyn_cast<gpu::LaunchFuncOp>(op))
      return before;
    WalkResult nested =
        op->walk([](gpu::LaunchFuncOp) { return WalkResult::interrupt(); });
    if (nested.wasInterrupted())
      return {};
  }
  return {};
}

template <typename Op> static Op getFirst(Block &body) {
  auto ops = body.getOps<Op>();
  return ops.empty() ? Op() : *ops.begin();
}

/// Waits as late as possible: indices are computed while other kernels run.
static void awaitDependencies(gpu::GPUFuncOp kernel) {
  Block &body = kernel.getBody().front();
  if (getFirst<AwaitDependenciesOp>(body))
    return;
  Block::iterator before =
      llvm::find_if(body.without_terminator(), [](Operation &op) {
        return AwaitDependenciesOp::mustFollow(&op);
      });
  OpBuilder b(&body, before);
  AwaitDependenciesOp::create(b, kernel.getLoc());
}

/// At once, but for a kernel that waits itself: until it goes on, the blocks of
/// the next one would only take up room.
static void launchDependents(gpu::GPUFuncOp kernel) {
  Block &body = kernel.getBody().front();
  if (getFirst<LaunchDependentsOp>(body))
    return;
  OpBuilder b = OpBuilder::atBlockBegin(&body);
  if (auto await = getFirst<AwaitDependenciesOp>(body))
    b.setInsertionPointAfter(await);
  LaunchDependentsOp::create(b, kernel.getLoc());
}

namespace {
struct OverlapLaunches
    : flash::tile::impl::OverlapLaunchesBase<OverlapLaunches> {
  void runOnOperation() override {
    if (!flash::getMachineOfKernels(getOperation()).hasDependentLaunches)
      return;
    SymbolTableCollection symbols;
    auto getKernel = [&](gpu::LaunchFuncOp launch) {
      return symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
          launch, launch.getKernelAttr());
    };
    SmallVector<gpu::GPUFuncOp> awaited;
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      gpu::LaunchFuncOp before = getLaunchBefore(launch);
      gpu::GPUFuncOp kernel = getKernel(launch);
      if (!before || !kernel || !getKernel(before))
        return;
      launch->setAttr(dependentLaunchAttr, UnitAttr::get(&getContext()));
      awaitDependencies(kernel);
      awaited.push_back(getKernel(before));
    });
    for (gpu::GPUFuncOp kernel : awaited)
      launchDependents(kernel);
  }
};
} // namespace
