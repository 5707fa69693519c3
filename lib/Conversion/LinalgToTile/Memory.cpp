//===- Memory.cpp - Slices as fetches, insertions as stores ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockConverter.h"
#include "flash/Schedule/SharedTile.h"
#include "flash/Support/ElementType.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace flash;

/// The dimensions of the memory, with the tile's dimensions last.
static SmallVector<unsigned> getOrder(const MemoryTile &tile) {
  int64_t rank = tile.offsets.size();
  SmallVector<unsigned> order;
  for (unsigned dim = 0; dim < rank; ++dim)
    if (llvm::none_of(tile.dims, [&](const MemoryTile::Dim &own) {
          return own.inMemory == dim ||
                 (own.packed > 0 && own.innerInMemory == dim);
        }))
      order.push_back(dim);
  for (const MemoryTile::Dim &own : tile.dims) {
    order.push_back(own.inMemory);
    if (own.packed > 0)
      order.push_back(own.innerInMemory);
  }
  return order;
}

/// How many elements exist along a dimension of a tile of `size`; null if all.
static OpFoldResult getExisting(const MemoryTile::Dim &dim, int64_t size) {
  return getConstantIntValue(dim.existing) == size ? OpFoldResult()
                                                   : dim.existing;
}

/// Puts the insertion point where the tile is first needed in its block, which
/// may be in branches there, or behind the last of what has come from its block
/// before.
void BlockConverter::setInsertionPointAt(Operation *definition, bool isEarly) {
  auto found =
      definition ? insertionPoints.find(definition) : insertionPoints.end();
  if (found == insertionPoints.end()) {
    b.setInsertionPointToStart(&kernel.getBody().front());
    return;
  }
  auto [block, before] = found->second;
  if (!isEarly) {
    scf::IfOp choice;
    Block *at = b.getInsertionBlock();
    while (at != block && isa_and_present<scf::IfOp>(at->getParentOp())) {
      choice = cast<scf::IfOp>(at->getParentOp());
      at = choice->getBlock();
    }
    if (at == block) {
      if (choice)
        b.setInsertionPoint(choice);
      return;
    }
  }
  if (before)
    b.setInsertionPointAfter(before);
  else
    b.setInsertionPointToStart(block);
}

FailureOr<MemoryTile> BlockConverter::getInput(Value value, Operation *user) {
  FailureOr<MemoryTile> tile = getMemoryTile(value, forall);
  if (failed(tile))
    return failure();
  Operation *at = tile->definition ? tile->definition : user;
  if (isOutput(tile->memory))
    return refuse(at, "it reads an output of the loop, which other blocks "
                      "write; take what it starts from as an input");
  const ElementType *element = ElementType::find(value.getType());
  if (!element || (!element->isFactor() && !isa<DequantizeTileOp>(user)))
    return refuse(at, "tiles are of f16, bf16, f32 and f8E4M3FN");
  return tile;
}

BlockConverter::TileAddress
BlockConverter::getAddress(const MemoryTile &tile, ArrayRef<int64_t> shape) {
  SmallVector<unsigned> order = getOrder(tile);
  TileAddress address;
  address.memory = capture(tile.memory, order);
  for (unsigned dim : order)
    address.indices.push_back(lookup(tile.offsets[dim]));
  // Whole rows of fragments start at the first column.
  auto type = cast<RankedTensorType>(tile.memory.getType());
  if (shape.size() == 2 && !layouts.isWarpRows() &&
      order.back() == order.size() - 1 &&
      type.getShape().back() == shape.back() &&
      !getExisting(tile.dims[1], shape[1]))
    address.indices.pop_back();
  if (OpFoldResult some = getExisting(tile.dims[0], shape[0]))
    address.existing = lookup(some);
  if (shape.size() == 2)
    if (OpFoldResult some = getExisting(tile.dims[1], shape[1]))
      address.columns = lookup(some);
  if (int64_t packed = tile.dims[0].packed)
    address.packed = b.getI64IntegerAttr(packed);
  return address;
}

