//===- Memory.cpp - Slices as fetches, insertions as stores ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace flash;

/// The dimensions of the memory with those of the tile last.
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

/// Puts the insertion point where the tile is made, or behind the last of what
/// has come from its block before.
void BlockConverter::setInsertionPointAt(Operation *definition) {
  auto place = definition ? places.find(definition) : places.end();
  if (place == places.end()) {
    b.setInsertionPointToStart(&kernel.getBody().front());
    return;
  }
  // In its own block it is made where it is first needed.
  auto [block, before] = place->second;
  if (block == b.getInsertionBlock())
    return;
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
  if (!isa<Float16Type, BFloat16Type, Float32Type>(
          getElementTypeOrSelf(value.getType())))
    return refuse(at, "tiles are of f16, bf16 and f32");
  return tile;
}

BlockConverter::Place BlockConverter::getPlace(const MemoryTile &tile,
                                               ArrayRef<int64_t> shape) {
  SmallVector<unsigned> order = getOrder(tile);
  Place place;
  place.memory = capture(tile.memory, order);
  for (unsigned dim : order)
    place.indices.push_back(lookup(tile.offsets[dim]));
  // Whole rows need no first column.
  auto type = cast<RankedTensorType>(tile.memory.getType());
  if (shape.size() == 2 && type.getShape().back() == shape.back())
    place.indices.pop_back();
  if (OpFoldResult some = getExisting(tile.dims[0], shape[0]))
    place.existing = lookup(some);
  if (int64_t packed = tile.dims[0].packed)
    place.packed = b.getI64IntegerAttr(packed);
  return place;
}

FailureOr<Value> BlockConverter::fetch(Value value, Operation *user) {
  if (Value known = fetched.lookup(value))
    return known;
  FailureOr<MemoryTile> tile = getInput(value, user);
  if (failed(tile))
    return failure();
  // Rows lie next to each other in any order of the dimensions, columns along
  // the last of them.
  auto type = cast<RankedTensorType>(value.getType());
  if (!tile->isPlain() || type.getRank() != 2 || !type.hasStaticShape() ||
      tile->dims[1].inMemory != tile->offsets.size() - 1 ||
      getExisting(tile->dims[1], type.getDimSize(1)))
    return Value();
  auto shape = tile::SmemType::get(type.getDimSize(0), type.getDimSize(1),
                                   type.getElementType());

  // Another value of the program may be the same tile: as keys and as values,
  // say, of which only the padding is written twice.
  Block *block = tile->definition ? tile->definition->getBlock() : nullptr;
  for (auto &[other, known] : fetches)
    if (block && other.definition && other.definition->getBlock() == block &&
        other.isSameAs(*tile) && known.getResult().getType() == shape)
      return fetched[value] = known.getResult();

  OpBuilder::InsertionGuard guard(b);
  setInsertionPointAt(tile->definition);
  Place place = getPlace(*tile, type.getShape());
  auto fetch = tile::FetchOp::create(
      b, value.getLoc(), shape, place.memory, place.indices, place.existing,
      /*unfilled=*/place.existing && tile->isPaddedWithAnything(),
      place.packed);
  fetches.push_back({*tile, fetch});
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
  SmallVector<Range> ranges;
  for (auto [dim, size] : llvm::zip_equal(tile->dims, type.getShape())) {
    Range range;
    if (!isZeroInteger(dim.low))
      range.low = lookup(dim.low);
    if (range.low || getExisting(dim, size))
      range.existing = lookup(dim.existing);
    ranges.push_back(range);
  }
  Value memory = capture(tile->memory);
  Value padding = constantF32(0.0);
  if (tile->padding && !tile->isPaddedWithAnything())
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
  for (auto [dim, range, position] :
       llvm::zip_equal(tile->dims, ranges, body->getArguments())) {
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
  // Of as many bits as it has in memory, which is exact.
  if (type == f32)
    return map.getResult();
  return arith::TruncFOp::create(b, loc, type, map).getResult();
}

FailureOr<Value> BlockConverter::load(Value value, RankedTensorType type,
                                      Operation *user, bool transposed) {
  if (type.getRank() == 2 && !transposed) {
    FailureOr<Value> tile = fetch(value, user);
    if (failed(tile))
      return failure();
    if (*tile)
      return tile::LoadOp::create(b, user->getLoc(), type, *tile).getResult();
  }
  return read(value, type, user, transposed);
}

LogicalResult BlockConverter::store(tensor::ParallelInsertSliceOp op) {
  Value source;
  FailureOr<MemoryTile> view = getMemoryTile(op, source);
  if (failed(view))
    return failure();
  MemoryTile &place = *view;
  if (!place.isPlain())
    return refuse(op, "it stores to elements that are not neighbours; insert "
                      "with strides of 1");
  // Of a tile in registers the first rows may be stored alone.
  if (auto slice = source.getDefiningOp<tensor::ExtractSliceOp>();
      slice && !isMemoryTile(source, forall)) {
    if (!slice.hasUnitStride() ||
        !llvm::all_of(slice.getMixedOffsets(), isZeroInteger) ||
        slice.getDroppedDims().any())
      return refuse(slice, "of a tile in registers only the first rows can be "
                           "stored by themselves");
    source = slice.getSource();
  }
  FailureOr<RankedTensorType> type = getType(source, op);
  if (failed(type))
    return failure();
  FailureOr<Value> registers = getRegisters(source, *type, op);
  if (failed(registers))
    return failure();
  if (!isa<tile::FragmentAttr, tile::RowsAttr>(type->getEncoding()))
    return refuse(op, "it stores a value for each column");
  unsigned last = place.offsets.size() - 1;
  if (static_cast<int64_t>(place.dims.size()) != type->getRank() ||
      (!place.dims.back().packed && place.dims.back().inMemory != last))
    return refuse(op, "the last dimension of the tile is not along that of the "
                      "memory, whose elements are neighbours");
  if (type->getRank() == 2 && getExisting(place.dims[1], type->getDimSize(1)))
    return refuse(op, "it stores some of the columns of a tile; store all");
  auto [memory, indices, existing, packed] = getPlace(place, type->getShape());
  tile::StoreOp::create(b, op.getLoc(), /*add=*/false, *registers, memory,
                        indices, existing, /*columns=*/Value(), packed);
  return success();
}

LogicalResult BlockConverter::convertIsFinite(IsFiniteOp op) {
  FailureOr<Value> tile = getSharedTile(op.getTile(), op);
  if (failed(tile))
    return failure();
  mapping.map(op.getResult(),
              tile::IsFiniteOp::create(b, op.getLoc(), b.getI1Type(), *tile,
                                       /*warps=*/IntegerAttr())
                  .getResult());
  return success();
}
