//===- TileSoftmax.cpp - Cut a softmax into tiles and run it online -------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/TileSlices.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

namespace flash {
#define GEN_PASS_DEF_TILESOFTMAX
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

static constexpr double minusInfinity =
    -std::numeric_limits<double>::infinity();

namespace {
/// Rewrites one softmax. A tile has two dimensions, rows and the softmax
/// dimension, in the order that they have in memory; the state has one element
/// per row.
class SoftmaxTiler : TileBuilder {
public:
  SoftmaxTiler(linalg::SoftmaxOp op, const TileSoftmaxOptions &options);
  SoftmaxTiler(flash::SoftmaxOp op, const TileSoftmaxOptions &options,
               int64_t rows);

  /// Replaces a linalg.softmax by a parallel loop over blocks of rows.
  void cutRows(linalg::SoftmaxOp op);
  /// Replaces a flash.softmax, which is of one block of rows.
  void replace(flash::SoftmaxOp op);

private:
  /// Part of one dimension: static `size` elements from `offset`; the first
  /// `valid` of them exist.
  struct Span {
    OpFoldResult offset;
    OpFoldResult valid;
    int64_t size;
  };
  /// Where the results of a block of rows go, and what it starts from.
  struct Block {
    SmallVector<OpFoldResult> offsets;
    Span rows;
    Value output;
    Value sink; ///< Null if there is none.
    bool zeroEmptyRows = false;
  };
  /// For each row, the maximum and the sum of exponentials of the differences
  /// to it.
  struct State {
    Value max, sum;
  };

  /// `rows` is the number of rows of a block, which may have fewer if `mayCut`.
  void chooseTile(int64_t rows, bool mayCut, const TileSoftmaxOptions &options);
  Span span(Value offset, int64_t dim);
  /// The sizes in all dimensions of what exists of a tile.
  SmallVector<OpFoldResult> sizes(Span rows, Span columns);
  /// The tile of `columns` of the rows of `block`, filled up with -inf.
  Value loadTile(const Block &block, Span columns);
  /// `tile` in f32, and with `transpose-tiles` rows last: reductions then run
  /// over whole vectors of rows, never across lanes.
  Value widen(Value tile);

  /// The maximum of each row of `x`, which is a widened tile, and the
  /// exponentials of the differences to `shift`.
  Value rowMaximum(Value x);
  Value exponentials(Value x, Value shift);
  /// `sum` plus the elements of each row of `p`.
  Value addRows(Value p, Value sum);
  Value shiftOf(Value max);
  /// What exponentials are multiplied by.
  Value inverseOf(const Block &block, Value sum);

  State firstPass(const Block &block);
  /// The state after the elements of `x`.
  State step(Value x, const State &state);
  State addSink(Value sink, const State &state);
  /// Writes the softmax of the rows to the output.
  Value secondPass(const Block &block, const State &state);
  /// Both passes at once, of rows that are one tile: gives the state and what
  /// exists of the softmax.
  std::pair<State, Value> wholeRows(const Block &block);
  /// The part of a tile of the result that exists.
  Value existing(Value tile, Span rows, Span columns);
  Value logSumExp(const State &state);

  template <typename Emit> Value ofRows(ValueRange inputs, Emit emit) {
    return rows(
        inputs, empty(tileRows()),
        [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {emit(at, args)};
        })[0];
  }
  int64_t tileRows() { return tileSizes[rowDim]; }
  /// Two dimensions' worth of `row` and `column` in the order of memory.
  template <typename T> SmallVector<T> inOrder(T row, T column) {
    return rowDim < softmaxDim ? SmallVector<T>{row, column}
                               : SmallVector<T>{column, row};
  }