tile::SmemType BlockConverter::getSharedType(Value matrix) {
  auto type = cast<RankedTensorType>(matrix.getType());
  int64_t bytes = type.getElementTypeBitWidth() / 8, rows = type.getDimSize(0),
          columns = type.getDimSize(1), rowBytes = columns * bytes;
  int64_t swizzle =
      addsToOthers() ? getSwizzleOfGradients(rowBytes) : getSwizzle(rowBytes);
  auto beginPartsWithPanels = [&](Value divided) {
    for (Operation *user : divided.getUsers())
      if (auto parts = dyn_cast<tensor::ExpandShapeOp>(user);
          parts && isPartsOfColumns(parts))
        swizzle = getSwizzleOfParts(
            rowBytes, parts.getResultType().getShape().back() * bytes);
  };
  beginPartsWithPanels(matrix);
  // Beside wide gradients these are the matrix itself, if it is finite.
  for (Operation *user : matrix.getUsers())
    if (isa<ZeroNonfiniteOp>(user) && hasWideGradients())
      beginPartsWithPanels(user->getResult(0));
  return tile::SmemType::get(matrix.getContext(), rows, columns,
                             type.getElementType(), swizzle);
}

FailureOr<Value> BlockConverter::fetch(Value value, Operation *user) {
  if (Value known = fetched.lookup(value))
    return known;
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() != 2 || !type.hasStaticShape())
    return Value();
  SmallVector<Value> parts = getParts(value);
  int64_t rowsOfPart = type.getDimSize(0) / static_cast<int64_t>(parts.size()),
          columns = type.getDimSize(1);
  // Rows lie next to each other in any order of the dimensions, columns along
  // the last of them, from a multiple of 16 bytes on. A part has whole groups
  // of rows that a swizzle changes alike.
  constexpr int64_t bitsOfCopy = 128, rowsOfGroup = 8;
  if (columns * type.getElementTypeBitWidth() % bitsOfCopy != 0)
    return Value();
  if (parts.size() > 1 && rowsOfPart % rowsOfGroup != 0)
    return refuse(value.getDefiningOp(),
                  "it puts together parts of " + Twine(rowsOfPart) +
                      " rows; each has a multiple of " + Twine(rowsOfGroup));
  SmallVector<MemoryTile> tiles;
  for (Value part : parts) {
    FailureOr<MemoryTile> tile = getInput(part, user);
    if (failed(tile))
      return failure();
    if (!tile->isPlain() ||
        tile->dims[1].inMemory != tile->offsets.size() - 1 ||
        getExisting(tile->dims[1], columns) ||
        !tile->isAligned(columns, bitsOfCopy / type.getElementTypeBitWidth()) ||
        (!tiles.empty() &&
         (tile->memory != tiles.front().memory || tile->isPacked() ||
          tile->dims[0].inMemory != tiles.front().dims[0].inMemory)))
      return Value();
    tiles.push_back(std::move(*tile));
  }
  MemoryTile &first = tiles.front();
  bool exist = llvm::all_of(tiles, [&](const MemoryTile &tile) {
    return !getExisting(tile.dims[0], rowsOfPart);
  });
  // Warps that compute read what a role cannot copy.
  bool ofSomeRows = !exist && !first.toEnd;
  if (getSchedule(forall).has(ScheduleFeatures::SpecializeWarps) &&
      cast<RankedTensorType>(first.memory.getType()).getRank() >
          tile::StoreBulkOp::getMaxRank(ofSomeRows))
    return Value();
  tile::SmemType shape = getSharedType(value);

  // Another value of the program may be the same tile, for example as keys and
  // as values where only the padding is written twice.
  Operation *definition =
      parts.size() > 1 ? value.getDefiningOp() : first.definition;
  Block *block = definition ? definition->getBlock() : nullptr;
  for (auto &[others, known] : fetches) {
    Operation *other = others.front().definition;
    if (block && other && other->getBlock() == block &&
        known.getResult().getType() == shape &&
        llvm::equal(others, tiles, std::mem_fn(&MemoryTile::isSameAs)))
      return fetched[value] = known.getResult();
  }

  // In its own block it is made where it is first needed.
  OpBuilder::InsertionGuard guard(b);
  setInsertionPointAt(definition, /*isEarly=*/false);
  SmallVector<Value> indices, existing;
  IntegerAttr packed;
  Value memory;
  for (const MemoryTile &tile : tiles) {
    TileAddress address = getAddress(tile, {rowsOfPart, columns});
    llvm::append_range(indices, address.indices);
    if (!exist)
      existing.push_back(address.existing ? address.existing
                                          : constant(rowsOfPart));
    memory = address.memory;
    packed = address.packed;
  }
  auto fetch = tile::FetchOp::create(
      b, value.getLoc(), shape, memory, indices, existing,
      /*to_end=*/!exist && first.toEnd, packed,
      parts.size() > 1 ? b.getI64IntegerAttr(parts.size()) : IntegerAttr());
  fetches.push_back({std::move(tiles), fetch});
  return fetched[value] = fetch.getResult();
}

