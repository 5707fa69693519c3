//===- RowCombine.cpp - Attention from splits of the keys -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One pass over the splits with the online softmax of their log-sum-exps. The
// time is that of reading memory, so several splits are read before the first
// is needed.
//
//===----------------------------------------------------------------------===//

#include "RowCombine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace flash;

static constexpr double infinity = std::numeric_limits<double>::infinity();
// Splits whose elements are in registers at a time.
static constexpr int64_t mostSplitsAtOnce = 8;
// 16 bytes of f32.
static constexpr int64_t elementsOfLane = 4;

namespace {
class RowCombineEmitter {
public:
  RowCombineEmitter(OpBuilder &b, Location loc, int64_t rows, int64_t warps,
                    const RowCombine &combine);
  void run();

private:
  struct State {
    Value acc, max, sum;
  };
  /// The output and the log-sum-exp of one split.
  struct Split {
    Value out, lse;
  };

  Value splat(RankedTensorType type, double value) {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, b.getF32FloatAttr(value)));
  }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value broadcast(Value value, RankedTensorType type) {
    return tile::BroadcastOp::create(b, loc, type, value);
  }
  /// exp(x - shift) of values for each row.
  Value expOfDifference(Value x, Value shift);
  /// `value`, or `replacement` where it equals `special`.
  Value replace(Value value, double special, double replacement);
  Split read(Value split);
  State add(const State &state, ArrayRef<Split> splits);
  void store(const State &state);

  OpBuilder &b;
  Location loc;
  const RowCombine &combine;
  RankedTensorType tileType, rowsType;
  int64_t splitsAtOnce = mostSplitsAtOnce;
  bool mayExceed = true; ///< Whether some splits of a step may not exist.
};
} // namespace

RowCombineEmitter::RowCombineEmitter(OpBuilder &b, Location loc, int64_t rows,
                                     int64_t warps, const RowCombine &combine)
    : b(b), loc(loc), combine(combine) {
  auto warpRows = [&](ArrayRef<int64_t> shape, int64_t vector) {
    auto layout = tile::WarpRowsAttr::get(b.getContext(), warps, vector);
    return RankedTensorType::get(shape, b.getF32Type(), layout);
  };
  tileType = warpRows({rows, static_cast<int64_t>(llvm::alignTo(
                                 combine.valueDim, 32 * elementsOfLane))},
                      elementsOfLane);
  rowsType = warpRows(rows, 1);
  if (std::optional<int64_t> splits = getConstantIntValue(combine.splits)) {
    // As many in each step.
    int64_t steps = llvm::divideCeil(*splits, mostSplitsAtOnce);
    splitsAtOnce = llvm::divideCeil(*splits, steps);
    mayExceed = *splits % splitsAtOnce != 0;
  }
}

Value RowCombineEmitter::expOfDifference(Value x, Value shift) {
  Value difference = arith::SubFOp::create(b, loc, x, shift);
  Value scaled = arith::MulFOp::create(b, loc, difference,
                                       splat(rowsType, llvm::numbers::log2e));
  return math::Exp2Op::create(b, loc, scaled);
}

Value RowCombineEmitter::replace(Value value, double special,
                                 double replacement) {
  Value found = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, value,
                                      splat(rowsType, special));
  return arith::SelectOp::create(b, loc, found, splat(rowsType, replacement),
                                 value);
}