  Value input;
  RankedTensorType type;
  int64_t softmaxDim, rowDim;
  bool transposes; ///< Whether rows are the last dimension of widened tiles.
  bool isWhole;    ///< Whether rows are one tile.
  SmallVector<int64_t> tileSizes;
  SmallVector<OpFoldResult> extents;
};
} // namespace

SoftmaxTiler::SoftmaxTiler(linalg::SoftmaxOp op,
                           const TileSoftmaxOptions &options)
    : TileBuilder(op), input(op.getInput()),
      type(cast<RankedTensorType>(input.getType())),
      softmaxDim(op.getDimension()) {
  int64_t last = type.getRank() - 1;
  rowDim = softmaxDim == last ? last - 1 : last;
  int64_t rows =
      type.isDynamicDim(rowDim)
          ? options.rowTile
          : std::clamp<int64_t>(type.getDimSize(rowDim), 1, options.rowTile);
  chooseTile(rows, /*mayCut=*/true, options);
}

SoftmaxTiler::SoftmaxTiler(flash::SoftmaxOp op,
                           const TileSoftmaxOptions &options, int64_t rows)
    : TileBuilder(op), input(op.getScores()), type(op.getScores().getType()),
      softmaxDim(1), rowDim(0) {
  chooseTile(rows, /*mayCut=*/false, options);
}

void SoftmaxTiler::chooseTile(int64_t rows, bool mayCut,
                              const TileSoftmaxOptions &options) {
  transposes = options.transposeTiles || rowDim > softmaxDim;
  int64_t columns = options.reductionTile;
  if (options.reductionBytes > 0)
    columns = std::max<int64_t>(
        options.reductionBytes * 8 / type.getElementTypeBitWidth(), 1);
  if (int64_t width = type.getDimSize(softmaxDim);
      !ShapedType::isDynamic(width)) {
    int64_t fewest = mayCut ? 1 : rows;
    if (fewest * width <= options.wholeRows) {
      while (rows * width > options.wholeRows)
        rows = llvm::divideCeil(rows, 2);
      columns = width;
    } else if (mayCut && options.wholeRows > 0) {
      // There are as few steps as possible, all of about the same width, and
      // each aligned as the row is for the widest load.
      rows = 1;
      int64_t steps = llvm::divideCeil(width, options.wholeRows);
      columns = llvm::alignTo(llvm::divideCeil(width, steps), 64);
    }
    columns = std::max<int64_t>(std::min(columns, width), 1);
  }
  isWhole = !transposes && type.getDimSize(softmaxDim) == columns;
  tileSizes.assign(type.getRank(), 1);
  tileSizes[rowDim] = rows;
  tileSizes[softmaxDim] = columns;
  extents = getSizes(b, b.getLoc(), input);
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

Value SoftmaxTiler::loadTile(const Block &block, Span columns) {
  auto dimSize = [](Span span) {
    return getConstantIntValue(span.valid).value_or(ShapedType::kDynamic);
  };
  SmallVector<OpFoldResult> offsets(block.offsets);
  offsets[softmaxDim] = columns.offset;
  Value slice =
      extractPart(b, b.getLoc(), input, offsets, sizes(block.rows, columns),
                  inOrder(dimSize(block.rows), dimSize(columns)));
  return padToTile(b, b.getLoc(), slice,
                   inOrder(block.rows.valid, columns.valid),
                   inOrder(block.rows.size, columns.size),
                   b.getFloatAttr(type.getElementType(), minusInfinity));
}

Value SoftmaxTiler::widen(Value tile) {
  if (transposes && rowDim < softmaxDim) {
    SmallVector<int64_t> shape(
        llvm::reverse(cast<RankedTensorType>(tile.getType()).getShape()));
    tile = linalg::TransposeOp::create(b, tile,
                                       empty(shape, type.getElementType()),
                                       ArrayRef<int64_t>{1, 0})
               ->getResult(0);
  }
  if (type.getElementType().isF32())
    return tile;
  return arith::ExtFOp::create(
      b, cast<RankedTensorType>(tile.getType()).clone(b.getF32Type()), tile);
}

Value SoftmaxTiler::rowMaximum(Value x) {
  return generic(
      x, filled(tileRows(), minusInfinity),
      {map(2, {0, 1}), map(2, {transposes ? 1u : 0u})},
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {arith::MaxNumFOp::create(at, args[1], args[0])};
      })[0];
}

Value SoftmaxTiler::exponentials(Value x, Value shift) {
  AffineMap tile = map(2, {0, 1});
  return generic(
      {x, shift}, empty(cast<RankedTensorType>(x.getType()).getShape()),
      {tile, map(2, {transposes ? 1u : 0u}), tile},
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {emitExponential(at, args[0], args[1])};
      })[0];
}