FailureOr<Value> BlockConverter::read(Value value, RankedTensorType type,
                                      Operation *user, bool transposed) {
  FailureOr<MemoryTile> tile = getInput(value, user);
  if (failed(tile))
    return failure();
  if (transposed)
    std::swap(tile->dims[0], tile->dims[1]);
  Location loc = user->getLoc();
  SmallVector<Value> offsets, strides;
  for (auto [offset, stride] : llvm::zip_equal(tile->offsets, tile->strides)) {
    offsets.push_back(lookup(offset));
    strides.push_back(isConstantIntValue(stride, 1) ? Value() : lookup(stride));
  }
  struct Range {
    Value low, existing;
  };
  // A vector along the columns is the same in all rows.
  ArrayRef<int64_t> shape = type.getShape().take_back(tile->dims.size());
  SmallVector<Range> ranges;
  for (auto [dim, size] : llvm::zip_equal(tile->dims, shape)) {
    Range range;
    if (!isZeroInteger(dim.low))
      range.low = lookup(dim.low);
    if (range.low || getExisting(dim, size))
      range.existing = lookup(dim.existing);
    ranges.push_back(range);
  }
  Value memory = capture(tile->memory);
  Value padding = constantF32(0.0);
  if (tile->padding)
    padding = lookup(tile->padding);

  RankedTensorType f32 = type.clone(b.getF32Type());
  auto map = tile::MapOp::create(b, loc, f32, ValueRange());
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Type> types(type.getRank(), b.getIndexType());
  Block *body = b.createBlock(&map.getBody(), {}, types,
                              SmallVector<Location>(types.size(), loc));
  auto widen = [&](Value element) -> Value {
    if (element.getType().isF32())
      return element;
    return arith::ExtFOp::create(b, loc, b.getF32Type(), element);
  };
  SmallVector<Value> indices = offsets;
  Value exists;
  for (auto [dim, range, position] : llvm::zip_equal(
           tile->dims, ranges, body->getArguments().take_back(ranges.size()))) {
    Value at = position;
    if (range.low)
      at = arith::SubIOp::create(b, loc, at, range.low);
    if (range.existing) {
      // One comparison: what is in front is a large number without a sign.
      Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                             at, range.existing);
      exists =
          exists ? arith::AndIOp::create(b, loc, exists, isInside) : isInside;
    }
    auto advance = [&](unsigned inMemory, Value distance) {
      if (Value stride = strides[inMemory])
        distance = arith::MulIOp::create(b, loc, distance, stride);
      Value &index = indices[inMemory];
      index = arith::AddIOp::create(b, loc, index, distance);
    };
    if (dim.packed == 0) {
      advance(dim.inMemory, at);
      continue;
    }
    Value packed = constant(dim.packed);
    advance(dim.inMemory, arith::DivUIOp::create(b, loc, at, packed));
    advance(dim.innerInMemory, arith::RemUIOp::create(b, loc, at, packed));
  }
  auto load = [&]() -> Value {
    return widen(memref::LoadOp::create(b, loc, memory, indices));
  };
  Value element;
  if (!exists) {
    element = load();
  } else {
    auto choice = scf::IfOp::create(b, loc, b.getF32Type(), exists,
                                    /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(choice.thenBlock());
    scf::YieldOp::create(b, loc, load());
    b.setInsertionPointToEnd(choice.elseBlock());
    scf::YieldOp::create(b, loc, widen(padding));
    element = choice.getResult(0);
  }
  tile::YieldOp::create(b, loc, element);
  b.setInsertionPointAfter(map);
  // The element has as many bits as in memory, which is exact.
  if (type == f32)
    return map.getResult();
  return arith::TruncFOp::create(b, loc, type, map).getResult();
}

