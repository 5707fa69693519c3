//===- ExpandInserts.cpp - Inserts that keep what dimension is what -------===//
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
#define GEN_PASS_DEF_FLASHCPUEXPANDINSERTS
#include "flash/Target/Cpu/Passes.h.inc"
} // namespace flash

using namespace mlir;

/// Whether a dimension that the source has may have one element, like one
/// behind it that the source lacks.
static bool isAmbiguous(ArrayRef<int64_t> sizes,
                        const llvm::SmallBitVector &dropped) {
  int last = dropped.find_last();
  for (int dim = 0; dim < last; ++dim)
    if (!dropped.test(dim) &&
        (ShapedType::isDynamic(sizes[dim]) || sizes[dim] == 1))
      return true;
  return false;
}

/// Gives the source of an insert the dimensions that it lacks.
template <typename InsertOp>
static void expandSource(InsertOp insert, Operation *before) {
  llvm::SmallBitVector dropped = insert.getDroppedDims();
  ArrayRef<int64_t> sizes = insert.getStaticSizes();
  if (!isAmbiguous(sizes, dropped))
    return;
  SmallVector<ReassociationIndices> groups(insert.getSourceType().getRank());
  int64_t group = -1;
  for (int64_t dim = 0, rank = sizes.size(); dim < rank; ++dim) {
    group += !dropped.test(dim);
    groups[std::max<int64_t>(group, 0)].push_back(dim);
  }
  OpBuilder b(before);
  auto type =
      RankedTensorType::get(sizes, insert.getSourceType().getElementType());
  insert.getSourceMutable().assign(tensor::ExpandShapeOp::create(
      b, insert.getLoc(), type, insert.getSource(), groups,
      insert.getMixedSizes()));
}

namespace {
struct ExpandInserts : flash::impl::FlashCpuExpandInsertsBase<ExpandInserts> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      if (auto insert = dyn_cast<tensor::ParallelInsertSliceOp>(op))
        expandSource(insert, op->getParentOp());
      else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
        expandSource(insert, op);
    });
  }
};
} // namespace
