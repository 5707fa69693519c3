//===- Persist.cpp - Blocks that take one tile after the other ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace flash::tile {
#define GEN_PASS_DEF_PERSIST
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

/// The ops that are not the same for all blocks, or do more than to compute
/// scalars.
static SmallVector<Operation *> getOpsOfBlocks(Block &body) {
  llvm::SetVector<Operation *> ops;
  for (Operation &op : body.without_terminator())
    if (isa<gpu::BlockIdOp>(op) || op.getNumRegions() > 0 ||
        !isMemoryEffectFree(&op) ||
        llvm::any_of(op.getOperands(), [&](Value operand) {
          return ops.contains(operand.getDefiningOp());
        }))
      ops.insert(&op);
  return ops.takeVector();
}

/// Puts what a block does into a loop over the numbers of blocks that there
/// would be. Their count becomes an argument.
static void persist(gpu::GPUFuncOp kernel) {
  Block &body = kernel.getBody().front();
  Location loc = kernel.getLoc();
  SmallVector<Operation *> ops = getOpsOfBlocks(body);
  Value count = body.addArgument(IndexType::get(kernel.getContext()), loc);
  OpBuilder b(body.getTerminator());
  kernel.setFunctionType(b.getFunctionType(body.getArgumentTypes(), {}));

  Value first = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  Value step = gpu::GridDimOp::create(b, loc, gpu::Dimension::x);
  auto loop = scf::ForOp::create(b, loc, first, count, step);
  for (Operation *op : ops) {
    if (auto id = dyn_cast<gpu::BlockIdOp>(op)) {
      id.replaceAllUsesWith(loop.getInductionVar());
      id.erase();
      continue;
    }
    op->moveBefore(loop.getBody()->getTerminator());
  }
}

namespace {
struct Persist : flash::tile::impl::PersistBase<Persist> {
  using Base::Base;

  void runOnOperation() override {
    SymbolTableCollection symbols;
    getOperation().walk([&](gpu::GPUFuncOp kernel) {
      if (kernel->hasAttr("tile.persistent"))
        persist(kernel);
    });
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
          launch, launch.getKernelAttr());
      if (!kernel || !kernel->hasAttr("tile.persistent"))
        return;
      OpBuilder b(launch);
      Value count = launch.getGridSizeX();
      Value most =
          arith::ConstantIndexOp::create(b, launch.getLoc(), multiprocessors);
      launch.getKernelOperandsMutable().append(count);
      launch.getGridSizeXMutable().assign(
          arith::MinUIOp::create(b, launch.getLoc(), count, most).getResult());
    });
  }
};
} // namespace
