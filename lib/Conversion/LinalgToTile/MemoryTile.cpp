//===- MemoryTile.cpp - Tiles that lie in global memory -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryTile.h"

#include "flash/Dialect/Flash/Utils/TileSlices.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace flash;

InFlightDiagnostic flash::refuse(Operation *op, const Twine &rule) {
  return op->emitOpError("has no translation to a block program: ") << rule;
}

/// What the operation that defines `tile` takes it from, or null.
static Value getSource(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (isa_and_nonnull<tensor::ExtractSliceOp, tensor::PadOp, tensor::CastOp>(
          op) ||
      (op && isRowView(op)))
    return op->getOperand(0);
  return Value();
}

bool flash::isRowView(Operation *op) {
  // A transposition is computed unless its dimensions become rows, or were.
  if (auto transpose = dyn_cast<linalg::TransposeOp>(op))
    return transpose.getInput().getDefiningOp<tensor::ExpandShapeOp>() ||
           llvm::all_of(op->getUsers(), llvm::IsaPred<tensor::CollapseShapeOp>);
  return isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op);
}

bool flash::isPartsOfColumns(tensor::ExpandShapeOp op) {
  constexpr int64_t bitsOfChunk = 128;
  RankedTensorType type = op.getResultType();
  SmallVector<ReassociationIndices> ofColumns = {{0}, {1, 2}};
  return op.getReassociationIndices() == ofColumns &&
         op.getSrcType().hasStaticShape() &&
         type.getShape().back() * type.getElementTypeBitWidth() % bitsOfChunk ==
             0;
}

SmallVector<Value> flash::getParts(Value tile) {
  auto concat = tile.getDefiningOp<tensor::ConcatOp>();
  if (concat && concat.getDim() == 0)
    return concat.getInputs();
  return {tile};
}

bool flash::isMemoryTile(Value tile, scf::ForallOp loop) {
  if (!isa<RankedTensorType>(tile.getType()))
    return false;
  if (SmallVector<Value> parts = getParts(tile); parts.front() != tile)
    return llvm::all_of(parts, [&](Value part) {
      return part.getType() == parts.front().getType() &&
             isMemoryTile(part, loop);
    });
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

bool MemoryTile::isDense() const {
  return llvm::all_of(dims, [&](const Dim &dim) {
    auto isNext = [&](unsigned inMemory) {
      return isConstantIntValue(strides[inMemory], 1);
    };
    return isZeroInteger(dim.low) && isNext(dim.inMemory) &&
           (!dim.packed || isNext(dim.innerInMemory));
  });
}

bool MemoryTile::isPlain() const {
  return isDense() && (!padding || matchPattern(padding, m_AnyZeroFloat()) ||
                       matchPattern(padding, m_Zero()));
}

bool flash::isMultipleOf(OpFoldResult index, int64_t factor) {
  if (std::optional<int64_t> known = getConstantIntValue(index))
    return *known % factor == 0;
  auto value = cast<Value>(index);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop =
        dyn_cast<LoopLikeOpInterface>(argument.getOwner()->getParentOp());
    std::optional<SmallVector<Value>> counters;
    if (loop)
      counters = loop.getLoopInductionVars();
    if (!counters || !llvm::is_contained(*counters, value))
      return false;
    auto is = [&](std::optional<SmallVector<OpFoldResult>> all) {
      return all &&
             isMultipleOf(
                 (*all)[llvm::find(*counters, value) - counters->begin()],
                 factor);
    };
    return is(loop.getLoopLowerBounds()) && is(loop.getLoopSteps());
  }
  auto apply = value.getDefiningOp<affine::AffineApplyOp>();
  if (!apply)
    return false;
  AffineMap map = apply.getAffineMap();
  SmallVector<AffineExpr> values;
  for (auto [i, operand] : llvm::enumerate(apply.getMapOperands())) {
    unsigned number = i < map.getNumDims() ? i : i - map.getNumDims();
    AffineExpr own = i < map.getNumDims()
                         ? getAffineDimExpr(number, map.getContext())
                         : getAffineSymbolExpr(number, map.getContext());
    values.push_back(isMultipleOf(operand, factor) ? own * factor : own);
  }
  ArrayRef<AffineExpr> all(values);
  return map.getResult(0)
      .replaceDimsAndSymbols(all.take_front(map.getNumDims()),
                             all.drop_front(map.getNumDims()))
      .isMultipleOf(factor);
}

bool MemoryTile::isAligned(int64_t columns, int64_t elements) const {
  int64_t inMemory = cast<RankedTensorType>(memory.getType()).getShape().back();
  if (inMemory == columns)
    return true;
  return isMultipleOf(offsets.back(), elements) &&
         (ShapedType::isDynamic(inMemory) || inMemory % elements == 0);
}

