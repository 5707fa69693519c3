//===- Layouts.cpp - Which thread holds which element ---------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layouts.h"

#include "MemoryTile.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Machine/Machine.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace flash;

// Columns that belong together in a fragment.
static constexpr int64_t columnsOfBlock = 8;
// More would share the tiles in shared memory, but each reads all of them.
static constexpr int64_t mostWarpsByDefault = 4;
static constexpr int64_t mostWarpsOfWarpRows = 8;
static constexpr int64_t lanesOfWarp = 32;
// What a thread reads or writes at once at most.
static constexpr int64_t bitsAtOnce = 128;

static bool isTensor(Value value, int64_t rank) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == rank;
}

/// The warps over which all matrices of the loop can be spread, including
/// matrices in memory, which may be read to registers.
static int64_t chooseWarps(scf::ForallOp loop) {
  int64_t groups = 0;
  loop.walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (isTensor(result, 2))
        groups = std::gcd(
            groups, cast<RankedTensorType>(result.getType()).getDimSize(0) /
                        rowsOfWarp);
  });
  int64_t warps = std::clamp<int64_t>(groups, 1, mostWarpsByDefault);
  while (groups % warps != 0)
    --warps;
  return warps;
}

Layouts::Layouts(scf::ForallOp loop, int64_t warps)
    : warps(warps > 0 ? warps : chooseWarps(loop)) {
  loop.walk([&](Operation *op) { visit(op); });
  propagate();
  chooseWarpRows(loop, warps);
}

/// The loops of a linalg operation that go along the rows of its matrices and
/// along their columns; nothing if it has no matrices.
static std::optional<std::pair<unsigned, unsigned>>
getMatrixLoops(linalg::LinalgOp op) {
  std::optional<std::pair<unsigned, unsigned>> loops;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    // The last matrix is the one that is written.
    if (map.getNumResults() == 2 && map.isProjectedPermutation())
      loops = {map.getDimPosition(0), map.getDimPosition(1)};
  }
  return loops;
}

static bool is16Bits(Type type) {
  return type.isIntOrFloat() && type.getIntOrFloatBitWidth() == 16;
}

namespace {
/// What the tiles of a loop are that works along rows alone.
struct RowTiles {
  bool areOnly = true; ///< Whether it does.
  int64_t rows = 0;    ///< What numbers of rows are multiples of.
  int64_t columns = 0; ///< The most.
  int64_t bits = 0;    ///< Bits of the widest elements in memory.
  int64_t leastVector = 1;
  int64_t mostVector = bitsAtOnce; ///< Known to be in step with rows in memory.
  bool areFragments = true;        ///< Whether fragments have all shapes.

  void addMatrix(int64_t rows, int64_t columns, Type element);
  void addVector(int64_t rows, Type element);
  void addMemory(RankedTensorType tile, RankedTensorType memory);
};
} // namespace

void RowTiles::addMatrix(int64_t newRows, int64_t newColumns, Type element) {
  if (newRows <= 0 || newColumns <= 0) {
    areOnly = false;
    return;
  }
  rows = std::gcd(rows, newRows);
  columns = std::max(columns, newColumns);
  areFragments &= newRows % rowsOfWarp == 0 && newColumns % columnsOfBlock == 0;
  // Two elements of 16 bits share a register.
  if (is16Bits(element))
    leastVector = 2;
}

void RowTiles::addVector(int64_t newRows, Type element) {
  if (newRows <= 0 || is16Bits(element))
    areOnly = false;
  else
    rows = std::gcd(rows, newRows);
}

void RowTiles::addMemory(RankedTensorType tile, RankedTensorType memory) {
  if (tile.getRank() < 2 || !tile.getElementType().isIntOrFloat())
    return;
  bits = std::max<int64_t>(bits, tile.getElementTypeBitWidth());
  if (int64_t size = memory.getShape().back(); !ShapedType::isDynamic(size))
    mostVector = std::gcd(mostVector, size);
}

