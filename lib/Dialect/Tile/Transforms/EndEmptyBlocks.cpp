//===- EndEmptyBlocks.cpp - Blocks that store nothing end at once ---------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/Debug.h"

namespace flash::tile {
#define GEN_PASS_DEF_ENDEMPTYBLOCKS
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

#define DEBUG_TYPE "tile-end-empty-blocks"

using namespace mlir;
using namespace flash::tile;

/// The condition under which a number of rows is 0, as far as it is a choice;
/// null otherwise.
static Value getConditionOfNone(Value rows) {
  // Packed heads are as many rows for each query.
  while (auto apply = rows.getDefiningOp<affine::AffineApplyOp>()) {
    AffineMap map = apply.getAffineMap();
    auto product = dyn_cast<AffineBinaryOpExpr>(map.getResult(0));
    if (map.getNumInputs() != 1 || !product ||
        product.getKind() != AffineExprKind::Mul)
      return {};
    rows = apply.getOperand(0);
  }
  auto choice = rows.getDefiningOp<arith::SelectOp>();
  return choice && matchPattern(choice.getTrueValue(), m_Zero())
             ? choice.getCondition()
             : Value();
}

/// Whether an op may write global memory; copies read it.
static bool writesMemory(Operation *op) {
  bool hasMemory =
      llvm::any_of(op->getOperandTypes(), llvm::IsaPred<BaseMemRefType>);
  return hasMemory && !isa<CopyAsyncOp, FetchOp>(op) &&
         !hasSingleEffect<MemoryEffects::Read>(op) && !isMemoryEffectFree(op);
}

/// The condition under which no store of the kernel has rows; null if there is
/// none, or the kernel writes otherwise.
static Value getConditionOfEmpty(gpu::GPUFuncOp kernel) {
  Value condition;
  WalkResult walk = kernel.walk([&](Operation *op) {
    Value rows;
    if (auto store = dyn_cast<StoreOp>(op))
      rows = store.getRows();
    else if (auto store = dyn_cast<StoreBulkOp>(op))
      rows = store.getRows();
    else
      return writesMemory(op) ? WalkResult::interrupt() : WalkResult::advance();
    Value ofStore = rows ? getConditionOfNone(rows) : Value();
    if (!ofStore || (condition && ofStore != condition))
      return WalkResult::interrupt();
    condition = ofStore;
    return WalkResult::advance();
  });
  return walk.wasInterrupted() ? Value() : condition;
}

/// What a block may end behind: the condition, or a wait that comes later; null
/// if the block does more than to read until then.
static Operation *findLast(Block &body, Value condition) {
  Operation *last = condition.getDefiningOp();
  if (!last || last->getBlock() != &body)
    return nullptr;
  for (Operation &op : body)
    if (isa<AwaitDependenciesOp>(op) && last->isBeforeInBlock(&op))
      last = &op;
  auto before = llvm::make_range(body.begin(), std::next(last->getIterator()));
  return llvm::any_of(
             before,
             [](Operation &op) { return EndBlockIfOp::mustFollow(&op); })
             ? nullptr
             : last;
}

namespace {
struct EndEmptyBlocks : flash::tile::impl::EndEmptyBlocksBase<EndEmptyBlocks> {
  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    Block &body = kernel.getBody().front();
    if (flash::getSchedule(kernel).has(flash::ScheduleFeatures::Persistent))
      return;
    Value condition = getConditionOfEmpty(kernel);
    if (condition && llvm::any_of(body.getOps<EndBlockIfOp>(), [&](auto end) {
          return end.getCondition() == condition;
        }))
      return;
    Operation *last = condition ? findLast(body, condition) : nullptr;
    LLVM_DEBUG(llvm::dbgs() << kernel.getName() << ": "
                            << (last        ? "empty blocks end at once\n"
                                : condition ? "blocks copy too early\n"
                                            : "each block stores\n"));
    if (!last)
      return;
    OpBuilder b(&getContext());
    b.setInsertionPointAfter(last);
    EndBlockIfOp::create(b, kernel.getLoc(), condition);
  }
};
} // namespace
