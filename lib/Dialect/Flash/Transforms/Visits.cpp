//===- Visits.cpp - Builds visits of tiles and what they load -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Visits.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace flash;

SmallVector<Value> flash::emitVisit(
    OpBuilder &b, Location loc, const VisitedTiles &tiles, ValueRange state,
    function_ref<SmallVector<Value>(VisitOp visit, ValueRange state)> step) {
  SmallVector<Value> exist =
      getValueOrCreateConstantIndexOp(b, loc, tiles.exist);
  auto visit = VisitOp::create(
      b, loc, tiles.kind, tiles.tile, tiles.from, tiles.to, tiles.by,
      tiles.distance, exist, tiles.list, tiles.counts, tiles.ranks, tiles.heads,
      tiles.row, tiles.cut ? b.getI64IntegerAttr(tiles.cut) : IntegerAttr(),
      state,
      /*tiles=*/TilesAttr(), /*contributors=*/TilesAttr(), tiles.fillOnce,
      tiles.readAhead, tiles.neutralZeros, /*bounded=*/false, tiles.multiples);
  SmallVector<Type> types(visit.getNumStartArgs() + visit.getNumRowArgs() +
                              (tiles.ranks ? 1 : 0) + (tiles.heads ? 1 : 0),
                          b.getIndexType());
  llvm::append_range(types, state.getTypes());
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&visit.getBody(), {}, types,
                SmallVector<Location>(types.size(), loc));
  NextOp::create(b, loc, step(visit, ValueRange(visit.getStateArgs())));
  return SmallVector<Value>(visit.getResults());
}

Value flash::loadRows(OpBuilder &b, Location loc, Value source,
                      ArrayRef<OpFoldResult> first, OpFoldResult rows,
                      int64_t tile, bool toEnd, int64_t heads,
                      std::optional<ColumnsOfPosition> columns) {
  auto type = cast<RankedTensorType>(source.getType());
  SmallVector<int64_t> shape = {tile};
  llvm::append_range(shape, type.getShape().drop_front(3));
  if (columns)
    shape.back() = columns->count;
  bool exist = getConstantIntValue(rows) == tile / heads;
  return LoadRowsOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), source,
      getValueOrCreateConstantIndexOp(b, loc, first),
      exist ? Value() : getValueOrCreateConstantIndexOp(b, loc, rows),
      columns ? columns->first : Value(),
      heads > 1 ? b.getI64IntegerAttr(heads) : IntegerAttr(), !exist && toEnd);
}

OpFoldResult flash::endUnlessEmpty(OpBuilder &b, Location loc,
                                   OpFoldResult rows, OpFoldResult end) {
  Value none = arith::ConstantIndexOp::create(b, loc, 0);
  Value isSome = arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::sgt,
      getValueOrCreateConstantIndexOp(b, loc, rows), none);
  return arith::SelectOp::create(
             b, loc, isSome, getValueOrCreateConstantIndexOp(b, loc, end), none)
      .getResult();
}

bool flash::isStoredByLengths(Value result, Value lengths) {
  AddressOpInterface address = AddressOpInterface::ofStored(result);
  return address && address.hasLengths(lengths);
}

Value flash::getRowsOfKernel(Value view, ValueRange results, Value lengths) {
  bool areStored = llvm::all_of(results, [&](Value result) {
    return isStoredByLengths(result, lengths);
  });
  return areStored && view.getDefiningOp<AddressOpInterface>() ? view : Value();
}

std::string flash::findSplitFault(Value view, ValueRange results,
                                  Value lengths) {
  bool areSome = llvm::any_of(results, [&](Value result) {
    return isStoredByLengths(result, lengths);
  });
  return areSome && !getRowsOfKernel(view, results, lengths)
             ? "splits of keys need packed queries with all results packed, or "
               "none; leave out num_splits, split_ctas and split_keys"
             : "";
}

void flash::storeRows(OpBuilder &b, Location loc, Value tile, Value destination,
                      ArrayRef<OpFoldResult> position, OpFoldResult rows,
                      int64_t heads, Value column) {
  SmallVector<Value> at = getValueOrCreateConstantIndexOp(b, loc, position);
  int64_t tileRows = cast<RankedTensorType>(tile.getType()).getDimSize(0);
  Value stored;
  if (getConstantIntValue(rows) != tileRows / heads)
    stored = getValueOrCreateConstantIndexOp(b, loc, rows);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(KernelOp::of(destination).getStores());
  StoreRowsOp::create(b, loc, tile, destination, at, stored, column,
                      heads > 1 ? b.getI64IntegerAttr(heads) : IntegerAttr());
}
