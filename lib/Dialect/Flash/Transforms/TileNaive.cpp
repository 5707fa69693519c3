//===- TileNaive.cpp - Attention as three loops over tiles ----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Visits.h"

#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "flash/Dialect/Flash/Utils/TileSlices.h"
#include "flash/Machine/Machine.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <limits>

namespace flash {
#define GEN_PASS_DEF_TILENAIVE
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// The greatest part of a head dimension that cuts it into equal parts and is
/// at most `limit`, which is a multiple of 8.
static int64_t getPart(int64_t dim, int64_t limit) {
  int64_t part = std::min(dim, limit);
  while (dim % part != 0)
    part -= 8;
  return part;
}

/// Rows of a softmax in an iteration of a parallel loop, one for each warp.
static constexpr int64_t softmaxRows = 8;

namespace {
class NaiveTiler {
public:
  explicit NaiveTiler(AttentionOp op);
  void run();

private:
  using Body = function_ref<void(ValueRange position, ValueRange outputs)>;

  OpFoldResult index(int64_t value) { return b.getIndexAttr(value); }
  Value asValue(OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(b, loc, value);
  }
  Value emptyTile(ArrayRef<int64_t> shape, Type type) {
    return tensor::EmptyOp::create(b, loc, shape, type);
  }
  Value zeroTile(int64_t rows, int64_t columns);
  /// `a b + c`, or with `transposed` b `a b^T + c`, of f32.
  Value product(Value a, Value other, Value c, bool transposed);
  /// A tile of f32, rounded to the operands' elements.
  Value round(Value tile);

  /// Sums up parts of products in a loop, or what is listed; `body` gives the
  /// sum after a step.
  Value sumLoop(Value extent, int64_t step, Value init,
                function_ref<Value(Value at, Value sum)> body);
  /// A kernel over (batch, head, row) and, if there are further `extents`,
  /// tiles of columns.
  SmallVector<Value> parallelLoop(ArrayRef<OpFoldResult> extents,
                                  ArrayRef<int64_t> steps,
                                  ArrayRef<Value> outputs, Body body);
  /// Stores the first `rows` rows of each tile, matrices with `columns`
  /// columns.
  void store(ValueRange tiles, ValueRange outputs, ValueRange position,
             OpFoldResult rows, OpFoldResult columns);

  Value scores();
  Value modifiedScores(Value products, ValueRange position);
  /// What lists of blocks that the caller gives leave of each element of a
  /// tile: 0 for nothing, 1 what the mask keeps, 2 for all. Null without lists.
  Value leftOfBlocks(ValueRange position);
  /// Whether mask and lengths keep an element of a block that is left in part,
  /// or whole; both are null without lists.
  Value isInMask(OpBuilder &nested, const ScorePosition &at, Value end,
                 Value isPart, Value isFull);
  SmallVector<Value> softmax(Value scores);
  Value output(Value probabilities);

