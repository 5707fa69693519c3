//===- TileSoftmax.cpp - Cut a softmax into tiles and run it online -------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

namespace flash {
#define GEN_PASS_DEF_TILESOFTMAX
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// Where a maximum starts. Unlike -inf it leaves exp(x - max) defined, as 0,
/// while all that was seen is -inf.
static constexpr double lowest = std::numeric_limits<float>::lowest();

namespace {
/// Elementwise computation of the body of a linalg.generic.
using Body = function_ref<Value(ImplicitLocOpBuilder &, ValueRange)>;

/// Rewrites one softmax of rank 2 or more. A tile has two dimensions, rows and
/// the softmax dimension, in the order that they have in memory; the state has
/// one element per row.
class SoftmaxTiler {
public:
  SoftmaxTiler(linalg::SoftmaxOp op, int64_t rowTile, int64_t reductionTile);
  void rewrite();

private:
  /// Part of one dimension: static `size` elements from `offset`, of which the
  /// first `valid` exist.
  struct Span {
    OpFoldResult offset;
    OpFoldResult valid;
    int64_t size;
    bool isPartial() const { return getConstantIntValue(valid) != size; }
  };

  Span span(Value offset, int64_t dim);
  /// The sizes in all dimensions of what exists of a tile.
  SmallVector<OpFoldResult> sizes(Span rows, Span columns);
  /// The tile of `columns` of the rows at `offsets`, filled up with -inf.
  Value loadTile(ArrayRef<OpFoldResult> offsets, Span rows, Span columns);

  /// The maximum and the sum after `tile`.
  SmallVector<Value> onlineStep(Value tile, Value max, Value sum);
  Value quotients(Value tile, Value max, Value inverse);
  /// Writes the softmax of the rows at `offsets` to their block `output`.
  Value blockOfRows(ArrayRef<OpFoldResult> offsets, Span rows, Value output);

  /// `body` of the elements of `operands` and `init`, computed in f32. Each is
  /// a tile or, along the dimension `rowLoop` of a tile, state; the loop that a
  /// result of state lacks is a reduction.
  Value generic(ValueRange operands, Value init, unsigned rowLoop, Body body);
  Value filled(ArrayRef<int64_t> shape, Type elementType, double value);
  /// Two dimensions' worth of `row` and `column` in the order of memory.
  template <typename T> SmallVector<T> inOrder(T row, T column) {
    return rowDim < softmaxDim ? SmallVector<T>{row, column}
                               : SmallVector<T>{column, row};
  }

  linalg::SoftmaxOp op;
  ImplicitLocOpBuilder b;
  Value input;
  RankedTensorType type;
  int64_t softmaxDim, rowDim;
  SmallVector<int64_t> tileSizes;
  SmallVector<OpFoldResult> extents;
};
} // namespace

/// exp(x - max) as a power of two.
static Value shiftedExponential(ImplicitLocOpBuilder &b, Value x, Value max) {
  Value log2e =
      arith::ConstantOp::create(b, b.getF32FloatAttr(llvm::numbers::log2ef));
  Value shifted = arith::SubFOp::create(b, x, max);
  return math::Exp2Op::create(b, arith::MulFOp::create(b, shifted, log2e));
}

SoftmaxTiler::SoftmaxTiler(linalg::SoftmaxOp op, int64_t rowTile,
                           int64_t reductionTile)
    : op(op), b(op.getLoc(), op), input(op.getInput()),
      type(cast<RankedTensorType>(input.getType())),
      softmaxDim(op.getDimension()) {
  int64_t last = type.getRank() - 1;
  rowDim = softmaxDim == last ? last - 1 : last;
  tileSizes.assign(type.getRank(), 1);
  for (auto [dim, size] :
       {std::pair(rowDim, rowTile), std::pair(softmaxDim, reductionTile)})
    tileSizes[dim] = type.isDynamicDim(dim)
                         ? size
                         : std::clamp<int64_t>(type.getDimSize(dim), 1, size);
  extents = tensor::getMixedSizes(b, op.getLoc(), input);
}

Value SoftmaxTiler::filled(ArrayRef<int64_t> shape, Type elementType,
                           double value) {
  Value scalar =
      arith::ConstantOp::create(b, b.getFloatAttr(elementType, value));
  Value empty = tensor::EmptyOp::create(b, shape, elementType);
  return linalg::FillOp::create(b, scalar, empty).getResult(0);
}

Value SoftmaxTiler::generic(ValueRange operands, Value init, unsigned rowLoop,
                            Body body) {
  auto rankOf = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getRank();
  };
  int64_t loops = rankOf(init);
  for (Value operand : operands)
    loops = std::max(loops, rankOf(operand));
  AffineMap all = b.getMultiDimIdentityMap(loops);
  AffineMap rows = all.getSubMap({rowLoop});
  auto mapOf = [&](Value value) { return rankOf(value) == loops ? all : rows; };
  SmallVector<AffineMap> maps = llvm::map_to_vector(operands, mapOf);
  maps.push_back(mapOf(init));
  SmallVector<utils::IteratorType> iterators(loops,
                                             utils::IteratorType::parallel);
  if (rankOf(init) < loops)
    iterators[1 - rowLoop] = utils::IteratorType::reduction;
  auto build = [&](OpBuilder &nested, Location loc, ValueRange args) {
    ImplicitLocOpBuilder inner(loc, nested);
    SmallVector<Value> wide;
    for (Value argument : args) {
      if (!argument.getType().isF32())
        argument = arith::ExtFOp::create(inner, inner.getF32Type(), argument);
      wide.push_back(argument);
    }
    Value result = body(inner, wide);
    Type elementType = getElementTypeOrSelf(init);
    if (!elementType.isF32())
      result = arith::TruncFOp::create(inner, elementType, result);
    linalg::YieldOp::create(inner, result);
  };
  return linalg::GenericOp::create(b, init.getType(), operands, init, maps,
                                   iterators, build)
      .getResult(0);
}

