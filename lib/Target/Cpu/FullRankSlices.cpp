//===- FullRankSlices.cpp - Slices that keep what dimension is what -------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "llvm/ADT/SmallBitVector.h"

namespace flash {
#define GEN_PASS_DEF_FLASHCPUFULLRANKSLICES
#include "flash/Target/Cpu/Passes.h.inc"
} // namespace flash

using namespace mlir;

/// Whether a dimension that the tile of a slice has may have one element, like
/// one behind it that the tile lacks; if the slice's strides are not one, like
/// any other one: views of memory are distinguished by the strides that the
/// tile has in common with the tensor.
static bool isAmbiguous(OffsetSizeAndStrideOpInterface slice,
                        const llvm::SmallBitVector &dropped) {
  ArrayRef<int64_t> sizes = slice.getStaticSizes();
  int last = dropped.find_last();
  if (dropped.any() && llvm::any_of(slice.getStaticStrides(),
                                    [](int64_t step) { return step != 1; }))
    last = sizes.size();
  for (int dim = 0; dim < last; ++dim)
    if (!dropped.test(dim) &&
        (ShapedType::isDynamic(sizes[dim]) || sizes[dim] == 1))
      return true;
  return false;
}

/// Each dimension of the tile with the dimensions that it lacks behind it. The
/// first has those before it, too.
static SmallVector<ReassociationIndices>
getGroups(const llvm::SmallBitVector &dropped) {
  SmallVector<ReassociationIndices> groups(dropped.size() - dropped.count());
  int64_t group = -1;
  for (int64_t dim = 0, rank = dropped.size(); dim < rank; ++dim) {
    group += !dropped.test(dim);
    groups[std::max<int64_t>(group, 0)].push_back(dim);
  }
  return groups;
}

/// The op goes `before` another: none is among the stores of a parallel loop.
template <typename InsertOp>
static void expandSource(InsertOp insert, Operation *before) {
  llvm::SmallBitVector dropped = insert.getDroppedDims();
  if (!isAmbiguous(insert, dropped))
    return;
  OpBuilder b(before);
  auto type = RankedTensorType::get(insert.getStaticSizes(),
                                    insert.getSourceType().getElementType());
  insert.getSourceMutable().assign(tensor::ExpandShapeOp::create(
      b, insert.getLoc(), type, insert.getSource(), getGroups(dropped),
      insert.getMixedSizes()));
}

static void collapseResult(tensor::ExtractSliceOp extract) {
  llvm::SmallBitVector dropped = extract.getDroppedDims();
  if (!isAmbiguous(extract, dropped))
    return;
  OpBuilder b(extract);
  Location loc = extract.getLoc();
  Value all = tensor::ExtractSliceOp::create(
      b, loc, extract.getSource(), extract.getMixedOffsets(),
      extract.getMixedSizes(), extract.getMixedStrides());
  Value tile = tensor::CollapseShapeOp::create(b, loc, all, getGroups(dropped));
  if (tile.getType() != extract.getType())
    tile = tensor::CastOp::create(b, loc, extract.getType(), tile);
  extract.replaceAllUsesWith(tile);
  extract.erase();
}

namespace {
struct FullRankSlices
    : flash::impl::FlashCpuFullRankSlicesBase<FullRankSlices> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      if (auto insert = dyn_cast<tensor::ParallelInsertSliceOp>(op))
        expandSource(insert, op->getParentOp());
      else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
        expandSource(insert, op);
      else if (auto extract = dyn_cast<tensor::ExtractSliceOp>(op))
        collapseResult(extract);
    });
  }
};
} // namespace
