//===- Layouts.cpp - Which thread holds which element ---------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layouts.h"

#include "flash/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace flash;

// Of the rows that one warp holds of a fragment, and of the columns that belong
// together in it.
static constexpr int64_t rowsOfWarp = 16, columnsOfBlock = 8;
// More would share the tiles in shared memory, but each reads all of them.
static constexpr int64_t mostWarpsUnasked = 4;

static bool isTensor(Value value, int64_t rank) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == rank;
}

/// The warps over which all matrices of the loop can be spread, those of
/// memory, too, which may be read to registers.
static int64_t chooseWarps(scf::ForallOp loop) {
  int64_t groups = 0;
  loop.walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (isTensor(result, 2))
        groups = std::gcd(
            groups, cast<RankedTensorType>(result.getType()).getDimSize(0) /
                        rowsOfWarp);
  });
  int64_t warps = std::clamp<int64_t>(groups, 1, mostWarpsUnasked);
  while (groups % warps != 0)
    --warps;
  return warps;
}

Layouts::Layouts(scf::ForallOp loop, int64_t warps)
    : warps(warps > 0 ? warps : chooseWarps(loop)) {
  loop.walk([&](Operation *op) { visit(op); });
  propagate();
}

void Layouts::unite(Value x, Value y) {
  if (!isTensor(x, 1) || !isTensor(y, 1))
    return;
  united[x].push_back(y);
  united[y].push_back(x);
}

void Layouts::unite(ValueRange x, ValueRange y) {
  for (auto [mine, theirs] : llvm::zip_equal(x, y))
    unite(mine, theirs);
}

void Layouts::visit(linalg::LinalgOp op) {
  // Which loop goes along the rows of the matrices, and which along columns.
  std::optional<unsigned> rows, columns;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    // The last matrix is the one that is written.
    if (map.getNumResults() == 2 && map.isProjectedPermutation()) {
      rows = map.getDimPosition(0);
      columns = map.getDimPosition(1);
    }
  }
  Value other;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (map.getNumResults() != 1 || !map.isProjectedPermutation())
      continue;
    Value vector = operand.get();
    if (OpResult result = op.isDpsInit(&operand)
                              ? op->getResult(op.getNumDpsInits() > 0
                                                  ? operand.getOperandNumber() -
                                                        op.getNumDpsInputs()
                                                  : 0)
                              : OpResult())
      unite(vector, result);
    if (!rows) {
      if (other)
        unite(other, vector);
      other = vector;
      continue;
    }
    bool isOfColumns = map.getDimPosition(0) == *columns;
    vectors.try_emplace(vector,
                        isOfColumns ? VectorOf::Columns : VectorOf::Rows);
  }
}

void Layouts::visit(Operation *op) {
  if (auto generic = dyn_cast<linalg::LinalgOp>(op)) {
    // Any vector may start as a constant.
    if (!isa<linalg::FillOp>(op))
      visit(generic);
    else
      unite(op->getOperand(1), op->getResult(0));
    return;
  }
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    unite(loop.getInitArgs(), loop.getRegionIterArgs());
    unite(loop.getResults(), loop.getRegionIterArgs());
    unite(loop.getYieldedValues(), loop.getRegionIterArgs());
    return;
  }
  if (auto choice = dyn_cast<scf::IfOp>(op)) {
    if (choice.getNumResults() == 0)
      return;
    unite(choice.getResults(), choice.thenYield().getOperands());
    unite(choice.getResults(), choice.elseYield().getOperands());
    return;
  }
  if (OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1)
    for (Value operand : op->getOperands())
      unite(operand, op->getResult(0));
}

void Layouts::propagate() {
  SmallVector<Value> list;
  for (auto [vector, of] : vectors)
    list.push_back(vector);
  for (size_t i = 0; i < list.size(); ++i) {
    VectorOf of = vectors.lookup(list[i]);
    for (Value other : united[list[i]])
      if (vectors.try_emplace(other, of).second)
        list.push_back(other);
  }
}

RankedTensorType Layouts::getType(Value tile) const {
  auto type = dyn_cast<RankedTensorType>(tile.getType());
  if (!type)
    return RankedTensorType();
  auto of = vectors.find(tile);
  return getType(type.getShape(), type.getElementType(),
                 of == vectors.end() ? VectorOf::Rows : of->second);
}

RankedTensorType Layouts::getType(ArrayRef<int64_t> shape, Type element,
                                  VectorOf of) const {
  if (ShapedType::isDynamicShape(shape) || shape.empty() || shape.size() > 2)
    return RankedTensorType();
  bool hasRows = shape.size() == 2 || of == VectorOf::Rows;
  bool hasColumns = shape.size() == 2 || of == VectorOf::Columns;
  if ((hasRows && (shape[0] <= 0 || shape[0] % (rowsOfWarp * warps) != 0)) ||
      (hasColumns && (shape.back() <= 0 || shape.back() % columnsOfBlock != 0)))
    return RankedTensorType();
  MLIRContext *context = element.getContext();
  Attribute layout;
  if (shape.size() == 2)
    layout = tile::FragmentAttr::get(context, warps);
  else if (of == VectorOf::Rows)
    layout = tile::RowsAttr::get(context, warps);
  else
    layout = tile::ColumnsAttr::get(context, warps);
  return RankedTensorType::get(shape, element, layout);
}