SoftmaxTiler::Span SoftmaxTiler::span(Value offset, int64_t dim) {
  int64_t size = tileSizes[dim];
  Span result{offset, b.getIndexAttr(size), size};
  std::optional<int64_t> extent = getConstantIntValue(extents[dim]);
  if (extent && *extent % size == 0)
    return result;
  AffineExpr start = b.getAffineDimExpr(0), end = b.getAffineSymbolExpr(0);
  AffineMap map = AffineMap::get(
      1, 1, {end - start, b.getAffineConstantExpr(size)}, b.getContext());
  result.valid = affine::makeComposedFoldedAffineMin(b, b.getLoc(), map,
                                                     {offset, extents[dim]});
  return result;
}

SmallVector<OpFoldResult> SoftmaxTiler::sizes(Span rows, Span columns) {
  SmallVector<OpFoldResult> result(type.getRank(), b.getIndexAttr(1));
  result[rowDim] = rows.valid;
  result[softmaxDim] = columns.valid;
  return result;
}

Value SoftmaxTiler::loadTile(ArrayRef<OpFoldResult> offsets, Span rows,
                             Span columns) {
  SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
  auto dimSize = [](Span span) {
    return getConstantIntValue(span.valid).value_or(ShapedType::kDynamic);
  };
  SmallVector<OpFoldResult> offsetsOfTile(offsets);
  offsetsOfTile[softmaxDim] = columns.offset;
  auto sliceType = RankedTensorType::get(
      inOrder(dimSize(rows), dimSize(columns)), type.getElementType());
  Value slice = tensor::ExtractSliceOp::create(
      b, sliceType, input, offsetsOfTile, sizes(rows, columns), strides);
  if (!rows.isPartial() && !columns.isPartial())
    return slice;
  Value tile = filled(inOrder(rows.size, columns.size), type.getElementType(),
                      -std::numeric_limits<double>::infinity());
  return tensor::InsertSliceOp::create(
      b, slice, tile, SmallVector<OpFoldResult>(2, b.getIndexAttr(0)),
      inOrder(rows.valid, columns.valid),
      SmallVector<OpFoldResult>(2, b.getIndexAttr(1)));
}