/// The memory of the tile, packed, if kernels alone write and read it;
/// otherwise null.
static memref::AllocOp getMemoryOfKernels(const MemoryTile &tile) {
  auto written =
      stripCasts(tile.memory).getDefiningOp<bufferization::ToTensorOp>();
  auto alloc = written ? written.getBuffer().getDefiningOp<memref::AllocOp>()
                       : memref::AllocOp();
  // What a function returns may lie anywhere.
  bool isOfKernels =
      alloc && alloc.getType().getLayout().isIdentity() &&
      llvm::all_of(written->getUsers(), [](Operation *user) {
        return isa<bufferization::ToBufferOp, tensor::DimOp>(user) ||
               user->getParentOfType<scf::ForallOp>();
      });
  return isOfKernels ? alloc : memref::AllocOp();
}

/// Whether the rows of the tile, in memory of kernels, start at multiples of
/// `elements` and exist up to such a multiple.
static bool isAligned(const MemoryTile &tile, memref::AllocOp alloc,
                      int64_t elements) {
  return alloc && alloc.getType().getShape().back() % elements == 0 &&
         !alloc.getType().isDynamicDim(alloc.getType().getRank() - 1) &&
         isMultipleOf(tile.offsets.back(), elements) &&
         isMultipleOf(tile.dims.back().existing, elements);
}

/// Whether a selection's bounds take long to compute: they are comparisons of
/// all that its operands are computed from, other selections included.
static bool isSelectionOfVariables(Value value) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  return select && !getConstantIntValue(select.getTrueValue()) &&
         !getConstantIntValue(select.getFalseValue());
}

namespace {
/// Compares a value with 0 as `ValueBoundsConstraintSet::compare` does, but
/// without the bounds of selections of variables.
struct ComparisonWithZero : ValueBoundsConstraintSet {
  explicit ComparisonWithZero(MLIRContext *context)
      : ValueBoundsConstraintSet(
            context, [this](Value value, std::optional<int64_t>, auto &) {
              return isSelectionOfVariables(value) ||
                     (compared && comparePos(*compared, GT, zero));
            }) {}
  bool isPositive(const Variable &value) {
    // A new column moves others, so none may be left to be processed.
    zero = populateConstraints(
        AffineMap::getConstantMap(0, builder.getContext()), {});
    compared = insert(value, /*isSymbol=*/false);
    processWorklist();
    return comparePos(*compared, GT, zero);
  }

private:
  int64_t zero = 0;
  std::optional<int64_t> compared;
};
} // namespace

/// Whether the size is known to be one at least.
static bool isPositive(OpFoldResult size) {
  auto isAboveZero = [&](const ValueBoundsConstraintSet::Variable &value) {
    return ComparisonWithZero(size.getContext()).isPositive(value);
  };
  auto min = dyn_cast_if_present<affine::AffineMinOp>(
      dyn_cast<Value>(size) ? cast<Value>(size).getDefiningOp() : nullptr);
  if (!min)
    return isAboveZero(size);
  return llvm::all_of(llvm::seq(min.getMap().getNumResults()), [&](unsigned i) {
    if (auto known = dyn_cast<AffineConstantExpr>(min.getMap().getResult(i)))
      return known.getValue() > 0;
    return isAboveZero({min.getMap().getSubMap({i}), min.getOperands()});
  });
}