  AttentionOp op;
  OpBuilder b;
  Location loc;
  Type elementType;
  int64_t tileSize;
  TiledDim queries, keys;
  OpFoldResult paddedKeys; ///< Up to whole tiles.
  Value numQueries, numKeys;
  HeadGroups groups;
  SmallVector<OpFoldResult> rowSizes; ///< Batch, heads and queries.
};
} // namespace

NaiveTiler::NaiveTiler(AttentionOp op)
    : op(op), b(op), loc(op.getLoc()),
      elementType(op.getQuery().getType().getElementType()),
      tileSize(elementType.isF32() ? 64 : 128),
      queries{tileSize, tensor::getMixedSize(b, loc, op.getQuery(), 2)},
      keys{tileSize, tensor::getMixedSize(b, loc, op.getKey(), 2)},
      groups(b, loc, op.getQuery(), op.getKey()) {
  numQueries = asValue(queries.end);
  numKeys = asValue(keys.end);
  AffineExpr end = b.getAffineDimExpr(0);
  paddedKeys = affine::makeComposedFoldedAffineApply(
      b, loc, end.ceilDiv(tileSize) * tileSize, {keys.end});
  rowSizes = tensor::getMixedSizes(b, loc, op.getQuery());
  rowSizes.pop_back();
}

Value NaiveTiler::zeroTile(int64_t rows, int64_t columns) {
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  return linalg::FillOp::create(b, loc, zero,
                                emptyTile({rows, columns}, b.getF32Type()))
      .getResult(0);
}

Value NaiveTiler::product(Value a, Value other, Value c, bool transposed) {
  AffineExpr row, column, inner;
  bindDims(b.getContext(), row, column, inner);
  auto map = [&](AffineExpr first, AffineExpr second) {
    return AffineMap::get(3, 0, {first, second}, b.getContext());
  };
  SmallVector<AffineMap> maps = {
      map(row, inner), transposed ? map(column, inner) : map(inner, column),
      map(row, column)};
  return linalg::ContractOp::create(b, loc, c.getType(), ValueRange{a, other},
                                    c, b.getAffineMapArrayAttr(maps))
      .getResult(0);
}

Value NaiveTiler::round(Value tile) {
  if (elementType.isF32())
    return tile;
  auto type = cast<RankedTensorType>(tile.getType());
  return arith::TruncFOp::create(b, loc, type.clone(elementType), tile);
}

Value NaiveTiler::sumLoop(Value extent, int64_t step, Value init,
                          function_ref<Value(Value at, Value sum)> body) {
  auto loop = scf::ForOp::create(b, loc, asValue(index(0)), extent,
                                 asValue(index(step)), init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value sum = body(loop.getInductionVar(), loop.getRegionIterArgs()[0]);
  scf::YieldOp::create(b, loc, sum);
  return loop.getResult(0);
}

SmallVector<Value> NaiveTiler::parallelLoop(ArrayRef<OpFoldResult> extents,
                                            ArrayRef<int64_t> steps,
                                            ArrayRef<Value> outputs,
                                            Body body) {
  auto kernel = KernelOp::create(b, loc, extents, steps, outputs);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(kernel.getStore());
  body(ValueRange(kernel.getPosition()), ValueRange(kernel.getDestinations()));
  if (!kernel.walk([](linalg::ContractOp) { return WalkResult::interrupt(); })
           .wasInterrupted())
    return SmallVector<Value>(kernel.getResults());
  // A product alone needs fewer registers than attention, so that twice as many
  // warps fit; nothing else hides the latency of memory but a second stage.
  Schedule schedule;
  schedule.warps = tileSize / rowsOfWarp;
  schedule.stages = 2;
  kernel.setScheduleAttr(ScheduleAttr::get(b.getContext(), schedule));
  return SmallVector<Value>(kernel.getResults());
}

void NaiveTiler::store(ValueRange tiles, ValueRange outputs,
                       ValueRange position, OpFoldResult rows,
                       OpFoldResult columns) {
  SmallVector<Value> existing(tiles);
  auto getSizes = [&](Value tile) {
    SmallVector<OpFoldResult> sizes = {rows};
    if (cast<RankedTensorType>(tile.getType()).getRank() == 2)
      sizes.push_back(columns);
    return sizes;
  };
  for (Value &tile : existing) {
    auto type = cast<RankedTensorType>(tile.getType());
    if (type.isDynamicDim(0) || getConstantIntValue(rows) == type.getDimSize(0))
      continue;
    tile = tensor::ExtractSliceOp::create(
        b, loc, tile, SmallVector<OpFoldResult>(type.getRank(), index(0)),
        getSizes(tile), SmallVector<OpFoldResult>(type.getRank(), index(1)));
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(KernelOp::of(outputs[0]).getStores());
  for (auto [tile, output] : llvm::zip_equal(existing, outputs)) {
    SmallVector<OpFoldResult> offsets = getAsOpFoldResult(position);
    SmallVector<OpFoldResult> sizes = {index(1), index(1)};
    llvm::append_range(sizes, getSizes(tile));
    offsets.resize(sizes.size(), index(0));
    tensor::ParallelInsertSliceOp::create(
        b, loc, tile, output, offsets, sizes,
        SmallVector<OpFoldResult>(sizes.size(), index(1)));
  }
}

//===----------------------------------------------------------------------===//
// The three computations
//===----------------------------------------------------------------------===//

Value NaiveTiler::isInMask(OpBuilder &nested, const ScorePosition &at,
                           Value end, Value isPart, Value isFull) {
  Value inMask = emitMaskPredicate(nested, loc, op.getMaskOrFull(), at);
  if (isFull) {
    if (inMask)
      isPart = arith::AndIOp::create(nested, loc, inMask, isPart);
    inMask = arith::OrIOp::create(nested, loc, isPart, isFull);
  }
  if (!end)
    return inMask;
  Value exists = arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::slt,
                                       at.key, end);
  if (!inMask)
    return exists;
  return arith::AndIOp::create(nested, loc, inMask, exists);
}

Value NaiveTiler::leftOfBlocks(ValueRange position) {
  std::optional<ArrayRef<int64_t>> blocks = op.getBlockSizes();
  if (!blocks)
    return {};
  Value list = op.getKeyTiles(), counts = op.getTileCounts();
  auto bounded = [&](OpBuilder &at, Value index, unsigned dim) -> Value {
    Value one = arith::ConstantIndexOp::create(at, loc, 1);
    Value size = tensor::DimOp::create(at, loc, list, dim);
    return arith::MinSIOp::create(at, loc, index,
                                  arith::SubIOp::create(at, loc, size, one));
  };
  // One list may be for all batches or heads.
  Value batch = bounded(b, position[0], 0), head = bounded(b, position[1], 1);
  // Each entry says something of the elements of its block.
  auto entry = [&](Value number, Value left) -> Value {
    auto body = [&](OpBuilder &nested, Location loc, ValueRange args) {
      auto constant = [&](double value) -> Value {
        return arith::ConstantOp::create(nested, loc,
                                         nested.getF32FloatAttr(value));
      };
      auto blockOf = [&](unsigned dim) -> Value {
        Value inTile = linalg::IndexOp::create(nested, loc, dim);
        return arith::DivUIOp::create(
            nested, loc,
            arith::AddIOp::create(nested, loc, position[2 + dim], inTile),
            arith::ConstantIndexOp::create(nested, loc, (*blocks)[dim]));
      };
      Value row = bounded(nested, blockOf(0), 2);
      auto read = [&](Value tensor, Value place) -> Value {
        return arith::IndexCastOp::create(
            nested, loc, nested.getIndexType(),
            tensor::ExtractOp::create(nested, loc, tensor,
                                      ValueRange{batch, head, row, place}));
      };
      auto isBefore = [&](int64_t count) -> Value {
        return arith::CmpIOp::create(
            nested, loc, arith::CmpIPredicate::slt, number,
            read(counts, arith::ConstantIndexOp::create(nested, loc, count)));
      };
      Value isBlock =
          arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::eq,
                                read(list, number), blockOf(1));
      Value isListed = arith::AndIOp::create(nested, loc, isBlock, isBefore(1));
      Value kind = arith::SelectOp::create(nested, loc, isBefore(0),
                                           constant(1), constant(2));
      Value result =
          arith::SelectOp::create(nested, loc, isListed, kind, args[0]);
      linalg::YieldOp::create(nested, loc, result);
    };
    return linalg::GenericOp::create(b, loc, left.getType(), ValueRange(), left,
                                     b.getMultiDimIdentityMap(2),
                                     SmallVector<utils::IteratorType>(
                                         2, utils::IteratorType::parallel),
                                     body)
        .getResult(0);
  };
  return sumLoop(asValue(tensor::getMixedSize(b, loc, list, 3)), 1,
                 zeroTile(tileSize, tileSize), entry);
}

Value NaiveTiler::modifiedScores(Value products, ValueRange position) {
  // Keys from here on do not take part; null if all that exist in a tile do.
  Value end;
  if (op.getLengths()) {
    Value written =
        tensor::ExtractOp::create(b, loc, op.getLengths(), position[0]);
    written = arith::IndexCastOp::create(b, loc, b.getIndexType(), written);
    end = arith::MinSIOp::create(b, loc, written, numKeys);
  } else if (keys.isRagged()) {
    end = numKeys;
  }
  SmallVector<Value> inputs;
  if (Value left = leftOfBlocks(position))
    inputs.push_back(left);
  SmallVector<AffineMap> maps(inputs.size() + 1, b.getMultiDimIdentityMap(2));
  auto generic = linalg::GenericOp::create(
      b, loc, products.getType(), inputs, products, maps,
      SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel),
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        auto constant = [&](double value) -> Value {
          return arith::ConstantOp::create(nested, loc,
                                           nested.getF32FloatAttr(value));
        };
        auto at = [&](unsigned dim) -> Value {
          Value inTile = linalg::IndexOp::create(nested, loc, dim);
          return arith::AddIOp::create(nested, loc, position[2 + dim], inTile);
        };
        ScorePosition here = {position[0], position[1], at(0),
                              at(1),       numQueries,  numKeys};
        // Whether the element's block is left in part, and whether it is left
        // whole.
        Value isPart, isFull;
        if (!inputs.empty()) {
          auto is = [&](double kind) -> Value {
            return arith::CmpFOp::create(nested, loc, arith::CmpFPredicate::OEQ,
                                         args[0], constant(kind));
          };
          isPart = is(1);
          isFull = is(2);
        }
        Value takesPart = isInMask(nested, here, end, isPart, isFull);
        Value guard = takesPart;
        if (guard && queries.isRagged())
          guard = emitRowExists(nested, loc, guard, here.query, numQueries);
        // Captured tensors must not be read for padding.
        auto clampBelow = [&](Value at, Value extent) -> Value {
          Value one = arith::ConstantIndexOp::create(nested, loc, 1);
          Value last = arith::SubIOp::create(nested, loc, extent, one);
          return arith::MinSIOp::create(nested, loc, at, last);
        };
        here.query = clampBelow(here.query, numQueries);
        here.key = clampBelow(here.key, numKeys);
        Value score = arith::MulFOp::create(nested, loc, args.back(),
                                            constant(op.getScaleOrDefault()));
        // A full block keeps all elements, whatever the region says.
        Value isRead = isPart && guard
                           ? arith::AndIOp::create(nested, loc, guard, isPart)
                           : guard;
        if (Value keep = emitKeep(nested, op.getScore(), here, isRead)) {
          if (isFull)
            keep = arith::OrIOp::create(nested, loc, keep, isFull);
          auto andKeep = [&](Value other) -> Value {
            return other
                       ? Value(arith::AndIOp::create(nested, loc, other, keep))
                       : keep;
          };
          takesPart = andKeep(takesPart);
          guard = andKeep(guard);
        }
        score = emitScoreRegion(nested, loc, op.getScore(), score, here, guard);
        if (takesPart)
          score = arith::SelectOp::create(
              nested, loc, takesPart, score,
              constant(-std::numeric_limits<double>::infinity()));
        linalg::YieldOp::create(nested, loc, score);
      });
  eraseDeadOps(*generic.getBody());
  return generic.getResult(0);
}