/// Whether the body of the operation has 16 bits for each row, other than to
/// widen them: a thread would hold one in half a register.
static bool hasHalvesOfRows(linalg::LinalgOp op) {
  llvm::SmallDenseMap<Value, int64_t> ranks;
  for (OpOperand &operand : op->getOpOperands())
    if (auto type = dyn_cast<RankedTensorType>(operand.get().getType())) {
      BlockArgument argument = op.getMatchingBlockArgument(&operand);
      ranks[argument] = type.getRank();
      if (type.getRank() == 1 && is16Bits(type.getElementType()) &&
          !llvm::all_of(argument.getUsers(), llvm::IsaPred<arith::ExtFOp>))
        return true;
    }
  for (Operation &inner : *op.getBlock()) {
    int64_t rank = 0;
    for (Value operand : inner.getOperands())
      rank = std::max(rank, ranks.lookup(operand));
    for (Value result : inner.getResults()) {
      ranks[result] = rank;
      if (rank == 1 && isa<FloatType>(result.getType()) &&
          is16Bits(result.getType()))
        return true;
    }
  }
  return false;
}

static RowTiles getRowTiles(scf::ForallOp loop) {
  RowTiles tiles;
  auto add = [&](Value tile) {
    auto type = dyn_cast<RankedTensorType>(tile.getType());
    if (!type)
      return;
    if (type.getRank() == 2)
      tiles.addMatrix(type.getDimSize(0), type.getDimSize(1),
                      type.getElementType());
    else if (type.getRank() == 1)
      tiles.addVector(type.getDimSize(0), type.getElementType());
    else
      tiles.areOnly = false;
  };
  auto addSource = [&](Value tile) {
    if (auto type = dyn_cast<RankedTensorType>(tile.getType());
        type && isMemoryTile(tile, loop))
      tiles.addMemory(type, getMemoryType(tile, loop));
  };
  loop.walk([&](Operation *op) {
    if (isa<IsFiniteOp, ZeroNonfiniteOp, DequantizeTileOp, InterleaveOp, AnyOp>(
            op)) {
      tiles.areOnly = false;
    } else if (auto store = dyn_cast<tensor::ParallelInsertSliceOp>(op)) {
      tiles.addMemory(store.getSourceType(), store.getDestType());
    } else if (auto store = dyn_cast<tensor::InsertSliceOp>(op)) {
      tiles.addMemory(store.getSourceType(), store.getDestType());
    } else if (isa<linalg::FillOp>(op)) {
      llvm::for_each(op->getResults(), add);
    } else if (auto generic = dyn_cast<linalg::LinalgOp>(op)) {
      auto loops = getMatrixLoops(generic);
      bool isOfVectors = !loops && generic.getNumLoops() == 1 &&
                         llvm::all_of(op->getOperandTypes(), [](Type type) {
                           auto tensor = dyn_cast<RankedTensorType>(type);
                           return !tensor || tensor.getRank() < 2;
                         });
      if ((!isOfVectors && (!loops || generic.getNumLoops() != 2)) ||
          hasHalvesOfRows(generic)) {
        tiles.areOnly = false;
        return;
      }
      SmallVector<int64_t> ranges = generic.getStaticLoopRanges();
      for (OpOperand &use : op->getOpOperands()) {
        Value operand = use.get();
        auto type = dyn_cast<RankedTensorType>(operand.getType());
        if (type && type.getRank() == 2)
          tiles.addMatrix(ranges[loops->first], ranges[loops->second],
                          type.getElementType());
        else if (!loops || !isMemoryTile(operand, loop))
          add(operand); // Memory's vectors are read as what serves.
        addSource(operand);
      }
    } else if (OpTrait::hasElementwiseMappableTraits(op)) {
      llvm::for_each(op->getOperands(), add);
      llvm::for_each(op->getOperands(), addSource);
      llvm::for_each(op->getResults(), add);
    } else if (isa<scf::ForOp, scf::IfOp>(op)) {
      for (Value result : op->getResults())
        if (!getWrittenSlice(result, loop))
          add(result);
    }
  });
  return tiles;
}