Value SoftmaxTiler::addRows(Value p, Value sum) {
  return generic(
      p, sum, {map(2, {0, 1}), map(2, {transposes ? 1u : 0u})},
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {arith::AddFOp::create(at, args[1], args[0])};
      })[0];
}

Value SoftmaxTiler::shiftOf(Value max) {
  return ofRows(max, [](ImplicitLocOpBuilder &at, ValueRange args) {
    return emitShift(at, args[0]);
  });
}

Value SoftmaxTiler::inverseOf(const Block &block, Value sum) {
  return ofRows(sum, [&](ImplicitLocOpBuilder &at, ValueRange args) -> Value {
    if (block.zeroEmptyRows)
      return emitInverseOfSum(at, args[0]);
    return arith::DivFOp::create(at, emitConstant(at, 1.0), args[0]);
  });
}

SoftmaxTiler::State SoftmaxTiler::step(Value x, const State &state) {
  ValueRange growth =
      rows(rowMaximum(x), {state.max, empty(tileRows())},
           [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
             Growth growth = emitGrowth(at, args[1], args[0]);
             return {growth.max, growth.rescale};
           });
  Value max = growth[0], rescale = growth[1];
  Value p = exponentials(x, shiftOf(max));
  Value rescaled =
      rows(rescale, state.sum,
           [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
             return {arith::MulFOp::create(at, args[1], args[0])};
           })[0];
  return {max, addRows(p, rescaled)};
}

SoftmaxTiler::State SoftmaxTiler::addSink(Value sink, const State &state) {
  ValueRange next = rows(
      {}, {state.max, state.sum},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Growth growth = emitGrowth(at, args[0], sink);
        Value kept = arith::MulFOp::create(at, args[1], growth.rescale);
        Value added = emitExponential(at, sink, emitShift(at, growth.max));
        return {growth.max, arith::AddFOp::create(at, kept, added)};
      });
  return {next[0], next[1]};
}

SoftmaxTiler::State SoftmaxTiler::firstPass(const Block &block) {
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value end =
      getValueOrCreateConstantIndexOp(b, b.getLoc(), extents[softmaxDim]);
  Value by = arith::ConstantIndexOp::create(b, tileSizes[softmaxDim]);
  auto loop = scf::ForOp::create(
      b, zero, end, by,
      ValueRange{filled(tileRows(), minusInfinity), filled(tileRows(), 0.0)});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value tile = loadTile(block, span(loop.getInductionVar(), softmaxDim));
    State next = step(widen(tile), {loop.getRegionIterArgs()[0],
                                    loop.getRegionIterArgs()[1]});
    scf::YieldOp::create(b, ValueRange{next.max, next.sum});
  }
  State state = {loop.getResult(0), loop.getResult(1)};
  return block.sink ? addSink(block.sink, state) : state;
}

Value SoftmaxTiler::secondPass(const Block &block, const State &state) {
  Value shift = shiftOf(state.max), inverse = inverseOf(block, state.sum);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value end =
      getValueOrCreateConstantIndexOp(b, b.getLoc(), extents[softmaxDim]);
  Value by = arith::ConstantIndexOp::create(b, tileSizes[softmaxDim]);
  auto loop = scf::ForOp::create(b, zero, end, by, block.output);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Span columns = span(loop.getInductionVar(), softmaxDim);
  Value x = loadTile(block, columns);
  auto tileType = cast<RankedTensorType>(x.getType());
  AffineMap all = map(2, {0, 1}), row = map(2, {rowDim < softmaxDim ? 0u : 1u});
  Value tile = generic(
      {x, shift, inverse}, empty(tileType.getShape(), type.getElementType()),
      {all, row, row, all},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value p = emitExponential(at, extendToF32(at, args[0]), args[1]);
        p = arith::MulFOp::create(at, p, args[2]);
        return {truncateF32(at, type.getElementType(), p)};
      })[0];
  tile = existing(tile, block.rows, columns);
  SmallVector<OpFoldResult> at(type.getRank(), b.getIndexAttr(0));
  at[softmaxDim] = loop.getInductionVar();
  Value inserted = tensor::InsertSliceOp::create(
      b, tile, loop.getRegionIterArgs()[0], at, sizes(block.rows, columns),
      SmallVector<OpFoldResult>(type.getRank(), b.getIndexAttr(1)));
  scf::YieldOp::create(b, inserted);
  return loop.getResult(0);
}

