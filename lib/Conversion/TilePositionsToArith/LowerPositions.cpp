//===- LowerPositions.cpp - Tiles from the numbers of blocks --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/Utils/TileOrder.h"

#include "flash/Conversion/Passes.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Schedule/Warpgroups.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace flash {
#define GEN_PASS_DEF_LOWERTILEPOSITIONS
#include "flash/Conversion/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;
using namespace flash::tile;

/// Folds what is computed from `values`: of a dimension of one tile the index
/// is known, and nothing that the host can compute need be passed to the
/// kernel.
static void foldUsers(ValueRange values) {
  llvm::SetVector<Operation *> users;
  auto add = [&](Value value) {
    for (Operation *user : value.getUsers())
      if (isa<arith::ArithDialect>(user->getDialect()))
        users.insert(user);
  };
  llvm::for_each(values, add);
  while (!users.empty()) {
    Operation *op = users.pop_back_val();
    OpBuilder b(op);
    SmallVector<Value> results;
    if (failed(b.tryFold(op, results)) || results.empty())
      continue;
    op->replaceAllUsesWith(results);
    op->erase();
    llvm::for_each(results, add);
  }
}

namespace {
struct LowerTilePositions
    : flash::impl::LowerTilePositionsBase<LowerTilePositions> {
  void runOnOperation() override {
    SmallVector<PositionOp> positions;
    getOperation().walk([&](PositionOp op) { positions.push_back(op); });
    for (PositionOp op : positions) {
      auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
      if (!kernel) {
        op.emitOpError("is outside of any kernel");
        return signalPassFailure();
      }
      OpBuilder b(op);
      int64_t blocks = flash::getMachineOfKernels(kernel).multiprocessors *
                       getCtasPerSm(kernel);
      // Claimed some time before it is begun, a tile waits for the one before
      // unless more heads are between them. Measured: not 1, not 4.
      constexpr int64_t wavesOfClaims = 2;
      // Lists and sequences are as long as the data say. Measured: not 2, with
      // which the rows of long sequences would leave the cache.
      flash::Schedule schedule = flash::getSchedule(kernel);
      int64_t waves = schedule.has(flash::ScheduleFeatures::Persistent) &&
                              !schedule.has(flash::ScheduleFeatures::ClaimTiles)
                          ? wavesOfClaims
                          : 1;
      SmallVector<Value> position = emitPosition(b, op, blocks, waves);
      op->replaceAllUsesWith(position);
      op.erase();
      llvm::erase_if(position, [](Value index) {
        return !matchPattern(index, m_Constant());
      });
      foldUsers(position);
    }
  }
};
} // namespace
