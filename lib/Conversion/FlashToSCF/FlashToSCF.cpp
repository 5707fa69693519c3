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

/// Bounds and sets are of where the step is, which is computed in front of the
/// loops.
static LogicalResult verifyTiles(VisitOp visit) {
  if (!visit.getTiles())
    return success();
  StepOpInterface step = visit.getStep();
  if (!step)
    return visit.emitOpError("says which tiles a mask leaves, but its region "
                             "has no single step that has the mask");
  if (!step.getQuery().getType().hasStaticShape() ||
      !step.getKey().getType().hasStaticShape() ||
      step.getQuery().getType().getRank() != 2)
    return step->emitOpError("is of whole tensors, not of tiles of 2 "
                             "dimensions and static sizes, which the visit "
                             "says the mask leaves");
  SmallVector<OpFoldResult> values = step.getMixedPosition();
  llvm::append_range(values, step.getMixedExtents());
  for (OpFoldResult entry : values) {
    auto value = dyn_cast<Value>(entry);
    if (value && value != visit.getAt() && value != visit.getKeyAt() &&
        visit.getBody().isAncestor(value.getParentRegion()))
      return step->emitOpError("is at a position, or of lengths, that only the "
                               "step knows; the tiles that a mask leaves are "
                               "known before it");
  }
  return success();
}

/// Makes slices of what a kernel stores.
static void lower(StoreRowsOp store, scf::ForallOp forall) {
  OpBuilder b(forall.getTerminator());
  Location loc = store.getLoc();
  int64_t heads = store.getPacked().value_or(1);
  RankedTensorType tile = store.getTile().getType(),
                   destination = store.getDestination().getType();
  OpFoldResult one = b.getIndexAttr(1);
  OpFoldResult rows = store.getRows()
                          ? getAsOpFoldResult(store.getRows())
                          : b.getIndexAttr(tile.getDimSize(0) / heads);
  Value stored = takeRows(b, loc, store.getTile(), rows, heads);
  SmallVector<OpFoldResult> offsets = getAsOpFoldResult(store.getPosition()),
                            sizes(offsets.size(), one);
  sizes.back() = rows;
  if (heads > 1)
    sizes[sizes.size() - 2] = b.getIndexAttr(heads);
  if (tile.getRank() == 2) {
    offsets.push_back(b.getIndexAttr(0));
    sizes.push_back(b.getIndexAttr(tile.getDimSize(1)));
  }
  b.setInsertionPointToEnd(forall.getTerminator().getBody());
  tensor::ParallelInsertSliceOp::create(
      b, loc, stored, store.getDestination(), offsets, sizes,
      SmallVector<OpFoldResult>(destination.getRank(), one));
}

static void lower(KernelOp kernel) {
  OpBuilder b(kernel);
  SmallVector<OpFoldResult> ends = getAsOpFoldResult(kernel.getEnds());
  auto forall = scf::ForallOp::create(
      b, kernel.getLoc(),
      SmallVector<OpFoldResult>(ends.size(), b.getIndexAttr(0)), ends,
      getAsIndexOpFoldResult(b.getContext(), kernel.getSteps()),
      kernel.getOuts(), getBlockMapping(b, ends.size()));
  forall->setDiscardableAttrs(kernel->getDiscardableAttrDictionary());
  if (std::optional<ScheduleAttr> schedule = kernel.getSchedule())
    setSchedule(forall, schedule->getValue());
  StoreOp store = kernel.getStore();
  Block *body = forall.getBody();
  for (auto [from, to] :
       llvm::zip_equal(kernel.getBody().getArguments(), body->getArguments()))
    from.replaceAllUsesWith(to);
  body->getOperations().splice(forall.getTerminator()->getIterator(),
                               kernel.getBody().front().getOperations(),
                               kernel.getBody().front().begin(),
                               store->getIterator());
  for (Operation &op : llvm::make_early_inc_range(store.getBody().front())) {
    if (auto rows = dyn_cast<StoreRowsOp>(op))
      lower(rows, forall);
    else
      op.moveBefore(forall.getTerminator().getBody(),
                    forall.getTerminator().getBody()->end());
  }
  kernel.replaceAllUsesWith(forall.getResults());
  kernel.erase();
}

namespace {
struct ConvertFlashToSCF
    : flash::impl::ConvertFlashToSCFBase<ConvertFlashToSCF> {
  void runOnOperation() override {
    SmallVector<KernelOp> kernels;
    getOperation().walk([&](KernelOp kernel) { kernels.push_back(kernel); });
    for (KernelOp kernel : kernels)
      lower(kernel);
    SmallVector<VisitOp> visits;
    getOperation().walk([&](VisitOp visit) { visits.push_back(visit); });
    for (VisitOp visit : visits) {
      if (failed(verifyTiles(visit)))
        return signalPassFailure();
      VisitLowering(visit).run();
    }
    SmallVector<LoadRowsOp> loads;
    getOperation().walk([&](LoadRowsOp load) { loads.push_back(load); });
    for (LoadRowsOp load : loads)
      lower(load);
  }
};
} // namespace