Value SoftmaxTiler::existing(Value tile, Span rows, Span columns) {
  SmallVector<OpFoldResult> valid = inOrder(rows.valid, columns.valid);
  auto tileType = cast<RankedTensorType>(tile.getType());
  if (llvm::all_of(llvm::zip_equal(valid, tileType.getShape()), [](auto pair) {
        return getConstantIntValue(std::get<0>(pair)) == std::get<1>(pair);
      }))
    return tile;
  return tensor::ExtractSliceOp::create(
      b, tile, SmallVector<OpFoldResult>(2, b.getIndexAttr(0)), valid,
      SmallVector<OpFoldResult>(2, b.getIndexAttr(1)));
}

std::pair<SoftmaxTiler::State, Value>
SoftmaxTiler::wholeRows(const Block &block) {
  Span columns = {b.getIndexAttr(0), extents[softmaxDim],
                  tileSizes[softmaxDim]};
  Value x = widen(loadTile(block, columns));
  State state;
  state.max = rowMaximum(x);
  if (block.sink)
    state.max = ofRows(
        state.max, [&](ImplicitLocOpBuilder &at, ValueRange args) -> Value {
          return arith::MaxNumFOp::create(at, args[0], block.sink);
        });
  Value shift = shiftOf(state.max);
  Value p = exponentials(x, shift);
  state.sum = addRows(p, filled(tileRows(), 0.0));
  if (block.sink)
    state.sum = ofRows({state.sum, shift},
                       [&](ImplicitLocOpBuilder &at, ValueRange args) -> Value {
                         Value added = emitExponential(at, block.sink, args[1]);
                         return arith::AddFOp::create(at, args[0], added);
                       });
  AffineMap all = map(2, {0, 1}), row = map(2, {0});
  Value tile = generic(
      {p, inverseOf(block, state.sum)},
      empty(cast<RankedTensorType>(p.getType()).getShape(),
            type.getElementType()),
      {all, row, all},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value quotient = arith::MulFOp::create(at, args[0], args[1]);
        return {truncateF32(at, type.getElementType(), quotient)};
      })[0];
  return {state, existing(tile, block.rows, columns)};
}

Value SoftmaxTiler::logSumExp(const State &state) {
  return ofRows({state.max, state.sum},
                [](ImplicitLocOpBuilder &at, ValueRange args) -> Value {
                  return arith::AddFOp::create(
                      at, args[0], math::LogOp::create(at, args[1]));
                });
}

void SoftmaxTiler::cutRows(linalg::SoftmaxOp op) {
  SmallVector<OpFoldResult> lower, upper, steps;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (dim == softmaxDim)
      continue;
    lower.push_back(b.getIndexAttr(0));
    upper.push_back(extents[dim]);
    steps.push_back(b.getIndexAttr(tileSizes[dim]));
  }
  // What its output holds before has no part in the result.
  Value output = op.getOutput();
  if (!output.getDefiningOp<tensor::EmptyOp>())
    output = tensor::EmptyOp::create(
        b, tensor::getMixedSizes(b, b.getLoc(), output), type.getElementType());
  auto forall = scf::ForallOp::create(
      b, lower, upper, steps, output, getBlockMapping(b, upper.size()),
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(nested.getInsertionBlock(),
                            nested.getInsertionPoint());
        Block block;
        block.offsets = getAsOpFoldResult(args.drop_back());
        block.offsets.insert(block.offsets.begin() + softmaxDim,
                             b.getIndexAttr(0));
        block.rows = span(cast<Value>(block.offsets[rowDim]), rowDim);
        SmallVector<OpFoldResult> blockSizes(type.getRank(), b.getIndexAttr(1));
        blockSizes[rowDim] = block.rows.valid;
        blockSizes[softmaxDim] = extents[softmaxDim];
        SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
        Value result;
        if (isWhole) {
          result = wholeRows(block).second;
        } else {
          block.output = tensor::ExtractSliceOp::create(
              b, args.back(), block.offsets, blockSizes, strides);
          result = secondPass(block, firstPass(block));
        }
        auto terminator = scf::InParallelOp::create(b);
        b.setInsertionPointToStart(terminator.getBody());
        tensor::ParallelInsertSliceOp::create(
            b, result, args.back(), block.offsets, blockSizes, strides);
      });
  op->replaceAllUsesWith(forall);
  op->erase();
}