FailureOr<Value> BlockConverter::readWarpRows(Value value,
                                              RankedTensorType type,
                                              Operation *user) {
  if (Value known = warpRows.lookup(value))
    return known;
  FailureOr<MemoryTile> tile = getInput(value, user);
  if (failed(tile))
    return failure();
  // A row has its columns along the last dimension, a vector its elements along
  // any.
  if (!tile->isDense() || tile->isPacked() ||
      static_cast<int64_t>(tile->dims.size()) != type.getRank() ||
      (type.getRank() == 2 &&
       tile->dims.back().inMemory != tile->offsets.size() - 1))
    return Value();
  // The read is as early as the program has it: other reads may follow before
  // it is needed.
  OpBuilder::InsertionGuard guard(b);
  setInsertionPointAt(tile->definition, /*isEarly=*/true);
  TileAddress address = getAddress(*tile, type.getShape());
  Value padding;
  if (tile->padding)
    padding = lookup(tile->padding);
  bool nonempty = (address.existing || address.columns) &&
                  llvm::all_of(tile->dims, [](const MemoryTile::Dim &dim) {
                    return isPositive(dim.existing);
                  });
  int64_t vector = cast<tile::WarpRowsAttr>(type.getEncoding()).getVector();
  memref::AllocOp ofKernels = getMemoryOfKernels(*tile);
  bool isMatrix = type.getRank() == 2,
       aligned = isMatrix && isAligned(*tile, ofKernels, vector),
       isTested = (isMatrix && !aligned) ||
                  ((address.existing || address.columns) && !nonempty);
  // What kernels before this one have computed in parts is read in some parts
  // at a time.
  bool inOrder = !isTested && ofKernels;
  return warpRows[value] = tile::ReadOp::create(
             b, value.getLoc(), type, address.memory, address.indices,
             address.existing, address.columns, padding, aligned, nonempty,
             inOrder);
}

FailureOr<Value> BlockConverter::loadVector(Value value, RankedTensorType type,
                                            Operation *user) {
  // Rows of eight that are put together for columns are fetched as they lie.
  constexpr int64_t inRow = 8;
  auto view = value.getDefiningOp<tensor::CollapseShapeOp>();
  if (view && isa<tile::ColumnsAttr>(type.getEncoding()) &&
      type.getElementType().isF32() && view.getSrcType().getRank() == 2 &&
      view.getSrcType().getDimSize(1) == inRow &&
      view.getSrcType().getDimSize(0) % inRow == 0) {
    FailureOr<Value> tile = fetch(view.getSrc(), user);
    if (failed(tile))
      return failure();
    if (*tile)
      return tile::LoadOp::create(b, user->getLoc(), type, *tile).getResult();
  }
  FailureOr<MemoryTile> tile = getInput(value, user);
  if (failed(tile))
    return failure();
  if (!tile->definition)
    return read(value, type, user, /*transposed=*/false);
  // Others are read where the program takes them: not in each iteration of a
  // loop behind that.
  if (Value known = vectors.lookup(value); known && known.getType() == type)
    return known;
  OpBuilder::InsertionGuard guard(b);
  setInsertionPointAt(tile->definition, /*isEarly=*/false);
  FailureOr<Value> vector = read(value, type, user, /*transposed=*/false);
  if (succeeded(vector))
    vectors[value] = *vector;
  return vector;
}

FailureOr<Value> BlockConverter::load(Value value, RankedTensorType type,
                                      Operation *user, bool transposed) {
  if (type.getRank() == 1 && !layouts.isWarpRows())
    return loadVector(value, type, user);
  if (layouts.isWarpRows() && !transposed) {
    FailureOr<Value> tile = readWarpRows(value, type, user);
    if (failed(tile) || *tile)
      return tile;
  } else if (type.getRank() == 2 && !transposed) {
    FailureOr<Value> tile = fetch(value, user);
    if (failed(tile))
      return failure();
    if (*tile)
      return tile::LoadOp::create(b, user->getLoc(), type, *tile).getResult();
  }
  return read(value, type, user, transposed);
}

/// Whether the rows of a tile of so many that the slice leaves out, along the
/// dimension of the output, lie behind its last one.
static bool storesToEnd(tensor::ParallelInsertSliceOp slice,
                        scf::ForallOp forall, int64_t dim, int64_t tileRows) {
  using Bounds = ValueBoundsConstraintSet;
  auto size = dyn_cast<Value>(slice.getMixedSizes()[dim]);
  auto min =
      size ? size.getDefiningOp<affine::AffineMinOp>() : affine::AffineMinOp();
  auto output = dyn_cast<BlockArgument>(slice.getDest());
  if (!min || !output || output.getOwner() != forall.getBody())
    return false;
  Value whole = stripCasts(forall.getTiedOpOperand(output)->get());
  OpFoldResult end;
  if (auto empty = whole.getDefiningOp<tensor::EmptyOp>())
    end = empty.getMixedSizes()[dim];
  else if (int64_t known = slice.getDestType().getDimSize(dim);
           !ShapedType::isDynamic(known))
    end = OpBuilder(slice).getIndexAttr(known);
  else
    return false;
  AffineMap left = AffineMap::get(2, 0,
                                  getAffineDimExpr(0, slice.getContext()) -
                                      getAffineDimExpr(1, slice.getContext()));
  Bounds::Variable behind(
      left,
      {Bounds::Variable(end), Bounds::Variable(slice.getMixedOffsets()[dim])});
  return llvm::all_of(llvm::seq(min.getMap().getNumResults()), [&](unsigned i) {
    if (auto constant = dyn_cast<AffineConstantExpr>(min.getMap().getResult(i));
        constant && constant.getValue() == tileRows)
      return true;
    FailureOr<bool> isLeft = Bounds::areEqual(
        Bounds::Variable(min.getMap().getSubMap({i}), min.getOperands()),
        behind);
    return succeeded(isLeft) && *isLeft;
  });
}

