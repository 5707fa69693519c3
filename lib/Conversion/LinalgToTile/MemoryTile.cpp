//===- MemoryTile.cpp - Tiles that lie in global memory -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryTile.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace flash;

InFlightDiagnostic flash::refuse(Operation *op, const Twine &rule) {
  return op->emitOpError("has no translation to a block program: ") << rule;
}

Value flash::stripCasts(Value tensor) {
  while (auto cast = tensor.getDefiningOp<tensor::CastOp>())
    tensor = cast.getSource();
  return tensor;
}

/// What the operation that defines `tile` takes it from, or null.
static Value getSource(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (isa_and_nonnull<tensor::ExtractSliceOp, tensor::PadOp, tensor::CastOp>(
          op))
    return op->getOperand(0);
  return Value();
}

bool flash::isMemoryTile(Value tile, scf::ForallOp loop) {
  if (!isa<RankedTensorType>(tile.getType()))
    return false;
  while (true) {
    if (auto argument = dyn_cast<BlockArgument>(tile);
        argument && argument.getOwner() == loop.getBody())
      return true;
    if (!loop->isAncestor(tile.getParentBlock()->getParentOp()))
      return true;
    Value source = getSource(tile);
    if (!source)
      return false;
    tile = source;
  }
}

/// Refuses strides. That of a single element says nothing.
static LogicalResult verifyStrides(OffsetSizeAndStrideOpInterface slice) {
  for (auto [size, stride] :
       llvm::zip_equal(slice.getMixedSizes(), slice.getMixedStrides()))
    if (getConstantIntValue(size) != 1 && getConstantIntValue(stride) != 1)
      return refuse(slice, "its elements are not neighbours; take a slice with "
                           "strides of 1");
  return success();
}

/// The dimensions of the memory along which those of the tile lie.
static SmallVector<unsigned> getKeptDims(const llvm::SmallBitVector &dropped) {
  SmallVector<unsigned> kept;
  for (unsigned dim = 0; dim < dropped.size(); ++dim)
    if (!dropped.test(dim))
      kept.push_back(dim);
  return kept;
}

static LogicalResult slice(MemoryTile &tile, tensor::ExtractSliceOp op) {
  if (failed(verifyStrides(op)))
    return failure();
  OpBuilder b(op);
  AffineExpr x = b.getAffineDimExpr(0), y = b.getAffineSymbolExpr(0);
  SmallVector<OpFoldResult> offsets = op.getMixedOffsets(),
                            sizes = op.getMixedSizes();
  SmallVector<MemoryTile::Dim> dims;
  for (auto [dim, offset] : llvm::zip_equal(tile.dims, offsets)) {
    OpFoldResult &at = tile.offsets[dim.inMemory];
    at = isZeroInteger(at) ? offset
                           : affine::makeComposedFoldedAffineApply(
                                 b, op.getLoc(), x + y, {at, offset});
  }
  for (unsigned kept : getKeptDims(op.getDroppedDims()))
    dims.push_back({tile.dims[kept].inMemory, sizes[kept]});
  tile.dims = dims;
  return success();
}

static LogicalResult pad(MemoryTile &tile, tensor::PadOp op) {
  for (OpFoldResult low : op.getMixedLowPad())
    if (!isZeroInteger(low))
      return refuse(op, "it pads in front of the first element; pad behind the "
                        "last");
  Value padding = op.getConstantPaddingValue();
  if (padding && padding.getDefiningOp<ub::PoisonOp>())
    tile.paddedWithAnything = true;
  else if (!padding || !matchPattern(padding, m_AnyZeroFloat()))
    return refuse(op, "it pads with another value than zero; pad with zero and "
                      "compare indices where the value counts");
  return success();
}

FailureOr<MemoryTile> flash::getMemoryTile(Value value, scf::ForallOp loop) {
  SmallVector<Operation *> ops;
  MemoryTile tile;
  tile.memory = value;
  while (loop->isAncestor(tile.memory.getParentBlock()->getParentOp())) {
    Value source = getSource(tile.memory);
    if (!source)
      break; // An output of the loop.
    ops.push_back(tile.memory.getDefiningOp());
    tile.memory = source;
  }
  auto type = cast<RankedTensorType>(tile.memory.getType());
  OpBuilder b(loop);
  // A slice says its own sizes.
  bool isSliced = !ops.empty() && isa<tensor::ExtractSliceOp>(ops.back());
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    tile.offsets.push_back(b.getIndexAttr(0));
    OpFoldResult size;
    if (!isSliced)
      size = tensor::getMixedSize(b, loop.getLoc(), tile.memory, dim);
    tile.dims.push_back({static_cast<unsigned>(dim), size});
  }
  bool isPadded = false;
  for (Operation *op : llvm::reverse(ops)) {
    tile.definition = op;
    if (auto slicing = dyn_cast<tensor::ExtractSliceOp>(op)) {
      if (isPadded)
        return refuse(op, "it takes part of a padded tile; pad what it takes");
      if (failed(slice(tile, slicing)))
        return failure();
    } else if (auto padding = dyn_cast<tensor::PadOp>(op)) {
      isPadded = true;
      if (failed(pad(tile, padding)))
        return failure();
    }
  }
  return tile;
}

FailureOr<MemoryTile>
flash::getMemoryTile(tensor::ParallelInsertSliceOp store) {
  if (failed(verifyStrides(
          cast<OffsetSizeAndStrideOpInterface>(store.getOperation()))))
    return failure();
  MemoryTile tile;
  tile.memory = store.getDest();
  tile.offsets = store.getMixedOffsets();
  SmallVector<OpFoldResult> sizes = store.getMixedSizes();
  for (unsigned kept : getKeptDims(store.getDroppedDims()))
    tile.dims.push_back({kept, sizes[kept]});
  tile.definition = store;
  return tile;
}
