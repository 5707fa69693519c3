//===- RowSoftmax.cpp - The softmax of whole rows in two passes -----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first pass is the online softmax (Milakov and Gimelshein, arXiv
// 1805.02867), with a maximum and a sum for each lane rather than for each row:
// lanes shuffle values only once, after the loop. The second pass writes.
//
//===----------------------------------------------------------------------===//

#include "RowSoftmax.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace flash;

static constexpr double minusInfinity =
    -std::numeric_limits<double>::infinity();

namespace {
class RowSoftmaxEmitter {
public:
  RowSoftmaxEmitter(OpBuilder &b, Location loc, int64_t rows, int64_t warps,
                    const RowSoftmax &softmax);
  void run();

private:
  RankedTensorType warpRows(ArrayRef<int64_t> shape, int64_t vector) {
    auto layout = tile::WarpRowsAttr::get(b.getContext(), warps, vector);
    return RankedTensorType::get(shape, b.getF32Type(), layout);
  }
  Value splat(RankedTensorType type, double value) {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, b.getF32FloatAttr(value)));
  }
  Value broadcast(Value value, RankedTensorType type) {
    return tile::BroadcastOp::create(b, loc, type, value);
  }
  /// exp(x - y).
  Value expOfDifference(Value x, Value y);
  /// `value`, or `replacement` where it equals `special`.
  Value replace(Value value, double special, double replacement);
  Value reduce(tile::Reduction kind, Value lanes) {
    return tile::ReduceOp::create(b, loc, rowsType, kind, lanes);
  }
  Value fold(tile::Reduction kind, Value x, Value lanes) {
    return tile::FoldOp::create(b, loc, lanesType, kind, x, lanes);
  }

  /// Indices of a tile whose first column is `column`, and how many columns
  /// exist from there on.
  SmallVector<Value> getIndices(const MemoryPlace &place, Value column);
  Value columnsFrom(Value column) {
    return arith::SubIOp::create(b, loc, softmax.columns, column);
  }
  Value read(Value column) {
    return tile::ReadOp::create(b, loc, tileType, softmax.input.memory,
                                getIndices(softmax.input, column), softmax.rows,
                                columnsFrom(column), /*aligned=*/false);
  }

  OpBuilder &b;
  Location loc;
  int64_t warps;
  const RowSoftmax &softmax;
  Type elementType;
  RankedTensorType tileType, lanesType, rowsType;
};
} // namespace

RowSoftmaxEmitter::RowSoftmaxEmitter(OpBuilder &b, Location loc, int64_t rows,
                                     int64_t warps, const RowSoftmax &softmax)
    : b(b), loc(loc), warps(warps), softmax(softmax) {
  auto memory = cast<MemRefType>(softmax.input.memory.getType());
  elementType = memory.getElementType();
  // A lane has up to twice 16 bytes: more take so many registers that fewer
  // warps are there to hide the latency of memory.
  int64_t vector = 128 / elementType.getIntOrFloatBitWidth();
  int64_t columns = 2 * 32 * vector;
  if (!memory.isDynamicDim(memory.getRank() - 1))
    columns = std::clamp<int64_t>(
        llvm::alignTo(memory.getShape().back(), 32 * vector), 32 * vector,
        columns);
  tileType = warpRows({rows, columns}, vector);
  lanesType = warpRows({rows, 32}, 1);
  rowsType = warpRows(rows, 1);
}

Value RowSoftmaxEmitter::expOfDifference(Value x, Value y) {
  Value difference = arith::SubFOp::create(b, loc, x, y);
  auto type = cast<RankedTensorType>(x.getType());
  Value scaled = arith::MulFOp::create(b, loc, difference,
                                       splat(type, llvm::numbers::log2e));
  return math::Exp2Op::create(b, loc, scaled);
}

Value RowSoftmaxEmitter::replace(Value value, double special,
                                 double replacement) {
  auto type = cast<RankedTensorType>(value.getType());
  Value found = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, value,
                                      splat(type, special));
  return arith::SelectOp::create(b, loc, found, splat(type, replacement),
                                 value);
}

SmallVector<Value> RowSoftmaxEmitter::getIndices(const MemoryPlace &place,
                                                 Value column) {
  SmallVector<Value> indices(place.indices);
  indices.back() = arith::AddIOp::create(b, loc, indices.back(), column);
  return indices;
}

void RowSoftmaxEmitter::run() {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value step = arith::ConstantIndexOp::create(b, loc, tileType.getDimSize(1));
  auto first = scf::ForOp::create(
      b, loc, zero, softmax.columns, step,
      ValueRange{splat(lanesType, minusInfinity), splat(lanesType, 0)});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(first.getBody());
    Value x = read(first.getInductionVar());
    Value max = first.getRegionIterArgs()[0],
          sum = first.getRegionIterArgs()[1];
    Value newMax = fold(tile::Reduction::Max, x, max);
    // While a lane has seen no number, its maximum is -inf, and -inf - -inf is
    // NaN.
    Value shift = replace(newMax, minusInfinity, 0);
    Value p = expOfDifference(x, broadcast(shift, tileType));
    Value rescaled =
        arith::MulFOp::create(b, loc, sum, expOfDifference(max, shift));
    Value newSum = fold(tile::Reduction::Add, p, rescaled);
    scf::YieldOp::create(b, loc, ValueRange{newMax, newSum});
  }

  Value laneMax = first.getResult(0), laneSum = first.getResult(1);
  Value max = reduce(tile::Reduction::Max, laneMax), sink;
  if (softmax.sink) {
    sink = broadcast(softmax.sink, rowsType);
    max = arith::MaxNumFOp::create(b, loc, max, sink);
  }
  Value shift = replace(max, minusInfinity, 0);
  Value factor = expOfDifference(laneMax, broadcast(shift, lanesType));
  Value sum = reduce(tile::Reduction::Add,
                     arith::MulFOp::create(b, loc, laneSum, factor));
  if (sink)
    sum = arith::AddFOp::create(b, loc, sum, expOfDifference(sink, shift));
  Value divisor = softmax.zeroEmptyRows ? replace(sum, 0, 1) : sum;
  Value inverse = arith::DivFOp::create(b, loc, splat(rowsType, 1), divisor);

  auto second = scf::ForOp::create(b, loc, zero, softmax.columns, step);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(second.getBody());
    Value column = second.getInductionVar();
    Value p = expOfDifference(read(column), broadcast(shift, tileType));
    p = arith::MulFOp::create(b, loc, p, broadcast(inverse, tileType));
    if (!elementType.isF32())
      p = arith::TruncFOp::create(b, loc, tileType.clone(elementType), p);
    tile::StoreOp::create(b, loc, p, softmax.output.memory,
                          getIndices(softmax.output, column), softmax.rows,
                          columnsFrom(column));
  }
  if (!softmax.lse.memory)
    return;
  Value lse =
      arith::AddFOp::create(b, loc, max, math::LogOp::create(b, loc, sum));
  tile::StoreOp::create(b, loc, lse, softmax.lse.memory, softmax.lse.indices,
                        softmax.rows, /*columns=*/Value());
}

void flash::emitRowSoftmax(OpBuilder &b, Location loc, int64_t rows,
                           int64_t warps, const RowSoftmax &softmax) {
  RowSoftmaxEmitter(b, loc, rows, warps, softmax).run();
}