LogicalResult BlockConverter::storeInterleaved(Operation *op,
                                               InterleaveOp interleave,
                                               const MemoryTile &destination) {
  Value tile = interleave.getTile();
  FailureOr<Value> copied = isMemoryTile(tile, forall)
                                ? fetch(tile, interleave)
                                : FailureOr<Value>(Value());
  if (failed(copied))
    return failure();
  RankedTensorType type = interleave.getResult().getType();
  TileAddress to = getAddress(destination, type.getShape());
  if (!*copied || to.existing || to.columns || to.packed ||
      to.indices.size() + 1 != destination.offsets.size())
    return refuse(interleave,
                  "a tile is interleaved from memory, where rows of multiples "
                  "of 16 bytes are side by side, to all of as many rows");
  tile::StoreInterleavedOp::create(b, op->getLoc(), *copied, to.memory,
                                   to.indices);
  return success();
}

LogicalResult BlockConverter::store(Operation *op, Value source,
                                    const MemoryTile &destination) {
  source = stripCasts(source);
  if (!destination.isPlain())
    return refuse(op, "it stores to elements that are not neighbours; insert "
                      "with strides of 1");
  if (auto interleave = source.getDefiningOp<InterleaveOp>())
    return storeInterleaved(op, interleave, destination);
  // The first rows and columns of a tile may be stored alone.
  if (auto slice = source.getDefiningOp<tensor::ExtractSliceOp>();
      slice && (!isMemoryTile(source, forall) || !layouts.getType(source) ||
                stripCasts(slice.getSource()).getDefiningOp<tensor::PadOp>())) {
    if (!slice.hasUnitStride() ||
        !llvm::all_of(slice.getMixedOffsets(), isZeroInteger) ||
        slice.getDroppedDims().any())
      return refuse(slice, "of a tile only the first rows and columns can be "
                           "stored by themselves");
    source = stripCasts(slice.getSource());
  }
  FailureOr<RankedTensorType> type = getType(source, op);
  if (failed(type))
    return failure();
  FailureOr<Value> registers = getRegisters(source, *type, op);
  if (failed(registers))
    return failure();
  // Values of rows may lie along any dimension.
  bool isMatrix = type->getRank() == 2;
  if (layouts.isWarpRows() &&
      (static_cast<int64_t>(destination.dims.size()) != type->getRank() ||
       destination.isPacked() ||
       (isMatrix &&
        destination.dims[1].inMemory != destination.offsets.size() - 1)))
    return refuse(op, "the last dimension of the tile is not along that of the "
                      "memory, whose elements are neighbours");
  TileAddress to = getAddress(destination, type->getShape());
  // Neighbours of a fragment are stored at once where they are neighbours in
  // memory.
  if (isMatrix && !layouts.isWarpRows() && !to.columns) {
    int64_t all = type->getDimSize(1);
    if (destination.dims[1].inMemory != destination.offsets.size() - 1 ||
        !destination.isAligned(all, /*elements=*/2))
      to.columns = constant(all);
  }
  auto slice = dyn_cast<tensor::ParallelInsertSliceOp>(op);
  bool toEnd = to.existing && slice && !destination.isPacked() &&
               isa<tile::FragmentAttr>(type->getEncoding()) &&
               storesToEnd(slice, forall, destination.dims[0].inMemory,
                           type->getDimSize(0));
  tile::StoreOp::create(b, op->getLoc(), /*add=*/false, *registers, to.memory,
                        to.indices, to.existing, toEnd, to.columns, to.packed);
  return success();
}

