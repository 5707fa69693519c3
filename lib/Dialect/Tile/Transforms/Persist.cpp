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
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace flash::tile {
#define GEN_PASS_DEF_PERSIST
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

/// The ops that are not the same for all blocks, or do more than to compute
/// scalars, and the conditions that only these ask for: kernels are passed
/// numbers, which can then be compared.
static llvm::SetVector<Operation *> getOpsOfBlocks(Block &body) {
  llvm::SmallPtrSet<Operation *, 32> ops;
  for (Operation &op : body.without_terminator())
    if (isa<gpu::BlockIdOp>(op) || op.getNumRegions() > 0 ||
        !isMemoryEffectFree(&op) ||
        llvm::any_of(op.getOperands(), [&](Value operand) {
          return ops.contains(operand.getDefiningOp());
        }))
      ops.insert(&op);
  llvm::SetVector<Operation *> inOrder;
  for (Operation &op : body.without_terminator())
    if (ops.contains(&op) ||
        (isa<arith::CmpIOp>(op) && llvm::all_of(op.getUsers(), [&](auto *user) {
           return ops.contains(body.findAncestorOpInBlock(*user));
         })))
      inOrder.insert(&op);
  return inOrder;
}

static Value isEven(OpBuilder &b, Location loc, Value number) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value two = arith::ConstantIndexOp::create(b, loc, 2);
  Value odd = arith::RemUIOp::create(b, loc, number, two);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, odd, zero);
}

/// Whether the op that uses a value is in the loop that `ops` will be in.
static bool isUsedIn(const llvm::SetVector<Operation *> &ops, Block &body,
                     Operation *user) {
  return ops.contains(body.findAncestorOpInBlock(*user));
}

/// The indices that the loop of a block uses and whoever launches the kernel
/// can compute, from sizes and constants.
static SmallVector<Value>
getScalarsOfLaunch(Block &body, const llvm::SetVector<Operation *> &inLoop) {
  llvm::SmallPtrSet<Operation *, 32> computable;
  SmallVector<Value> scalars;
  for (Operation &op : body.without_terminator()) {
    bool isScalar =
        op.getNumResults() == 1 &&
        op.getResult(0).getType().isSignlessIntOrIndex() &&
        (isa<memref::DimOp>(op) || isa<arith::ArithDialect>(op.getDialect()));
    if (!isScalar || llvm::any_of(op.getOperands(), [&](Value operand) {
          Operation *def = operand.getDefiningOp();
          return def && !computable.contains(def);
        }))
      continue;
    computable.insert(&op);
    // Constants and sizes cost a kernel nothing.
    if (op.getResult(0).getType().isIndex() &&
        !isa<arith::ConstantOp, memref::DimOp>(op) &&
        llvm::any_of(op.getUsers(), [&](Operation *user) {
          return isUsedIn(inLoop, body, user);
        }))
      scalars.push_back(op.getResult(0));
  }
  return scalars;
}

/// Computes a scalar of the kernel where the kernel is launched.
static Value computeAtLaunch(OpBuilder &b, Value scalar, IRMapping &atLaunch) {
  if (Value known = atLaunch.lookupOrNull(scalar))
    return known;
  Operation *op = scalar.getDefiningOp();
  for (Value operand : op->getOperands())
    computeAtLaunch(b, operand, atLaunch);
  b.clone(*op, atLaunch);
  return atLaunch.lookup(scalar);
}