SmallVector<Value> SoftmaxTiler::onlineStep(Value tile, Value max, Value sum) {
  if (rowDim < softmaxDim) {
    // Reductions then run over whole vectors of rows, never across lanes.
    SmallVector<int64_t> shape(
        llvm::reverse(cast<RankedTensorType>(tile.getType()).getShape()));
    Value init = tensor::EmptyOp::create(b, shape, type.getElementType());
    tile = linalg::TransposeOp::create(b, tile, init, ArrayRef<int64_t>{1, 0})
               ->getResult(0);
  }
  auto maximum = [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
    return arith::MaximumFOp::create(b, v[0], v[1]);
  };
  // The maximum before this step is still needed, so it is not written over.
  ArrayRef<int64_t> rows = cast<RankedTensorType>(max.getType()).getShape();
  Value tileMax = generic(tile, filled(rows, b.getF32Type(), lowest),
                          /*rowLoop=*/1, maximum);
  Value newMax = generic(max, tileMax, /*rowLoop=*/0, maximum);
  Value rescaled = generic({max, newMax}, sum, /*rowLoop=*/0,
                           [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                             return arith::MulFOp::create(
                                 b, v[2], shiftedExponential(b, v[0], v[1]));
                           });
  Value newSum = generic({tile, newMax}, rescaled, /*rowLoop=*/1,
                         [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                           return arith::AddFOp::create(
                               b, v[2], shiftedExponential(b, v[0], v[1]));
                         });
  return {newMax, newSum};
}

Value SoftmaxTiler::quotients(Value tile, Value max, Value inverse) {
  Value init = tensor::EmptyOp::create(
      b, cast<RankedTensorType>(tile.getType()).getShape(),
      type.getElementType());
  return generic({tile, max, inverse}, init,
                 /*rowLoop=*/rowDim < softmaxDim ? 0 : 1,
                 [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                   return arith::MulFOp::create(
                       b, shiftedExponential(b, v[0], v[1]), v[2]);
                 });
}

Value SoftmaxTiler::blockOfRows(ArrayRef<OpFoldResult> offsets, Span rows,
                                Value output) {
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value end =
      getValueOrCreateConstantIndexOp(b, b.getLoc(), extents[softmaxDim]);
  Value step = arith::ConstantIndexOp::create(b, tileSizes[softmaxDim]);
  Type f32 = b.getF32Type();

  Value max = filled(rows.size, f32, lowest);
  Value sum = filled(rows.size, f32, 0);
  auto pass1 = scf::ForOp::create(
      b, zero, end, step, ValueRange{max, sum},
      [&](OpBuilder &nested, Location loc, Value offset, ValueRange state) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(nested.getInsertionBlock(),
                            nested.getInsertionPoint());
        Value tile = loadTile(offsets, rows, span(offset, softmaxDim));
        scf::YieldOp::create(b, onlineStep(tile, state[0], state[1]));
      });
  Value inverse = generic(
      pass1.getResult(1), tensor::EmptyOp::create(b, {rows.size}, f32),
      /*rowLoop=*/0, [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
        Value one = arith::ConstantOp::create(b, b.getF32FloatAttr(1));
        return arith::DivFOp::create(b, one, v[0]);
      });
  auto pass2 = scf::ForOp::create(
      b, zero, end, step, output,
      [&](OpBuilder &nested, Location loc, Value offset, ValueRange block) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(nested.getInsertionBlock(),
                            nested.getInsertionPoint());
        Span columns = span(offset, softmaxDim);
        Value tile = quotients(loadTile(offsets, rows, columns),
                               pass1.getResult(0), inverse);
        if (rows.isPartial() || columns.isPartial())
          tile = tensor::ExtractSliceOp::create(
              b, tile, SmallVector<OpFoldResult>(2, b.getIndexAttr(0)),
              inOrder(rows.valid, columns.valid),
              SmallVector<OpFoldResult>(2, b.getIndexAttr(1)));
        SmallVector<OpFoldResult> at(type.getRank(), b.getIndexAttr(0));
        at[softmaxDim] = offset;
        Value inserted = tensor::InsertSliceOp::create(
            b, tile, block[0], at, sizes(rows, columns),
            SmallVector<OpFoldResult>(type.getRank(), b.getIndexAttr(1)));
        scf::YieldOp::create(b, inserted);
      });
  return pass2.getResult(0);
}