/// Checks that of the states of a slice of an output, from `state` on, each is
/// only made into the next, until the loop that carries it ends: writing them
/// one after the other is then what the program says.
static LogicalResult verifyStates(Value state) {
  auto argument = dyn_cast<BlockArgument>(state);
  while (true) {
    OpOperand *next = nullptr;
    for (OpOperand &use : state.getUses()) {
      if (isa<tensor::DimOp>(use.getOwner()))
        continue;
      // The output that this is a slice of.
      if (auto store = dyn_cast<tensor::ParallelInsertSliceOp>(use.getOwner());
          store && use.get() == store.getDest())
        continue;
      if (next)
        return refuse(use.getOwner(),
                      "it takes a part of an output that something else takes, "
                      "too; write tiles to it one after the other");
      next = &use;
    }
    if (!next)
      return refuse(argument ? argument.getOwner()->getParentOp()
                             : state.getDefiningOp(),
                    "nothing stores the part of an output that it gives");
    Operation *op = next->getOwner();
    if (isa<tensor::ParallelInsertSliceOp>(op))
      return success();
    if (auto yield = dyn_cast<scf::YieldOp>(op);
        yield && argument && yield->getBlock() == argument.getOwner() &&
        next->getOperandNumber() + 1 == argument.getArgNumber())
      return success();
    if (auto insertion = dyn_cast<tensor::InsertSliceOp>(op);
        insertion && next->get() == insertion.getDest()) {
      state = insertion.getResult();
    } else if (auto insertion = dyn_cast<tensor::InsertOp>(op)) {
      state = insertion.getResult();
    } else if (auto insertion = dyn_cast<InsertDiagonalsOp>(op)) {
      state = insertion.getResult();
    } else if (auto cast = dyn_cast<tensor::CastOp>(op)) {
      state = cast.getResult();
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (failed(verifyStates(loop.getTiedLoopRegionIterArg(next))))
        return failure();
      state = loop.getTiedLoopResult(next);
    } else {
      return refuse(op,
                    "it takes a part of an output; insert tiles into it, in "
                    "loops or not, and store it where it is from");
    }
  }
}

LogicalResult BlockConverter::convertInsertion(tensor::InsertSliceOp op) {
  Value slice = getWrittenSlice(op.getDest(), forall);
  if (!slice)
    return refuse(op,
                  "it inserts into a tile that is in registers; insert into "
                  "a slice of an output of the loop");
  if (failed(verifyStates(slice)))
    return failure();
  return store(op, op.getSource(), getMemoryTile(op, forall));
}

FailureOr<SmallVector<Value>>
BlockConverter::getElementIndices(Operation *op, Value dest,
                                  OperandRange indices, Value &memory) {
  Value slice = getWrittenSlice(dest, forall);
  if (!slice)
    return refuse(op, "it inserts elements into a tile that is in registers; "
                      "insert into a slice of an output of the loop");
  if (failed(verifyStates(slice)))
    return failure();
  FailureOr<MemoryTile> tile = getMemoryTile(slice, forall);
  if (failed(tile))
    return failure();
  if (!tile->isDense() || tile->padding)
    return refuse(op, "it inserts elements into a slice whose elements are "
                      "not neighbours");
  memory = capture(tile->memory);
  SmallVector<Value> address = llvm::map_to_vector(
      tile->offsets, [&](OpFoldResult offset) { return lookup(offset); });
  for (auto [dim, index] : llvm::zip(tile->dims, indices)) {
    Value &at = address[dim.inMemory];
    at = arith::AddIOp::create(b, op->getLoc(), at, lookup(index));
  }
  return address;
}

LogicalResult BlockConverter::convertInsertion(tensor::InsertOp op) {
  Value memory;
  FailureOr<SmallVector<Value>> indices =
      getElementIndices(op, op.getDest(), op.getIndices(), memory);
  if (failed(indices))
    return failure();
  memref::StoreOp::create(b, op.getLoc(), lookup(op.getScalar()), memory,
                          *indices);
  return success();
}

