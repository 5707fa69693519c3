//===- Memory.cpp - Slices as fetches, insertions as stores ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace flash;

/// The dimensions of the memory with those of the tile last.
static SmallVector<unsigned> getOrder(const MemoryTile &tile) {
  int64_t rank = tile.offsets.size();
  SmallVector<unsigned> order;
  for (unsigned dim = 0; dim < rank; ++dim)
    if (llvm::none_of(tile.dims, [&](const MemoryTile::Dim &own) {
          return own.inMemory == dim;
        }))
      order.push_back(dim);
  for (const MemoryTile::Dim &own : tile.dims)
    order.push_back(own.inMemory);
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

FailureOr<BlockConverter::SharedTile>
BlockConverter::fetch(Value value, Operation *user) {
  if (auto known = fetched.find(value); known != fetched.end())
    return known->second;
  FailureOr<MemoryTile> tile = getMemoryTile(value, forall);
  if (failed(tile))
    return failure();
  Operation *at = tile->definition ? tile->definition : user;
  if (isOutput(tile->memory))
    return refuse(at, "it reads an output of the loop, which other blocks "
                      "write; take what it starts from as an input");
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() != 2 || !type.hasStaticShape())
    return refuse(at, "a tile of memory for a product is a matrix of static "
                      "size");
  if (!isa<Float16Type, BFloat16Type, Float32Type>(type.getElementType()))
    return refuse(at, "tiles in shared memory are of f16, bf16 or f32");
  // Its columns lie next to each other, or its rows do.
  SharedTile result;
  unsigned last = tile->offsets.size() - 1;
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  if (tile->dims[1].inMemory != last && tile->dims[0].inMemory == last) {
    result.transposed = true;
    std::swap(tile->dims[0], tile->dims[1]);
    std::swap(rows, columns);
  }
  if (tile->dims[1].inMemory != last)
    return refuse(at, "neither its rows nor its columns are along the last "
                      "dimension of the memory, whose elements are neighbours");
  if (getExisting(tile->dims[1], columns))
    return refuse(at, "it is padded along the last dimension of the memory; "
                      "pad rows, or take a narrower tile");

  OpBuilder::InsertionGuard guard(b);
  setInsertionPointAt(tile->definition);
  SmallVector<unsigned> order = getOrder(*tile);
  Value memory = capture(tile->memory, order);
  SmallVector<Value> indices;
  for (unsigned dim : order)
    indices.push_back(lookup(tile->offsets[dim]));
  if (cast<RankedTensorType>(tile->memory.getType()).getDimSize(last) ==
      columns)
    indices.pop_back();
  Value existing;
  if (OpFoldResult some = getExisting(tile->dims[0], rows))
    existing = lookup(some);
  result.value = tile::FetchOp::create(
      b, at->getLoc(),
      tile::SmemType::get(rows, columns, type.getElementType()), memory,
      indices, existing, /*unfilled=*/existing && tile->paddedWithAnything);
  fetched[value] = result;
  return result;
}

FailureOr<Value> BlockConverter::load(Value value, RankedTensorType type,
                                      Operation *user) {
  if (type.getRank() == 2) {
    FailureOr<SharedTile> tile = fetch(value, user);
    if (failed(tile))
      return failure();
    if (tile->transposed)
      return refuse(user, "an operand of it lies transposed in memory");
    return tile::LoadOp::create(b, user->getLoc(), type, tile->value)
        .getResult();
  }
  FailureOr<MemoryTile> tile = getMemoryTile(value, forall);
  if (failed(tile))
    return failure();
  Operation *at = tile->definition ? tile->definition : user;
  if (isOutput(tile->memory))
    return refuse(at, "it reads an output of the loop, which other blocks "
                      "write; take what it starts from as an input");
  if (tile->dims.size() != 1 || !type.getElementType().isF32())
    return refuse(at, "a vector of memory is of f32");
  if (tile->dims[0].inMemory != tile->offsets.size() - 1)
    return refuse(at, "a vector lies along the last dimension of the memory, "
                      "whose elements are neighbours");
  SmallVector<Value> indices;
  for (OpFoldResult offset : tile->offsets)
    indices.push_back(lookup(offset));
  Value existing;
  if (OpFoldResult some = getExisting(tile->dims[0], type.getDimSize(0)))
    existing = lookup(some);
  return tile::ReadOp::create(b, user->getLoc(), type, capture(tile->memory),
                              indices, existing, /*columns=*/Value(),
                              /*aligned=*/false)
      .getResult();
}

LogicalResult BlockConverter::store(tensor::ParallelInsertSliceOp op) {
  Value source = stripCasts(op.getSource());
  FailureOr<MemoryTile> place = getMemoryTile(op);
  if (failed(place))
    return failure();
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
  unsigned last = place->offsets.size() - 1;
  if (static_cast<int64_t>(place->dims.size()) != type->getRank() ||
      place->dims.back().inMemory != last)
    return refuse(op, "the last dimension of the tile is not along that of the "
                      "memory, whose elements are neighbours");
  SmallVector<unsigned> order = getOrder(*place);
  SmallVector<Value> indices;
  for (unsigned dim : order)
    indices.push_back(lookup(place->offsets[dim]));
  if (type->getRank() == 2) {
    int64_t columns = type->getDimSize(1);
    if (getExisting(place->dims[1], columns))
      return refuse(op, "it stores some of the columns of a tile; store all");
    if (op.getDestType().getDimSize(last) == columns)
      indices.pop_back();
  }
  Value existing;
  if (OpFoldResult some = getExisting(place->dims[0], type->getDimSize(0)))
    existing = lookup(some);
  tile::StoreOp::create(b, op.getLoc(), *registers,
                        capture(op.getDest(), order), indices, existing,
                        /*columns=*/Value());
  return success();
}

LogicalResult BlockConverter::convertIsFinite(IsFiniteOp op) {
  FailureOr<SharedTile> tile = fetch(op.getTile(), op);
  if (failed(tile))
    return failure();
  mapping.map(op.getResult(),
              tile::IsFiniteOp::create(b, op.getLoc(), b.getI1Type(),
                                       tile->value, /*warps=*/IntegerAttr())
                  .getResult());
  return success();
}
