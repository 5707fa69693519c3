//===- SelectSchedule.cpp - Propose tile sizes ----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/MathExtras.h"

namespace flash {
#define GEN_PASS_DEF_SELECTSCHEDULE
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
constexpr int64_t lanes = 16;          // f32 elements of the widest vector
constexpr int64_t largestQueryTile = 64;
constexpr int64_t largestKeyTile = 128;

/// The tile for `length`, at most `largest`, a multiple of `granule`.
int64_t fitTile(int64_t length, int64_t granule, int64_t largest) {
  if (ShapedType::isDynamic(length) || length >= largest)
    return largest;
  return std::max<int64_t>(llvm::alignTo(length, granule), granule);
}

struct SelectSchedule : flash::impl::SelectScheduleBase<SelectSchedule> {
  using Base::Base;
  void runOnOperation() override {
    WalkResult result = getOperation().walk([&](AttentionOp op) {
      if (op.getSchedule())
        return WalkResult::advance();
      RankedTensorType query = op.getQuery().getType();
      int64_t rank = query.getRank();
      int64_t queries = queryTile, keys = keyTile;
      if (!queries)
        queries = fitTile(query.getDimSize(rank - 2), lanes, largestQueryTile);
      if (!keys)
        keys = fitTile(op.getKey().getType().getDimSize(rank - 2), lanes,
                       largestKeyTile);
      auto schedule = ScheduleAttr::getChecked(
          [&] { return op.emitOpError("cannot be scheduled: "); },
          op.getContext(), queries, keys);
      if (!schedule)
        return WalkResult::interrupt();
      op.setScheduleAttr(schedule);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