LogicalResult BlockConverter::convertInsertion(InsertDiagonalsOp op) {
  FailureOr<Value> tile = getSharedTile(op.getTile(), op);
  if (failed(tile))
    return failure();
  Value memory;
  FailureOr<SmallVector<Value>> indices =
      getElementIndices(op, op.getSums(), op.getIndices(), memory);
  if (failed(indices))
    return failure();
  tile::StoreDiagonalsOp::create(b, op.getLoc(), *tile, memory,
                                 ArrayRef(*indices).drop_back());
  return success();
}

LogicalResult
BlockConverter::convertInsertion(tensor::ParallelInsertSliceOp op) {
  Value source;
  FailureOr<MemoryTile> destination = getMemoryTile(op, source);
  if (failed(destination))
    return failure();
  Value slice = getWrittenSlice(op.getSource(), forall);
  if (!slice)
    return store(op, source, *destination);
  // It was stored when it was made.
  FailureOr<MemoryTile> from = getMemoryTile(slice, forall);
  if (succeeded(from) && from->isSameAs(*destination))
    return success();
  return refuse(op, "it stores a part of an output elsewhere than it is from");
}

LogicalResult BlockConverter::convertIsFinite(IsFiniteOp op) {
  // Columns of a tile are finite if the whole tile is, which is less often.
  FailureOr<SharedColumns> columns = getSharedColumns(op.getTile(), op);
  if (failed(columns))
    return failure();
  mapping.map(op.getResult(), tile::IsFiniteOp::create(
                                  b, op.getLoc(), b.getI1Type(), columns->tile,
                                  /*warps=*/IntegerAttr())
                                  .getResult());
  return success();
}

LogicalResult BlockConverter::convertZeroNonfinite(ZeroNonfiniteOp op) {
  Value tile = op.getTile();
  if (!isMemoryTile(tile, forall))
    return refuse(op, "a tile is made finite as it is copied from memory, not "
                      "from registers");
  FailureOr<Value> copied = fetch(tile, op);
  if (failed(copied))
    return failure();
  if (!*copied)
    return refuse(op, "a tile is made finite as it is copied: from rows of "
                      "multiples of 16 bytes, side by side in memory");
  // Others want the tile as it is.
  Operation *finite = b.clone(*copied->getDefiningOp());
  cast<tile::FetchOp>(finite).setFinite(true);
  finite->getResult(0).setType(getSharedType(op.getResult()));
  fetched[op.getResult()] = finite->getResult(0);
  return success();
}

FailureOr<Value> BlockConverter::dequantize(DequantizeTileOp op) {
  if (Value known = fetched.lookup(op.getResult()))
    return known;
  FailureOr<Value> copied = isMemoryTile(op.getTile(), forall)
                                ? fetch(op.getTile(), op)
                                : FailureOr<Value>(Value());
  if (failed(copied))
    return failure();
  if (!*copied)
    return refuse(op, "a quantized tile is dequantized from memory: from rows "
                      "of multiples of 16 bytes, side by side there");
  RankedTensorType type = op.getResult().getType();
  OpBuilder::InsertionGuard guard(b);
  setInsertionPointAt(op, /*isEarly=*/false);
  // Behind the copy, where both stand in front of a loop.
  if (Block *block = b.getInsertionBlock();
      block == copied->getParentBlock() &&
      b.getInsertionPoint() != block->end() &&
      !copied->getDefiningOp()->isBeforeInBlock(&*b.getInsertionPoint()))
    b.setInsertionPointAfterValue(*copied);
  auto result = tile::DequantizeOp::create(
      b, op.getLoc(),
      tile::SmemType::get(type.getDimSize(0), type.getDimSize(1),
                          type.getElementType()),
      *copied);
  {
    OpBuilder::InsertionGuard guard(b);
    Block *body =
        b.createBlock(&result.getScale(), {}, b.getIndexType(), op.getLoc());
    IRMapping inner;
    Block &scale = op.getScale().front();
    inner.map(scale.getArgument(0), body->getArgument(0));
    for (Operation &each : scale.without_terminator())
      if (failed(copyScalar(b, each, inner)))
        return failure();
    Value yielded = cast<YieldOp>(scale.getTerminator()).getResult();
    yielded = inner.contains(yielded) ? inner.lookup(yielded) : lookup(yielded);
    tile::YieldOp::create(b, op.getLoc(), yielded);
  }
  return fetched[op.getResult()] = result.getResult();
}
