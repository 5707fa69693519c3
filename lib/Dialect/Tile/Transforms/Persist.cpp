//===- Persist.cpp - Blocks that take one tile after the other ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/IR/Warpgroups.h"
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
/// would be. How many rounds all blocks take part in, and how many blocks from
/// which on in one more, become arguments: quotients that a kernel computes
/// itself keep the assembler from seeing that all threads go round the loop
/// alike.
static void persist(gpu::GPUFuncOp kernel) {
  Block &body = kernel.getBody().front();
  Location loc = kernel.getLoc();
  SmallVector<Operation *> ops = getOpsOfBlocks(body);
  Type index = IndexType::get(kernel.getContext());
  Value whole = body.addArgument(index, loc);
  Value rest = body.addArgument(index, loc);
  Value firstOfRest = body.addArgument(index, loc);
  OpBuilder b(body.getTerminator());
  kernel.setFunctionType(b.getFunctionType(body.getArgumentTypes(), {}));

  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value id = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  Value grid = gpu::GridDimOp::create(b, loc, gpu::Dimension::x);
  // The last round may be one of some blocks only.
  Value inRest = arith::SubIOp::create(b, loc, id, firstOfRest);
  Value isInRest =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, inRest, rest);
  Value more = arith::AddIOp::create(b, loc, whole, constant(1));
  Value rounds = arith::SelectOp::create(b, loc, isInRest, more, whole);
  auto loop = scf::ForOp::create(b, loc, constant(0), rounds, constant(1));
  b.setInsertionPointToStart(loop.getBody());
  // Every other round goes backwards: where later blocks have less to do, none
  // has the most of every round.
  Value round = loop.getInductionVar();
  Value last = arith::SubIOp::create(b, loc, grid, constant(1));
  Value mirrored = arith::SubIOp::create(b, loc, last, id);
  Value odd = arith::RemUIOp::create(b, loc, round, constant(2));
  Value isEven =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, odd, constant(0));
  Value position = arith::SelectOp::create(b, loc, isEven, id, mirrored);
  Value number = arith::MulIOp::create(b, loc, round, grid);
  number = arith::AddIOp::create(b, loc, number, position);
  for (Operation *op : ops) {
    if (auto blockId = dyn_cast<gpu::BlockIdOp>(op)) {
      blockId.replaceAllUsesWith(number);
      blockId.erase();
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
      Location loc = launch.getLoc();
      Value count = launch.getGridSizeX();
      auto constant = [&](int64_t value) -> Value {
        return arith::ConstantIndexOp::create(b, loc, value);
      };
      Value grid = arith::MinUIOp::create(
          b, loc, count, constant(multiprocessors * getResidentBlocks(kernel)));
      // No blocks at all are launched as none.
      Value divisor = arith::MaxUIOp::create(b, loc, grid, constant(1));
      Value whole = arith::DivUIOp::create(b, loc, count, divisor);
      Value rest = arith::RemUIOp::create(b, loc, count, divisor);
      // A round that goes backwards ends with the first blocks.
      Value odd = arith::RemUIOp::create(b, loc, whole, constant(2));
      Value isEven = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                           odd, constant(0));
      Value firstOfRest =
          arith::SelectOp::create(b, loc, isEven, constant(0),
                                  arith::SubIOp::create(b, loc, grid, rest));
      launch.getKernelOperandsMutable().append({whole, rest, firstOfRest});
      launch.getGridSizeXMutable().assign(grid);
    });
  }
};
} // namespace