bool MemoryTile::isSameAs(const MemoryTile &other) const {
  return memory == other.memory && offsets == other.offsets &&
         strides == other.strides &&
         llvm::equal(dims, other.dims, [](const Dim &x, const Dim &y) {
           return x.inMemory == y.inMemory && x.low == y.low &&
                  x.existing == y.existing && x.packed == y.packed &&
                  x.innerInMemory == y.innerInMemory;
         });
}

/// The dimensions of the memory along which the tile's dimensions lie.
static SmallVector<unsigned> getKeptDims(const llvm::SmallBitVector &dropped) {
  SmallVector<unsigned> kept;
  for (unsigned dim = 0; dim < dropped.size(); ++dim)
    if (!dropped.test(dim))
      kept.push_back(dim);
  return kept;
}

/// Takes the part of the tile that an extraction takes or an insertion writes.
template <typename SliceOp> static void slice(MemoryTile &tile, SliceOp op) {
  OpBuilder b(op);
  AffineExpr x = b.getAffineDimExpr(0), y = b.getAffineSymbolExpr(0),
             z = b.getAffineSymbolExpr(1);
  auto compose = [&](AffineExpr expr, ArrayRef<OpFoldResult> operands) {
    return affine::makeComposedFoldedAffineApply(b, op.getLoc(), expr,
                                                 operands);
  };
  SmallVector<OpFoldResult> offsets = op.getMixedOffsets(),
                            sizes = op.getMixedSizes(),
                            strides = op.getMixedStrides();
  SmallVector<MemoryTile::Dim> dims;
  for (auto [dim, offset, step] :
       llvm::zip_equal(tile.dims, offsets, strides)) {
    OpFoldResult &at = tile.offsets[dim.inMemory],
                 &stride = tile.strides[dim.inMemory];
    bool isFirst = isZeroInteger(at) && isConstantIntValue(stride, 1);
    at = isFirst ? offset : compose(x + y * z, {at, offset, stride});
    stride = isFirst ? step : compose(x * y, {stride, step});
  }
  for (unsigned kept : getKeptDims(op.getDroppedDims()))
    dims.push_back({tile.dims[kept].inMemory, b.getIndexAttr(0), sizes[kept]});
  tile.dims = dims;
}

/// The dimensions of what a transposition gives, or takes.
static SmallVector<MemoryTile::Dim> transpose(ArrayRef<MemoryTile::Dim> dims,
                                              linalg::TransposeOp op,
                                              bool isInverse) {
  SmallVector<MemoryTile::Dim> result(dims);
  for (auto [to, from] : llvm::enumerate(op.getPermutation()))
    result[isInverse ? from : to] = dims[isInverse ? to : from];
  return result;
}

/// Puts the dimensions of each group together. Of two, the second one is whole.
static FailureOr<SmallVector<MemoryTile::Dim>>
collapse(ArrayRef<MemoryTile::Dim> dims, Operation *op,
         ArrayRef<ReassociationIndices> groups) {
  OpBuilder b(op);
  SmallVector<MemoryTile::Dim> result;
  for (const ReassociationIndices &group : groups) {
    MemoryTile::Dim dim = dims[group.front()];
    if (group.size() == 1) {
      result.push_back(dim);
      continue;
    }
    const MemoryTile::Dim &inner = dims[group.back()];
    std::optional<int64_t> packed = getConstantIntValue(inner.existing);
    if (group.size() != 2 || !packed || *packed == 0 || dim.packed ||
        inner.packed)
      return refuse(op, "rows lie along one dimension of memory or two, the "
                        "second of known size");
    dim.existing = affine::makeComposedFoldedAffineApply(
        b, op->getLoc(), b.getAffineDimExpr(0) * *packed, {dim.existing});
    dim.packed = *packed;
    dim.innerInMemory = inner.inMemory;
    result.push_back(dim);
  }
  return result;
}

static LogicalResult pad(MemoryTile &tile, tensor::PadOp op) {
  if (tile.padding)
    return refuse(op, "it pads a tile that is padded; pad once");
  tile.padding = op.getConstantPaddingValue();
  if (!tile.padding)
    return refuse(op, "it pads with what depends on the position; pad with one "
                      "value");
  tile.toEnd = op->hasAttr(toEndName);
  for (auto [dim, low] : llvm::zip_equal(tile.dims, op.getMixedLowPad()))
    dim.low = low;
  return success();
}

RankedTensorType flash::getMemoryType(Value tile, scf::ForallOp loop) {
  tile = getParts(tile).front();
  while (loop->isAncestor(tile.getParentBlock()->getParentOp())) {
    Value source = getSource(tile);
    if (!source)
      break;
    tile = source;
  }
  return cast<RankedTensorType>(tile.getType());
}