/// Puts what a block does into a loop over the numbers of blocks that there
/// would be. How many waves all blocks take part in, and how many blocks from
/// which on in one more, become arguments: quotients that a kernel computes
/// itself keep ptxas from seeing that all threads go round the loop
/// alike. So do, behind them, the scalars that are returned: constant memory
/// has them for the whole loop, where registers are scarce.
static SmallVector<Value> persist(gpu::GPUFuncOp kernel) {
  Block &body = kernel.getBody().front();
  Location loc = kernel.getLoc();
  llvm::SetVector<Operation *> ops = getOpsOfBlocks(body);
  SmallVector<Value> scalars = getScalarsOfLaunch(body, ops);
  Type index = IndexType::get(kernel.getContext());
  Value whole = body.addArgument(index, loc);
  Value rest = body.addArgument(index, loc);
  Value firstOfRest = body.addArgument(index, loc);
  for (Value scalar : scalars)
    scalar.replaceUsesWithIf(body.addArgument(index, loc), [&](OpOperand &use) {
      return isUsedIn(ops, body, use.getOwner());
    });
  OpBuilder b(body.getTerminator());
  kernel.setFunctionType(b.getFunctionType(body.getArgumentTypes(), {}));

  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value id = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  Value grid = gpu::GridDimOp::create(b, loc, gpu::Dimension::x);
  // The last wave may be one of some blocks only.
  Value inRest = arith::SubIOp::create(b, loc, id, firstOfRest);
  Value isInRest =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, inRest, rest);
  Value more = arith::AddIOp::create(b, loc, whole, constant(1));
  Value waves = arith::SelectOp::create(b, loc, isInRest, more, whole);
  auto loop = scf::ForOp::create(b, loc, constant(0), waves, constant(1));
  b.setInsertionPointToStart(loop.getBody());
  // Every other wave goes backwards: where later blocks have less to do, none
  // has the most of every wave.
  Value wave = loop.getInductionVar();
  Value last = arith::SubIOp::create(b, loc, grid, constant(1));
  Value mirrored = arith::SubIOp::create(b, loc, last, id);
  Value position =
      arith::SelectOp::create(b, loc, isEven(b, loc, wave), id, mirrored);
  Value number = arith::MulIOp::create(b, loc, wave, grid);
  number = arith::AddIOp::create(b, loc, number, position);
  for (Operation *op : ops) {
    if (auto blockId = dyn_cast<gpu::BlockIdOp>(op)) {
      blockId.replaceAllUsesWith(number);
      blockId.erase();
      continue;
    }
    op->moveBefore(loop.getBody()->getTerminator());
  }
  return scalars;
}

static bool isPersistent(gpu::GPUFuncOp kernel) {
  return flash::getSchedule(kernel).has(flash::ScheduleFeatures::Persistent);
}

/// A persistent block that does not run yet has tiles for which others wait,
/// and these are the ones that would have to end before it can run.
static WalkResult refuseTurns(gpu::GPUFuncOp kernel) {
  return kernel.walk([](AddInTurnOp add) {
    add.emitOpError("waits for other blocks, which persistent blocks may keep "
                    "from running; leave out the feature persistent");
    return WalkResult::interrupt();
  });
}

namespace {
struct Persist : flash::tile::impl::PersistBase<Persist> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    DenseMap<Operation *, SmallVector<Value>> scalars;
    WalkResult walk = getOperation().walk([&](gpu::GPUFuncOp kernel) {
      return isPersistent(kernel) ? refuseTurns(kernel) : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    getOperation().walk([&](gpu::GPUFuncOp kernel) {
      if (isPersistent(kernel))
        scalars[kernel] = persist(kernel);
    });
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
          launch, launch.getKernelAttr());
      if (!kernel || !isPersistent(kernel))
        return;
      OpBuilder b(launch);
      Location loc = launch.getLoc();
      Value count = launch.getGridSizeX();
      auto constant = [&](int64_t value) -> Value {
        return arith::ConstantIndexOp::create(b, loc, value);
      };
      Value grid = arith::MinUIOp::create(
          b, loc, count,
          constant(flash::getMultiprocessors(kernel) * getCtasPerSm(kernel)));
      // No blocks at all are launched as none.
      Value divisor = arith::MaxUIOp::create(b, loc, grid, constant(1));
      Value whole = arith::DivUIOp::create(b, loc, count, divisor);
      Value rest = arith::RemUIOp::create(b, loc, count, divisor);
      // A wave that goes backwards ends with the first blocks.
      Value firstOfRest =
          arith::SelectOp::create(b, loc, isEven(b, loc, whole), constant(0),
                                  arith::SubIOp::create(b, loc, grid, rest));
      IRMapping atLaunch;
      for (auto [argument, operand] :
           llvm::zip(kernel.getArguments(), launch.getKernelOperands()))
        atLaunch.map(argument, operand);
      SmallVector<Value> added{whole, rest, firstOfRest};
      for (Value scalar : scalars.lookup(kernel))
        added.push_back(computeAtLaunch(b, scalar, atLaunch));
      launch.getKernelOperandsMutable().append(added);
      launch.getGridSizeXMutable().assign(grid);
    });
  }
};
} // namespace