Value NaiveTiler::scores() {
  SmallVector<OpFoldResult> sizes(rowSizes), extents(rowSizes);
  sizes.push_back(paddedKeys);
  extents.push_back(keys.end);
  Value empty = tensor::EmptyOp::create(b, loc, sizes, elementType);
  auto body = [&](ValueRange position, ValueRange outputs) {
    Value batch = position[0], head = position[1], row = position[2],
          column = position[3];
    OpFoldResult rows = queries.existing(b, loc, row);
    OpFoldResult keyHead = groups.getKeyHead(b, loc, head);
    OpFoldResult keyRows = keys.existing(b, loc, column);
    int64_t part = getPart(op.getHeadDim(), tileSize / 2);
    Value products = sumLoop(
        asValue(index(op.getHeadDim())), part, zeroTile(tileSize, tileSize),
        [&](Value at, Value sum) {
          Columns columns = {at, part};
          Value query = extractRows(b, loc, op.getQuery(), {batch, head, row},
                                    rows, tileSize, columns);
          Value key = extractRows(b, loc, op.getKey(), {batch, keyHead, column},
                                  keyRows, tileSize, columns);
          return product(query, key, sum, /*transposed=*/true);
        });
    store(round(modifiedScores(products, position)), outputs, position, rows,
          index(tileSize));
  };
  return parallelLoop(extents, {1, 1, tileSize, tileSize}, empty, body)[0];
}