FailureOr<MemoryTile> flash::getMemoryTile(Value value, scf::ForallOp loop) {
  if (getParts(value).front() != value)
    return refuse(value.getDefiningOp(),
                  "it puts rows together that products alone take, from rows "
                  "of multiples of 16 bytes, side by side in memory");
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
    tile.strides.push_back(b.getIndexAttr(1));
    OpFoldResult size;
    if (!isSliced)
      size = tensor::getMixedSize(b, loop.getLoc(), tile.memory, dim);
    tile.dims.push_back({static_cast<unsigned>(dim), b.getIndexAttr(0), size});
  }
  for (Operation *op : llvm::reverse(ops)) {
    tile.definition = op;
    if (auto slicing = dyn_cast<tensor::ExtractSliceOp>(op)) {
      if (tile.padding)
        return refuse(op, "it takes part of a padded tile; pad what it takes");
      if (tile.isPacked())
        return refuse(op, "it takes part of rows along two dimensions of "
                          "memory; take the part before they are put together");
      slice(tile, slicing);
    } else if (auto swap = dyn_cast<linalg::TransposeOp>(op)) {
      tile.dims = transpose(tile.dims, swap, /*isInverse=*/false);
    } else if (auto view = dyn_cast<tensor::CollapseShapeOp>(op)) {
      if (tile.padding)
        return refuse(op, "it puts dimensions of a padded tile together; pad "
                          "the rows");
      auto dims = collapse(tile.dims, op, view.getReassociationIndices());
      if (failed(dims))
        return failure();
      tile.dims = *dims;
    } else if (isa<tensor::ExpandShapeOp>(op)) {
      return refuse(op, "it takes dimensions of memory apart; do so before the "
                        "loop");
    } else if (auto padding = dyn_cast<tensor::PadOp>(op)) {
      if (failed(pad(tile, padding)))
        return failure();
    }
  }
  return tile;
}

FailureOr<MemoryTile> flash::getMemoryTile(tensor::ParallelInsertSliceOp store,
                                           Value &source) {
  OpBuilder b(store);
  MemoryTile tile;
  tile.memory = store.getDest();
  tile.offsets = store.getMixedOffsets();
  tile.strides = store.getMixedStrides();
  SmallVector<OpFoldResult> sizes = store.getMixedSizes();
  for (unsigned kept : getKeptDims(store.getDroppedDims()))
    tile.dims.push_back({kept, b.getIndexAttr(0), sizes[kept]});
  tile.definition = store;
  source = stripCasts(store.getSource());
  while (Operation *op = source.getDefiningOp()) {
    if (auto swap = dyn_cast<linalg::TransposeOp>(op); swap && isRowView(op)) {
      tile.dims = transpose(tile.dims, swap, /*isInverse=*/true);
    } else if (auto view = dyn_cast<tensor::ExpandShapeOp>(op)) {
      auto dims = collapse(tile.dims, op, view.getReassociationIndices());
      if (failed(dims))
        return failure();
      tile.dims = *dims;
    } else {
      break;
    }
    source = stripCasts(op->getOperand(0));
  }
  return tile;
}

Value flash::getWrittenSlice(Value tensor, scf::ForallOp loop) {
  while (isa<RankedTensorType>(tensor.getType())) {
    if (auto argument = dyn_cast<BlockArgument>(tensor)) {
      if (argument.getOwner() == loop.getBody())
        return tensor;
      auto inner = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (!inner || !loop->isProperAncestor(inner))
        return Value();
      tensor = inner.getTiedLoopInit(argument)->get();
    } else if (auto insertion = tensor.getDefiningOp<tensor::InsertSliceOp>()) {
      tensor = insertion.getDest();
    } else if (auto insertion = tensor.getDefiningOp<tensor::InsertOp>()) {
      tensor = insertion.getDest();
    } else if (auto insertion = tensor.getDefiningOp<InsertDiagonalsOp>()) {
      tensor = insertion.getSums();
    } else if (auto inner = tensor.getDefiningOp<scf::ForOp>();
               inner && loop->isProperAncestor(inner)) {
      tensor = inner.getTiedLoopInit(cast<OpResult>(tensor))->get();
    } else if (auto cast = tensor.getDefiningOp<tensor::CastOp>()) {
      tensor = cast.getSource();
    } else if (auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>()) {
      auto output = dyn_cast<BlockArgument>(stripCasts(slice.getSource()));
      return output && output.getOwner() == loop.getBody() ? tensor : Value();
    } else {
      return Value();
    }
  }
  return Value();
}

MemoryTile flash::getMemoryTile(tensor::InsertSliceOp store,
                                scf::ForallOp loop) {
  MemoryTile tile =
      *getMemoryTile(getWrittenSlice(store.getDest(), loop), loop);
  slice(tile, store);
  tile.definition = store;
  return tile;
}