void SoftmaxTiler::rewrite() {
  SmallVector<OpFoldResult> lower, upper, steps;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (dim == softmaxDim)
      continue;
    lower.push_back(b.getIndexAttr(0));
    upper.push_back(extents[dim]);
    steps.push_back(b.getIndexAttr(tileSizes[dim]));
  }
  auto forall = scf::ForallOp::create(
      b, lower, upper, steps, op.getOutput(), /*mapping=*/std::nullopt,
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(nested.getInsertionBlock(),
                            nested.getInsertionPoint());
        SmallVector<OpFoldResult> offsets = getAsOpFoldResult(args.drop_back());
        offsets.insert(offsets.begin() + softmaxDim, b.getIndexAttr(0));
        Span rows = span(cast<Value>(offsets[rowDim]), rowDim);
        SmallVector<OpFoldResult> blockSizes(type.getRank(), b.getIndexAttr(1));
        blockSizes[rowDim] = rows.valid;
        blockSizes[softmaxDim] = extents[softmaxDim];
        SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
        Value output = tensor::ExtractSliceOp::create(b, args.back(), offsets,
                                                      blockSizes, strides);
        Value block = blockOfRows(offsets, rows, output);
        auto terminator = scf::InParallelOp::create(b);
        b.setInsertionPointToStart(terminator.getBody());
        tensor::ParallelInsertSliceOp::create(b, block, args.back(), offsets,
                                              blockSizes, strides);
      });
  op->replaceAllUsesWith(forall);
  op->erase();
}

/// A softmax of rank 1 as the single row of one of rank 2.
static linalg::SoftmaxOp expandVector(linalg::SoftmaxOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<ReassociationIndices> together = {{0, 1}};
  auto expand = [&](Value vector) -> Value {
    auto type = cast<RankedTensorType>(vector.getType());
    return tensor::ExpandShapeOp::create(
        b,
        RankedTensorType::get({1, type.getDimSize(0)}, type.getElementType()),
        vector, together);
  };
  Value output = expand(op.getOutput());
  auto row = linalg::SoftmaxOp::create(b, TypeRange(output.getType()),
                                       expand(op.getInput()), output,
                                       /*dimension=*/1);
  op->replaceAllUsesWith(tensor::CollapseShapeOp::create(
      b, cast<RankedTensorType>(op->getResultTypes()[0]), row->getResult(0),
      together));
  op->erase();
  return row;
}

/// Makes a parallel loop over blocks of whole rows.
static LogicalResult cutRows(linalg::SoftmaxOp op, int64_t rowTile) {
  // What its output holds before has no part in the result.
  IRRewriter atOp(op);
  Value output = op.getOutput();
  op.getOutputMutable().assign(tensor::EmptyOp::create(
      atOp, op.getLoc(), tensor::getMixedSizes(atOp, op.getLoc(), output),
      getElementTypeOrSelf(output.getType())));
  int64_t rank = op.getInputOperandRank();
  if (static_cast<int64_t>(op.getDimension()) != rank - 1)
    return success();
  SmallVector<int64_t> tileSizes(rank, 1);
  tileSizes[rank - 2] = rowTile;
  tileSizes[rank - 1] = 0;
  scf::SCFTilingOptions options;
  options.setTileSizes(getAsIndexOpFoldResult(op.getContext(), tileSizes));
  options.setLoopType(scf::SCFTilingOptions::LoopType::ForallOp);
  IRRewriter rewriter(op);
  FailureOr<scf::SCFTilingResult> result = scf::tileUsingSCF(
      rewriter, cast<TilingInterface>(op.getOperation()), options);
  if (failed(result))
    return op.emitOpError("cannot be cut into blocks of rows");
  rewriter.replaceOp(op, result->replacements);
  return success();
}

namespace {
struct TileSoftmax : flash::impl::TileSoftmaxBase<TileSoftmax> {
  using Base::Base;
  void runOnOperation() override {
    if (rowTile <= 0 || reductionTile < 0) {
      getOperation().emitError("tile sizes of a softmax must be positive, got ")
          << rowTile << " and " << reductionTile;
      return signalPassFailure();
    }
    SmallVector<linalg::SoftmaxOp> ops;
    getOperation().walk([&](linalg::SoftmaxOp op) {
      auto type = dyn_cast<RankedTensorType>(op.getInput().getType());
      if (type && type.getRank() > 0 &&
          isa<Float16Type, BFloat16Type, Float32Type>(type.getElementType()))
        ops.push_back(op);
    });
    for (linalg::SoftmaxOp op : ops) {
      if (op.getInputOperandRank() == 1)
        op = expandVector(op);
      if (reductionTile > 0)
        SoftmaxTiler(op, rowTile, reductionTile).rewrite();
      else if (failed(cutRows(op, rowTile)))
        return signalPassFailure();
    }
  }
};
} // namespace