RowCombineEmitter::Split RowCombineEmitter::read(Value split) {
  // Of a split that does not exist the last one is read instead, as one without
  // keys.
  Value last, exists;
  if (mayExceed) {
    last = arith::SubIOp::create(b, loc, combine.splits, constant(1));
    exists =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, split, last);
    split = arith::MinSIOp::create(b, loc, split, last);
  }
  auto getIndices = [&](const MemoryPlace &place) {
    SmallVector<Value> indices(place.indices);
    indices[0] = arith::AddIOp::create(b, loc, indices[0], split);
    return indices;
  };
  Split result;
  result.lse = tile::ReadOp::create(b, loc, rowsType, combine.lses.memory,
                                    getIndices(combine.lses), combine.rows,
                                    /*columns=*/Value(), /*aligned=*/false);
  // The memory was allocated for this, and heads have a multiple of 8 elements.
  result.out = tile::ReadOp::create(
      b, loc, tileType, combine.outs.memory, getIndices(combine.outs),
      combine.rows, constant(combine.valueDim), /*aligned=*/true);
  if (mayExceed) {
    auto f32 = [&](double value) -> Value {
      return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
    };
    Value term =
        arith::SelectOp::create(b, loc, exists, f32(0.0), f32(-infinity));
    result.lse =
        arith::AddFOp::create(b, loc, result.lse, broadcast(term, rowsType));
  }
  return result;
}

RowCombineEmitter::State RowCombineEmitter::add(const State &state,
                                                ArrayRef<Split> splits) {
  State next;
  next.max = state.max;
  for (const Split &split : splits)
    next.max = arith::MaxNumFOp::create(b, loc, next.max, split.lse);
  // While a row has seen no key, its maximum is -inf, and -inf - -inf is NaN.
  Value shift = replace(next.max, -infinity, 0.0);
  Value rescale = expOfDifference(state.max, shift);
  next.sum = arith::MulFOp::create(b, loc, state.sum, rescale);
  next.acc =
      arith::MulFOp::create(b, loc, state.acc, broadcast(rescale, tileType));
  for (const Split &split : splits) {
    Value weight = expOfDifference(split.lse, shift);
    next.sum = arith::AddFOp::create(b, loc, next.sum, weight);
    next.acc = math::FmaOp::create(b, loc, split.out,
                                   broadcast(weight, tileType), next.acc);
  }
  return next;
}

void RowCombineEmitter::store(const State &state) {
  // A row without keys has an accumulator of 0: any divisor but 0 will do.
  Value inverse = arith::DivFOp::create(b, loc, splat(rowsType, 1.0),
                                        replace(state.sum, 0.0, 1.0));
  Value output =
      arith::MulFOp::create(b, loc, state.acc, broadcast(inverse, tileType));
  Type element =
      cast<MemRefType>(combine.output.memory.getType()).getElementType();
  if (!element.isF32())
    output = arith::TruncFOp::create(b, loc, tileType.clone(element), output);
  tile::StoreOp::create(b, loc, output, combine.output.memory,
                        combine.output.indices, combine.rows,
                        constant(combine.valueDim));
  if (!combine.lse.memory)
    return;
  Value lse = arith::AddFOp::create(b, loc, state.max,
                                    math::LogOp::create(b, loc, state.sum));
  tile::StoreOp::create(b, loc, lse, combine.lse.memory, combine.lse.indices,
                        combine.rows, /*columns=*/Value());
}

void RowCombineEmitter::run() {
  auto loop = scf::ForOp::create(
      b, loc, constant(0), combine.splits, constant(splitsAtOnce),
      ValueRange{splat(tileType, 0.0), splat(rowsType, -infinity),
                 splat(rowsType, 0.0)});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    ValueRange carried = loop.getRegionIterArgs();
    SmallVector<Split> splits;
    for (int64_t i = 0; i < splitsAtOnce; ++i)
      splits.push_back(read(
          arith::AddIOp::create(b, loc, loop.getInductionVar(), constant(i))));
    State next = add({carried[0], carried[1], carried[2]}, splits);
    scf::YieldOp::create(b, loc, ValueRange{next.acc, next.max, next.sum});
  }
  store({loop.getResult(0), loop.getResult(1), loop.getResult(2)});
}

void flash::emitRowCombine(OpBuilder &b, Location loc, int64_t rows,
                           int64_t warps, const RowCombine &combine) {
  RowCombineEmitter(b, loc, rows, warps, combine).run();
}