SmallVector<Value> NaiveTiler::softmax(Value scores) {
  TiledDim blocks = {softmaxRows, queries.end};
  SmallVector<Value> outputs = {tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, scores), elementType)};
  if (op.getLse())
    outputs.push_back(
        tensor::EmptyOp::create(b, loc, rowSizes, b.getF32Type()));
  auto body = [&](ValueRange position, ValueRange results) {
    OpFoldResult rows = blocks.existing(b, loc, position[2]);
    auto shapeOf = [](OpFoldResult size) {
      return getConstantIntValue(size).value_or(ShapedType::kDynamic);
    };
    auto type = RankedTensorType::get({shapeOf(rows), shapeOf(paddedKeys)},
                                      elementType);
    Value slice = tensor::ExtractSliceOp::create(
        b, loc, type, scores,
        ArrayRef<OpFoldResult>{position[0], position[1], position[2], index(0)},
        ArrayRef<OpFoldResult>{index(1), index(1), rows, paddedKeys},
        SmallVector<OpFoldResult>(4, index(1)));
    Value sink;
    if (op.getSink())
      sink = tensor::ExtractOp::create(b, loc, op.getSink(), position[1]);
    Type lse;
    if (op.getLse())
      lse = RankedTensorType::get(shapeOf(rows), b.getF32Type());
    auto softmax = SoftmaxOp::create(b, loc, type, lse, slice, sink);
    store(softmax->getResults(), results, position, rows, paddedKeys);
  };
  return parallelLoop(rowSizes, {1, 1, softmaxRows}, outputs, body);
}

