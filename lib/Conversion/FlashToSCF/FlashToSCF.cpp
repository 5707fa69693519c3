//===- FlashToSCF.cpp - Loops and slices of programs over tiles -----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VisitLowering.h"
#include "flash/Conversion/Passes.h"
#include "flash/Dialect/Flash/Utils/TileSlices.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

namespace flash {
#define GEN_PASS_DEF_CONVERTFLASHTOSCF
#include "flash/Conversion/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

static void lower(LoadRowsOp load) {
  OpBuilder b(load);
  Location loc = load.getLoc();
  SmallVector<OpFoldResult> first = getAsOpFoldResult(load.getPosition());
  int64_t tile = load.getTile().getType().getDimSize(0),
          heads = load.getPacked().value_or(1);
  OpFoldResult rows = load.getRows() ? getAsOpFoldResult(load.getRows())
                                     : b.getIndexAttr(tile / heads);
  Padding padding = load.getUndefined() ? Padding::Anything : Padding::Zero;
  Value rowsOfTile =
      heads > 1 ? packRows(b, loc, load.getSource(), first, heads, rows, tile,
                           padding)
                : extractRows(b, loc, load.getSource(), first, rows, tile,
                              /*columns=*/std::nullopt, padding);
  load.replaceAllUsesWith(rowsOfTile);
  load.erase();
}

namespace {
struct ConvertFlashToSCF
    : flash::impl::ConvertFlashToSCFBase<ConvertFlashToSCF> {
  void runOnOperation() override {
    SmallVector<VisitOp> visits;
    getOperation().walk([&](VisitOp visit) { visits.push_back(visit); });
    for (VisitOp visit : visits) {
      if (visit.getTiles() && !visit.getStep()) {
        visit.emitOpError("says which tiles a mask leaves, but its region has "
                          "no single step that has the mask");
        return signalPassFailure();
      }
      VisitLowering(visit).run();
    }
    SmallVector<LoadRowsOp> loads;
    getOperation().walk([&](LoadRowsOp load) { loads.push_back(load); });
    for (LoadRowsOp load : loads)
      lower(load);
  }
};
} // namespace