void Layouts::chooseWarpRows(scf::ForallOp loop, int64_t wantedWarps) {
  // A value for each column is no lane's.
  if (llvm::any_of(vectors, [&](auto &vector) {
        return vector.second == VectorOf::Columns &&
               !isMemoryTile(vector.first, loop);
      }))
    return;
  RowTiles tiles = getRowTiles(loop);
  if (!tiles.areOnly || tiles.columns == 0)
    return;
  int64_t atOnce = bitsAtOnce / std::max<int64_t>(tiles.bits, 16);
  // Fragments leave no lane of a narrow tile without an element.
  if (tiles.areFragments && tiles.columns < lanesOfWarp * atOnce)
    return;
  // So many lanes share a row that each reads 16 bytes of it, or what is in
  // step with it.
  int64_t most =
      std::max(std::min(atOnce, tiles.mostVector), tiles.leastVector);
  lanes = std::min<int64_t>(
      llvm::PowerOf2Ceil(llvm::divideCeil(tiles.columns, most)), lanesOfWarp);
  warps = wantedWarps > 0 ? wantedWarps : 1;
  while (lanesOfWarp * warps % lanes != 0 ||
         tiles.rows % getNumRowsAtOnce() != 0)
    lanes += std::min(lanes, lanesOfWarp);
  if (wantedWarps == 0) {
    int64_t rowsAtOnce = getNumRowsAtOnce();
    warps = std::min(tiles.rows / rowsAtOnce, mostWarpsOfWarpRows);
    while (tiles.rows % (warps * rowsAtOnce) != 0)
      --warps;
    // Where there are few rows, warps share them as long as each lane has
    // something to read.
    while (2 * warps <= mostWarpsOfWarpRows &&
           tiles.columns >= 2 * lanes * atOnce) {
      lanes *= 2;
      warps *= 2;
    }
  }
  vector = llvm::PowerOf2Ceil(llvm::divideCeil(tiles.columns, lanes));
  vector = std::max(std::min(vector, most), tiles.leastVector);
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
  auto loops = getMatrixLoops(op);
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
    if (!loops) {
      if (other)
        unite(other, vector);
      other = vector;
      continue;
    }
    bool isOfColumns = map.getDimPosition(0) == loops->second;
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
  if (ShapedType::isDynamicShape(shape) || shape.empty() || shape.size() > 2 ||
      !element.isIntOrFloat())
    return RankedTensorType();
  MLIRContext *context = element.getContext();
  if (isWarpRows()) {
    bool isMatrix = shape.size() == 2;
    if ((!isMatrix && of == VectorOf::Columns) || shape[0] <= 0 ||
        shape[0] % getNumRowsAtOnce() != 0 || shape.back() <= 0 ||
        (is16Bits(element) && (!isMatrix || vector == 1)))
      return RankedTensorType();
    return RankedTensorType::get(
        shape, element,
        tile::WarpRowsAttr::get(context, warps, isMatrix ? vector : 1, lanes));
  }
  bool hasRows = shape.size() == 2 || of == VectorOf::Rows;
  bool hasColumns = shape.size() == 2 || of == VectorOf::Columns;
  if ((hasRows && (shape[0] <= 0 || shape[0] % (rowsOfWarp * warps) != 0)) ||
      (hasColumns && (shape.back() <= 0 || shape.back() % columnsOfBlock != 0)))
    return RankedTensorType();
  Attribute layout;
  if (shape.size() == 2)
    layout = tile::FragmentAttr::get(context, warps);
  else if (of == VectorOf::Rows)
    layout = tile::RowsAttr::get(context, warps);
  else
    layout = tile::ColumnsAttr::get(context, warps);
  return RankedTensorType::get(shape, element, layout);
}