void SoftmaxTiler::replace(flash::SoftmaxOp op) {
  Block block;
  block.offsets.assign(2, b.getIndexAttr(0));
  block.rows = {b.getIndexAttr(0), extents[0], tileRows()};
  block.sink = op.getSink();
  block.zeroEmptyRows = true;
  State state;
  SmallVector<Value> results(1);
  if (isWhole) {
    std::tie(state, results[0]) = wholeRows(block);
    results[0] = b.createOrFold<tensor::CastOp>(type, results[0]);
  } else {
    // What is stored is written where it belongs at once.
    auto store = op.getResult().hasOneUse()
                     ? dyn_cast<tensor::ParallelInsertSliceOp>(
                           *op.getResult().getUsers().begin())
                     : tensor::ParallelInsertSliceOp();
    if (store)
      block.output = tensor::ExtractSliceOp::create(
          b, type, store.getDest(), store.getMixedOffsets(),
          store.getMixedSizes(), store.getMixedStrides());
    else
      block.output = tensor::EmptyOp::create(b, extents, type.getElementType());
    state = firstPass(block);
    results[0] = secondPass(block, state);
  }
  if (op.getLse()) {
    Value lse = logSumExp(state);
    if (op.getLse().getType() != lse.getType()) {
      lse = tensor::ExtractSliceOp::create(
          b, lse, ArrayRef<OpFoldResult>(b.getIndexAttr(0)), extents[0],
          ArrayRef<OpFoldResult>(b.getIndexAttr(1)));
      lse = b.createOrFold<tensor::CastOp>(op.getLse().getType(), lse);
    }
    results.push_back(lse);
  }
  op->replaceAllUsesWith(results);
  Operation *slice = input.getDefiningOp();
  op->erase();
  if (slice && isOpTriviallyDead(slice))
    slice->erase();
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

namespace {
struct TileSoftmax : flash::impl::TileSoftmaxBase<TileSoftmax> {
  using Base::Base;
  void runOnOperation() override {
    TileSoftmaxOptions options{rowTile, reductionTile, reductionBytes,
                               wholeRows, transposeTiles};
    for (auto [size, least] : {std::pair(options.rowTile, int64_t(1)),
                               {options.reductionTile, 1},
                               {options.reductionBytes, 0},
                               {options.wholeRows, 0}})
      if (size < least) {
        getOperation().emitError(
            "a tile of a softmax must not be smaller than ")
            << least << ", got " << size;
        return signalPassFailure();
      }
    SmallVector<linalg::SoftmaxOp> ops;
    getOperation().walk([&](linalg::SoftmaxOp op) {
      auto type = dyn_cast<RankedTensorType>(op.getInput().getType());
      // The bytes of a step are neighbours along the last dimension alone.
      if (reductionBytes > 0 && static_cast<int64_t>(op.getDimension()) + 1 !=
                                    op.getInputOperandRank())
        return;
      if (type && type.getRank() > 0 &&
          isa<Float16Type, BFloat16Type, Float32Type>(type.getElementType()))
        ops.push_back(op);
    });
    for (linalg::SoftmaxOp op : ops) {
      if (op.getInputOperandRank() == 1)
        op = expandVector(op);
      SoftmaxTiler(op, options).cutRows(op);
    }
    WalkResult walk = getOperation().walk([&](flash::SoftmaxOp op) {
      FailureOr<int64_t> rows = getMostRows(op, op.getScores(), 0);
      if (failed(rows))
        return WalkResult::interrupt();
      SoftmaxTiler(op, options, *rows).replace(op);
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