Value NaiveTiler::output(Value probabilities) {
  int64_t valueDim = op.getValueDim(), part = getPart(valueDim, tileSize),
          keyTile = tileSize / 2;
  TiledDim steps = {keyTile, keys.end};
  SmallVector<OpFoldResult> sizes(rowSizes);
  sizes.push_back(index(valueDim));
  Value empty = tensor::EmptyOp::create(b, loc, sizes, elementType);
  auto body = [&](ValueRange position, ValueRange outputs) {
    Value batch = position[0], head = position[1], row = position[2];
    OpFoldResult rows = queries.existing(b, loc, row);
    OpFoldResult keyHead = groups.getKeyHead(b, loc, head);
    Value zero = zeroTile(tileSize, part);
    VisitedTiles visited = {VisitKind::Keys, keyTile,
                            /*from=*/asValue(index(0)), /*to=*/numKeys,
                            /*by=*/asValue(index(keyTile))};
    visited.exist = {keys.end};
    auto step = [&](VisitOp visit, ValueRange sum) -> SmallVector<Value> {
      Value at = visit.getAt();
      Value weights = extractRows(b, loc, probabilities, {batch, head, row},
                                  rows, tileSize, Columns{at, keyTile});
      Value value = extractRows(b, loc, op.getValue(), {batch, keyHead, at},
                                steps.existing(b, loc, at), keyTile,
                                Columns{position[3], part});
      return {product(weights, value, sum[0], /*transposed=*/false)};
    };
    Value result = emitVisit(b, loc, visited, zero, step)[0];
    store(round(result), outputs, position, rows, index(part));
  };
  return parallelLoop(sizes, {1, 1, tileSize, part}, empty, body)[0];
}

void NaiveTiler::run() {
  SmallVector<Value> weights = softmax(scores());
  SmallVector<Value> results = {output(weights[0])};
  if (op.getLse())
    results.push_back(weights[1]);
  // A result type may be more or less static than the operands' types imply.
  for (auto [result, value] : llvm::zip_equal(op->getResults(), results)) {
    if (value.getType() != result.getType())
      value = tensor::CastOp::create(b, loc, result.getType(), value);
    result.replaceAllUsesWith(value);
  }
  op.erase();
}

namespace {
struct TileNaive : flash::impl::TileNaiveBase<TileNaive> {
  void runOnOperation() override {
    SmallVector<AttentionOp> ops;
    getOperation().walk([&](AttentionOp op) { ops.push_back(op); });
    for (AttentionOp op : ops) {
      if (failed(op.requireRank4()))
        return signalPassFailure();
      if (op.getQueryLengths() || op.getKeyLengths()) {
        op.emitOpError("has batches that are sequences of their own, which "
                       "flash-tile-naive does not know; choose flash-tile");
        return signalPassFailure();
      }
      if (op.getQuery().getType().getDimSize(2) == 0 ||
          op.getKey().getType().getDimSize(2) == 0) {
        op.emitOpError("has no scores, which flash-tile-naive stores: it needs "
                       "at least one query and one key");
        return signalPassFailure();
      }
    }
    for (AttentionOp op : ops)
      NaiveTiler(op).run();
  }
};
} // namespace
