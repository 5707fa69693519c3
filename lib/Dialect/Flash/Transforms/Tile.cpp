//===- Tile.cpp - Tile the online step over queries and keys --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitKV.h"
#include "Visits.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/GetProblem.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Schedule/ValueColumns.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace flash {
#define GEN_PASS_DEF_TILE
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
/// Rewrites one online step and its finalize.
class Tiler {
public:
  Tiler(OnlineAttentionOp online, FinalizeOp finalize)
      : online(online), finalize(finalize), b(finalize), loc(online.getLoc()) {}

  void run();

private:
  OpFoldResult index(int64_t value) { return b.getIndexAttr(value); }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }

  /// The value that all elements of a head have in a state's initial value,
  /// which is made of tensors with an element for each head, such as sinks.
  Value emitScalarOfHead(OpBuilder &at, linalg::GenericOp init,
                         ArrayRef<Value> position);
  /// The same for the rows of a tile.
  Value initialRows(linalg::GenericOp init, Value batch, Value head,
                    Value start, RankedTensorType tile);
  /// The tile of a state's initial value.
  Value initialTile(Value init, Value batch, Value head, Value start,
                    OpFoldResult rows);
  /// The initial state of a query tile; of several splits of its keys, the
  /// first starts from it, the others from the state without keys.
  SmallVector<Value> initialState(Value split, Value batch, Value head,
                                  Value start, OpFoldResult rows);
  /// What the steps of a query tile have in common.
  struct QueryTile {
    Value query, batch, head, start;
    TiledDim keys;
    OpFoldResult headOfKeys;
    OpFoldResult numQueries, numKeys; ///< The numbers in the batch.
  };
  /// Emits the kernel that stores the values of 8 bits as products take them:
  /// for each tile of keys, the rows that follow each other are the columns of
  /// its values, whose keys are interleaved, with zeros behind the last key.
  Value interleaveValues();
  /// The scale of the rows of a head of what `rows` dequantizes.
  Value emitScale(Value rows, Value batch, OpFoldResult head);
  /// Emits what the products of a position's elements of 8 bits are multiplied
  /// by, and its results.
  void emitFactors(Value batch, Value head, OpFoldResult headOfKeys);
  /// The values of a tile of keys: columns of it, or a tile of their own.
  Value loadValues(Value key, ArrayRef<OpFoldResult> first,
                   OpFoldResult existing, bool toEnd);
  /// The step of a visit.
  SmallVector<Value> step(const QueryTile &tile, VisitOp visit,
                          ValueRange state);
  /// The key tiles of a query tile. Each of n splits takes every n-th tile, so
  /// that all have as much to do whatever range of tiles a mask leaves, unless
  /// the schedule says how many keys a split has.
  VisitedTiles getRange(const QueryTile &tile, Value split);
  /// The key tiles that a block map lists, or of the blocks that the caller
  /// lists.
  VisitedTiles getList(const QueryTile &tile, Value split);
  /// The tile of a result, whose queries from `rows` on do not exist.
  Value clearFrom(Value tile, OpFoldResult rows);
  /// Whether a position has some columns of the values only.
  bool hasValueBlocks() {
    return columns.count < online.getValue().getType().getShape().back();
  }
  /// Whether a kernel's pipeline should be filled once: where it overlaps the
  /// steps of one loop.
  bool fillsOnce() {
    return online.getSchedule()->getValue().has(ScheduleFeatures::Overlap);
  }
  /// Emits a finalize whose output has elements of `elementType`.
  FinalizeOp finalizeTile(ArrayRef<Value> state, Type elementType,
                          bool withLse);
  /// Stores the first `rows` rows of a tile if they are `written`: queries that
  /// do not exist have no rows in memory, or clear ones.
  void storeTile(Value tile, Value output, ArrayRef<OpFoldResult> position,
                 Value start, OpFoldResult rows, bool byLengths,
                 function_ref<OpFoldResult(OpFoldResult)> written);
  /// Whether a split of the keys of a batch begins behind the last key, where
  /// only the device knows how many there are; null where no split does. The
  /// first split never does.
  Value isBehindKeys(Value split, Value batch);
  /// How many splits that leaves, at least one.
  OpFoldResult countSplitsOf(OpBuilder &at, Value batch);
  /// The keys of a batch that exist; nothing where all batches have as many.
  std::optional<OpFoldResult> getKeysOf(OpBuilder &at, Value batch);
  /// Computes one query tile and writes it into `outputs`: the results where
  /// its keys may be one split, then partial ones where they may be several.
  void queryTileBody(ValueRange position, ValueRange outputs);
  Value extractQueries(Value tensor, Value batch, Value head, Value start,
                       OpFoldResult rows,
                       std::optional<ColumnsOfPosition> columns = std::nullopt);
  /// The shape of a tile of a state's value, of `rank` dimensions in memory.
  SmallVector<int64_t> getStateShape(int64_t rank) {
    SmallVector<int64_t> shape = {tileRows};
    if (rank == 4)
      shape.push_back(columns.count);
    return shape;
  }

  OnlineAttentionOp online;
  FinalizeOp finalize;
  OpBuilder b;
  Location loc;
  /// The queries of each head in a tile, the heads that share one, and its
  /// rows.
  TiledDim queries = {0, {}};
  int64_t packedHeads = 1, tileRows = 0;
  int64_t keyTile = 0;
  ColumnsOfPosition columns = {0}; ///< Columns of the values.
  bool areOfKeys = false; ///< Whether values are columns of tiles of keys.
  HeadGroups groups;
  KeySplits splits;
  size_t numResults = 0; ///< How many outputs of a split are results.
  /// The values of 8 bits as products take them; null where elements of 16 bits
  /// or more are multiplied.
  Value interleaved;
  Value factor, factorOfResults; ///< See `emitFactors`.
  Value rowsOfKernel;            ///< The view over whose rows it goes, or null.
};
} // namespace

/// What computes a state's initial value, if that is the same for all queries
/// of a head: made of tensors with an element for each head; null if not.
static linalg::GenericOp getGenericOfHeads(Value init) {
  constexpr unsigned numLoops = 3; // (batch, head, query)
  auto generic = init.getDefiningOp<linalg::GenericOp>();
  if (!generic || generic.getNumDpsInits() != 1 ||
      generic.getNumLoops() != numLoops ||
      generic.getNumReductionLoops() != 0 || generic.hasIndexSemantics() ||
      generic.payloadUsesValueFromOperand(generic.getDpsInitOperand(0)))
    return {};
  bool isOfHeads =
      llvm::all_of(generic.getDpsInputOperands(), [&](OpOperand *input) {
        AffineMap map = generic.getMatchingIndexingMap(input);
        return map.isProjectedPermutation() &&
               !map.isFunctionOfDim(numLoops - 1);
      });
  return isOfHeads ? generic : linalg::GenericOp();
}

Value Tiler::emitScalarOfHead(OpBuilder &at, linalg::GenericOp init,
                              ArrayRef<Value> position) {
  IRMapping mapping;
  for (OpOperand *input : init.getDpsInputOperands()) {
    SmallVector<Value> indices;
    for (AffineExpr dim : init.getMatchingIndexingMap(input).getResults())
      indices.push_back(position[cast<AffineDimExpr>(dim).getPosition()]);
    mapping.map(
        init.getMatchingBlockArgument(input),
        tensor::ExtractOp::create(at, loc, input->get(), indices).getResult());
  }
  for (Operation &op : init.getBody()->without_terminator())
    at.clone(op, mapping);
  return mapping.lookupOrDefault(
      init.getBody()->getTerminator()->getOperand(0));
}

Value Tiler::initialRows(linalg::GenericOp init, Value batch, Value head,
                         Value start, RankedTensorType tile) {
  Value empty =
      tensor::EmptyOp::create(b, loc, tile.getShape(), tile.getElementType());
  int64_t rank = tile.getRank();
  SmallVector<utils::IteratorType> parallel(rank,
                                            utils::IteratorType::parallel);
  auto body = [&](OpBuilder &nested, Location loc, ValueRange) {
    Value row = linalg::IndexOp::create(nested, loc, 0);
    Value inTile = arith::RemUIOp::create(
        nested, loc, row,
        arith::ConstantIndexOp::create(nested, loc, packedHeads));
    Value ofRow = arith::AddIOp::create(nested, loc, head, inTile);
    linalg::YieldOp::create(
        nested, loc, emitScalarOfHead(nested, init, {batch, ofRow, start}));
  };
  return linalg::GenericOp::create(b, loc, tile, ValueRange(), empty,
                                   b.getMultiDimIdentityMap(rank), parallel,
                                   body)
      .getResult(0);
}

/// The rows of 8 bits that are dequantized.
static Value getQuantized(Value rows) {
  return rows.getDefiningOp<DequantizeOp>().getSource();
}

Value Tiler::interleaveValues() {
  Value values = getQuantized(online.getValue());
  auto type = cast<RankedTensorType>(values.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, values);
  AffineExpr row = b.getAffineDimExpr(0);
  auto rowOfTile = [&](AffineExpr tile, OpFoldResult of) {
    return affine::makeComposedFoldedAffineApply(
        b, loc, tile * type.getDimSize(3), {of});
  };
  SmallVector<OpFoldResult> shape(sizes);
  shape[2] = rowOfTile(row.ceilDiv(keyTile), sizes[2]);
  shape[3] = index(keyTile);
  Value empty = tensor::EmptyOp::create(b, loc, shape, type.getElementType());
  Schedule schedule;
  schedule.warps = 4;
  auto kernel = KernelOp::create(b, loc, ArrayRef(sizes).drop_back(),
                                 {1, 1, keyTile}, empty, schedule);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(kernel.getStore());
  ValueRange position(kernel.getPosition());
  std::optional<OpFoldResult> keys = getKeysOf(b, position[0]);
  TiledDim dim = {keyTile, keys.value_or(sizes[2]), /*multiple=*/1,
                  /*mayEndBefore=*/keys.has_value()};
  Value tile = loadRows(b, loc, values, getAsOpFoldResult(position),
                        dim.existing(b, loc, position[2]), keyTile,
                        /*toEnd=*/!keys);
  tile =
      InterleaveOp::create(b, loc,
                           RankedTensorType::get({type.getDimSize(3), keyTile},
                                                 type.getElementType()),
                           tile);
  OpFoldResult first = rowOfTile(row.floorDiv(keyTile), position[2]);
  storeRows(b, loc, tile, kernel.getDestinations().front(),
            {position[0], position[1], first}, index(type.getDimSize(3)));
  return kernel.getResult(0);
}

Value Tiler::emitScale(Value rows, Value batch, OpFoldResult head) {
  Value scale = rows.getDefiningOp<DequantizeOp>().getScale();
  SmallVector<Value> at = {constant(0)};
  if (cast<RankedTensorType>(scale.getType()).getRank() == 2)
    at = {batch, getValueOrCreateConstantIndexOp(b, loc, head)};
  return tensor::ExtractOp::create(b, loc, scale, at);
}

void Tiler::emitFactors(Value batch, Value head, OpFoldResult headOfKeys) {
  auto f32 = [&](double value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  };
  factor =
      arith::MulFOp::create(b, loc, emitScale(online.getQuery(), batch, head),
                            emitScale(online.getKey(), batch, headOfKeys));
  // The largest product is the largest score where the factor is positive. With
  // 0 all scores would be equal, as they are with so small a factor, but for
  // those that are -inf. Another one is an error, which nothing can report.
  constexpr double least = 1e-30;
  Value isPositive =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGE, factor, f32(0));
  factor = arith::SelectOp::create(
      b, loc, isPositive, arith::MaxNumFOp::create(b, loc, factor, f32(least)),
      f32(std::numeric_limits<double>::quiet_NaN()));
  factorOfResults = emitScale(online.getValue(), batch, headOfKeys);
}

Value Tiler::extractQueries(Value tensor, Value batch, Value head, Value start,
                            OpFoldResult rows,
                            std::optional<ColumnsOfPosition> columns) {
  return loadRows(b, loc, tensor, {batch, head, start}, rows, tileRows,
                  /*toEnd=*/!online.getQueryLengths(), packedHeads, columns);
}

Value Tiler::initialTile(Value init, Value batch, Value head, Value start,
                         OpFoldResult rows) {
  auto type = cast<RankedTensorType>(init.getType());
  SmallVector<int64_t> shape = getStateShape(type.getRank());
  auto fill = init.getDefiningOp<linalg::FillOp>();
  linalg::GenericOp generic = getGenericOfHeads(init);
  if (!fill && !generic)
    return extractQueries(init, batch, head, start, rows,
                          type.getRank() == 4 ? std::optional(columns)
                                              : std::nullopt);
  if (!fill && packedHeads > 1)
    return initialRows(generic, batch, head, start, type.clone(shape));
  Value scalar =
      fill ? fill.value() : emitScalarOfHead(b, generic, {batch, head, start});
  Value empty = tensor::EmptyOp::create(b, loc, shape, type.getElementType());
  return linalg::FillOp::create(b, loc, scalar, empty).getResult(0);
}

/// Whether `init` is a fill with `neutral`.
static bool isFillOf(Value init, double neutral) {
  auto fill = init.getDefiningOp<linalg::FillOp>();
  FloatAttr value;
  return fill && matchPattern(fill.value(), m_Constant(&value)) &&
         value.getValueAsDouble() == neutral;
}

SmallVector<Value> Tiler::initialState(Value split, Value batch, Value head,
                                       Value start, OpFoldResult rows) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  SmallVector<Value> state;
  for (auto [init, neutral] : {std::pair<Value, double>(online.getAcc(), 0.0),
                               {online.getMax(), -infinity},
                               {online.getSum(), 0.0}}) {
    auto own = [&, init = init] {
      return initialTile(init, batch, head, start, rows);
    };
    if (!split || isFillOf(init, neutral)) {
      state.push_back(own());
      continue;
    }
    SmallVector<int64_t> shape =
        getStateShape(cast<RankedTensorType>(init.getType()).getRank());
    Value value = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(neutral));
    Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          split, constant(0));
    auto choice = scf::IfOp::create(
        b, loc, TypeRange(RankedTensorType::get(shape, b.getF32Type())),
        isFirst, /*addThenBlock=*/true, /*addElseBlock=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.thenBlock());
    scf::YieldOp::create(b, loc, own());
    b.setInsertionPointToStart(choice.elseBlock());
    Value empty = tensor::EmptyOp::create(b, loc, shape, b.getF32Type());
    scf::YieldOp::create(
        b, loc, linalg::FillOp::create(b, loc, value, empty).getResult(0));
    state.push_back(choice.getResult(0));
  }
  return state;
}

Value Tiler::loadValues(Value key, ArrayRef<OpFoldResult> first,
                        OpFoldResult existing, bool toEnd) {
  RankedTensorType keys = online.getKey().getType();
  if (interleaved) {
    AffineExpr row = b.getAffineDimExpr(0).floorDiv(keyTile) *
                     online.getValue().getType().getDimSize(3);
    SmallVector<OpFoldResult> operands = {first[2]};
    if (columns.first) {
      row = row + b.getAffineDimExpr(1);
      operands.push_back(columns.first);
    }
    OpFoldResult firstRow =
        affine::makeComposedFoldedAffineApply(b, loc, row, operands);
    return loadRows(b, loc, interleaved, {first[0], first[1], firstRow},
                    index(columns.count), columns.count, toEnd);
  }
  if (!areOfKeys)
    return loadRows(b, loc, online.getValue(), first, existing, keyTile, toEnd,
                    /*heads=*/1, columns);
  if (columns.count == keys.getShape().back())
    return key;
  OpFoldResult column = index(0), one = index(1);
  if (columns.first)
    column = columns.first;
  return tensor::ExtractSliceOp::create(
      b, loc, key, ArrayRef<OpFoldResult>{index(0), column},
      ArrayRef<OpFoldResult>{index(keyTile), index(columns.count)},
      ArrayRef<OpFoldResult>{one, one});
}

SmallVector<Value> Tiler::step(const QueryTile &tile, VisitOp visit,
                               ValueRange state) {
  Value at = visit.getAt(), rows = visit.getRowArgs()[0];
  bool isRagged = tile.keys.isRagged();
  OpFoldResult existing = isRagged ? OpFoldResult(rows) : index(keyTile);
  SmallVector<OpFoldResult> first = {tile.batch, tile.headOfKeys, at};
  bool toEnd = !online.getLengths() && !online.getKeyLengths();
  Value key = loadRows(
      b, loc, interleaved ? getQuantized(online.getKey()) : online.getKey(),
      first, existing, keyTile, toEnd);
  Value value = loadValues(key, first, existing, toEnd);
  SmallVector<int64_t> staticPosition(4, ShapedType::kDynamic), staticExtents;
  SmallVector<Value> extents;
  dispatchIndexOpFoldResults({tile.numQueries, tile.numKeys}, extents,
                             staticExtents);
  auto step = OnlineAttentionOp::create(
      b, loc, state.getTypes(), tile.query, key, value, state[0], state[1],
      state[2], ValueRange{tile.batch, tile.head, tile.start, at}, extents,
      isRagged ? rows : Value(), /*partial=*/Value(), factor,
      /*lengths=*/Value(),
      /*queryLengths=*/Value(), /*keyLengths=*/Value(),
      /*keyTiles=*/Value(), /*tileCounts=*/Value(), staticPosition,
      staticExtents, online.getScale(), online.getUnit(), online.getMaskAttr(),
      online.getPrecisionAttr(),
      /*blockSizes=*/DenseI64ArrayAttr(), /*multiples=*/DenseI64ArrayAttr(),
      online.getScheduleAttr(),
      packedHeads > 1 ? b.getI64IntegerAttr(packedHeads) : IntegerAttr());
  IRMapping mapping;
  online.getScore().cloneInto(&step.getScore(), mapping);
  return SmallVector<Value>(step.getResults());
}

VisitedTiles Tiler::getRange(const QueryTile &tile, Value split) {
  Value end = getValueOrCreateConstantIndexOp(b, loc, tile.keys.end);
  AffineExpr toKey = b.getAffineDimExpr(0) * keyTile;
  auto keyOfTile = [&](OpFoldResult tile) {
    return getValueOrCreateConstantIndexOp(
        b, loc, affine::makeComposedFoldedAffineApply(b, loc, toKey, {tile}));
  };
  Value first = constant(0), by;
  if (split && splits.getKeys()) {
    AffineExpr ofSplit = b.getAffineDimExpr(0) * *splits.getKeys();
    auto at = [&](AffineExpr key) {
      return affine::makeComposedFoldedAffineApply(b, loc, key, {split});
    };
    first = getValueOrCreateConstantIndexOp(b, loc, at(ofSplit));
    end = getValueOrCreateConstantIndexOp(
        b, loc,
        affine::makeComposedFoldedAffineMin(
            b, loc, b.getMultiDimIdentityMap(2),
            {OpFoldResult(end), at(ofSplit + *splits.getKeys())}));
    by = constant(keyTile);
  } else {
    if (split)
      first = keyOfTile(split);
    by = keyOfTile(splits.getCount());
  }
  VisitedTiles range = {VisitKind::Keys, keyTile, first, end, by};
  // What the first tiles of a split are depends on its length.
  range.fillOnce = fillsOnce() && !splits.getKeys();
  return range;
}

VisitedTiles Tiler::getList(const QueryTile &tile, Value split) {
  auto divide = [&](Value position, int64_t size) {
    return getValueOrCreateConstantIndexOp(
        b, loc,
        affine::makeComposedFoldedAffineApply(
            b, loc, b.getAffineDimExpr(0).floorDiv(size), {position}));
  };
  VisitedTiles listed = {VisitKind::Keys, keyTile};
  listed.list = online.getKeyTiles();
  listed.counts = online.getTileCounts();
  if (std::optional<ArrayRef<int64_t>> blocks = online.getBlockSizes()) {
    listed.cut = blocks->back();
    listed.row = {tile.batch, tile.head, divide(tile.start, blocks->front())};
  } else {
    listed.row = {tile.batch, divide(tile.head, packedHeads),
                  divide(tile.start, queries.tile)};
  }
  if (split) {
    listed.from = split;
    listed.by = getValueOrCreateConstantIndexOp(b, loc, splits.getCount());
  }
  listed.fillOnce = fillsOnce() && !split && !listed.cut;
  return listed;
}

Value Tiler::clearFrom(Value tile, OpFoldResult rows) {
  auto type = cast<RankedTensorType>(tile.getType());
  bool isLse = type.getRank() == 1;
  Value end = getValueOrCreateConstantIndexOp(
      b, loc,
      affine::makeComposedFoldedAffineApply(
          b, loc, b.getAffineDimExpr(0) * packedHeads, {rows}));
  auto body = [&](OpBuilder &nested, Location loc, ValueRange args) {
    Value exists =
        arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::slt,
                              linalg::IndexOp::create(nested, loc, 0), end);
    Value none = arith::ConstantOp::create(
        nested, loc,
        nested.getFloatAttr(type.getElementType(),
                            isLse ? -std::numeric_limits<double>::infinity()
                                  : 0.0));
    linalg::YieldOp::create(
        nested, loc,
        arith::SelectOp::create(nested, loc, exists, args[0], none)
            .getResult());
  };
  AffineMap map = b.getMultiDimIdentityMap(type.getRank());
  return linalg::GenericOp::create(
             b, loc, type, tile,
             tensor::EmptyOp::create(b, loc, type.getShape(),
                                     type.getElementType())
                 .getResult(),
             {map, map},
             SmallVector<utils::IteratorType>(type.getRank(),
                                              utils::IteratorType::parallel),
             body)
      .getResult(0);
}

FinalizeOp Tiler::finalizeTile(ArrayRef<Value> state, Type elementType,
                               bool withLse) {
  SmallVector<int64_t> shape = getStateShape(/*rank=*/4);
  Value output = tensor::EmptyOp::create(b, loc, shape, elementType), lse;
  SmallVector<Type> types = {output.getType()};
  if (withLse) {
    lse = tensor::EmptyOp::create(b, loc, {tileRows}, b.getF32Type());
    types.push_back(lse.getType());
  }
  Value acc = state[0];
  if (factorOfResults) {
    AffineMap all = b.getMultiDimIdentityMap(2);
    auto body = [&](OpBuilder &nested, Location loc, ValueRange args) {
      linalg::YieldOp::create(
          nested, loc,
          arith::MulFOp::create(nested, loc, args[0], factorOfResults)
              .getResult());
    };
    acc =
        linalg::GenericOp::create(
            b, loc, acc.getType(), acc,
            tensor::EmptyOp::create(b, loc, shape, b.getF32Type()).getResult(),
            {all, all},
            SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel),
            body)
            .getResult(0);
  }
  return FinalizeOp::create(b, loc, types, acc, state[1], state[2], output, lse,
                            finalize.getUnit());
}

void Tiler::storeTile(Value tile, Value output, ArrayRef<OpFoldResult> position,
                      Value start, OpFoldResult rows, bool byLengths,
                      function_ref<OpFoldResult(OpFoldResult)> written) {
  bool clears = online.getQueryLengths() && !byLengths;
  OpFoldResult stored =
      written(clears ? queries.existing(b, loc, start) : rows);
  // A value for each row is the same for all blocks of columns.
  bool hasColumns = cast<RankedTensorType>(tile.getType()).getRank() == 2;
  if (columns.first && !hasColumns)
    stored = arith::SelectOp::create(
                 b, loc,
                 arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                       columns.first, constant(0)),
                 getValueOrCreateConstantIndexOp(b, loc, stored), constant(0))
                 .getResult();
  storeRows(b, loc, clears ? clearFrom(tile, rows) : tile, output, position,
            stored, packedHeads, hasColumns ? columns.first : Value());
}

std::optional<OpFoldResult> Tiler::getKeysOf(OpBuilder &at, Value batch) {
  if (!online.getLengths() && !online.getKeyLengths())
    return std::nullopt;
  OpFoldResult keys = getLength(at, loc, online.getMixedExtents()[1],
                                online.getKeyLengths(), batch);
  return getLength(at, loc, keys, online.getLengths(), batch);
}

Value Tiler::isBehindKeys(Value split, Value batch) {
  if (!split || !splits.getKeys())
    return {};
  std::optional<OpFoldResult> keys = getKeysOf(b, batch);
  if (!keys)
    return {};
  Value first =
      arith::MulIOp::create(b, loc, split, constant(*splits.getKeys()));
  // A batch without keys has a split, too, which writes its rows.
  Value end = arith::MaxSIOp::create(
      b, loc, getValueOrCreateConstantIndexOp(b, loc, *keys), constant(1));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, first, end);
}

OpFoldResult Tiler::countSplitsOf(OpBuilder &at, Value batch) {
  std::optional<OpFoldResult> keys =
      splits.getKeys() ? getKeysOf(at, batch) : std::nullopt;
  if (!keys)
    return splits.getCount();
  AffineExpr count = at.getAffineDimExpr(0).ceilDiv(*splits.getKeys());
  return affine::makeComposedFoldedAffineMax(
      at, loc,
      AffineMap::get(1, 0, {count, at.getAffineConstantExpr(1)},
                     at.getContext()),
      {*keys});
}

void Tiler::queryTileBody(ValueRange position, ValueRange outputs) {
  ValueRange ofResults = position.take_back(3), others = position.drop_back(3);
  Value split = splits.maySplit() ? others.back() : Value();
  if (hasValueBlocks())
    columns.first = others.front();
  Value batch = ofResults[0], head = ofResults[1], start = ofResults[2];
  // First, so that a block knows it before it does anything else.
  Value isEmpty = isBehindKeys(split, batch);
  SmallVector<OpFoldResult> extents = online.getMixedExtents();
  QueryTile tile = {{}, batch, head, start, {}, {}, {}, {}};
  tile.numQueries =
      getLength(b, loc, extents[0], online.getQueryLengths(), batch);
  TiledDim ofBatch = queries;
  if (online.getQueryLengths())
    ofBatch = {queries.tile, tile.numQueries, /*multiple=*/1,
               /*mayEndBefore=*/true};
  OpFoldResult rows = ofBatch.existing(b, loc, start);
  tile.query = extractQueries(interleaved ? getQuantized(online.getQuery())
                                          : online.getQuery(),
                              batch, head, start, rows);
  SmallVector<Value> state = initialState(split, batch, head, start, rows);
  tile.numKeys = getLength(b, loc, extents[1], online.getKeyLengths(), batch);
  tile.keys = {keyTile,
               getLength(b, loc, tile.numKeys, online.getLengths(), batch)};
  if (online.getMultiples() && !online.getLengths() && !online.getKeyLengths())
    tile.keys.multiple = online.getMultiples()->back();
  if (online.getBlockSizes())
    tile.keys.block = online.getBlockSizes()->back();
  // A tile without queries visits nothing.
  if (online.getQueryLengths())
    tile.keys.end = endUnlessEmpty(b, loc, rows, tile.keys.end);
  tile.headOfKeys = groups.getKeyHead(b, loc, head);
  if (interleaved)
    emitFactors(batch, head, tile.headOfKeys);
  VisitedTiles visited =
      online.getKeyTiles() ? getList(tile, split) : getRange(tile, split);
  visited.exist = {tile.keys.end};
  visited.multiples = getMultiplesOfBatches(online);
  state =
      emitVisit(b, loc, visited, state, [&](VisitOp visit, ValueRange state) {
        return step(tile, visit, state);
      });

  Type elementType =
      cast<RankedTensorType>(finalize.getOutput().getType()).getElementType();
  ValueRange results = outputs.take_front(numResults),
             partial = outputs.drop_front(numResults);
  if (partial.empty()) {
    FinalizeOp done = finalizeTile(state, elementType, results.size() > 1);
    for (auto [tile, output, result] :
         llvm::zip_equal(done->getResults(), results, finalize->getResults()))
      storeTile(tile, output, getAsOpFoldResult(ofResults), start, rows,
                isStoredByLengths(result, online.getQueryLengths()),
                [](OpFoldResult rows) { return rows; });
    return;
  }
  bool byLengths = rowsOfKernel != nullptr;
  // Either kind is written, and no row of the other; none of a split that the
  // combination does not read.
  auto choose = [&](OpFoldResult one, OpFoldResult several) -> OpFoldResult {
    OpFoldResult rows = splits.choose(b, loc, one, several);
    if (!isEmpty)
      return rows;
    return arith::SelectOp::create(
               b, loc, isEmpty, constant(0),
               getValueOrCreateConstantIndexOp(b, loc, rows))
        .getResult();
  };
  FinalizeOp done = finalizeTile(state, b.getF32Type(), /*withLse=*/true);
  if (!results.empty()) {
    Value output = done.getOutput();
    if (!elementType.isF32())
      output = arith::TruncFOp::create(
          b, loc, cast<RankedTensorType>(output.getType()).clone(elementType),
          output);
    Value tiles[] = {output, done.getLse()};
    for (auto [tile, to] : llvm::zip(tiles, results))
      storeTile(tile, to, getAsOpFoldResult(ofResults), start, rows, byLengths,
                [&](OpFoldResult rows) { return choose(rows, index(0)); });
  }
  SmallVector<OpFoldResult> inMemory = {split};
  llvm::append_range(inMemory, getAsOpFoldResult(ofResults));
  if (rowsOfKernel)
    llvm::copy(rowsOfKernel.getDefiningOp<AddressOpInterface>().emitAddress(
                   b, loc, getAsOpFoldResult(ofResults)),
               inMemory.begin() + 1);
  for (auto [tile, to] : llvm::zip_equal(done->getResults(), partial))
    storeTile(tile, to, inMemory, start, rows, byLengths,
              [&](OpFoldResult rows) { return choose(index(0), rows); });
}

/// Erases a slice if only its sizes are used.
static void eraseUnread(tensor::ExtractSliceOp slice) {
  for (Operation *user : llvm::make_early_inc_range(slice->getUsers())) {
    auto dim = dyn_cast<tensor::DimOp>(user);
    std::optional<int64_t> number = dim ? dim.getConstantIndex() : std::nullopt;
    if (!number)
      continue;
    OpBuilder b(dim);
    dim.replaceAllUsesWith(getValueOrCreateConstantIndexOp(
        b, dim.getLoc(), slice.getMixedSizes()[*number]));
    dim.erase();
  }
  if (slice->use_empty())
    slice.erase();
}

void Tiler::run() {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, loc, online.getQuery());
  const Schedule schedule = online.getSchedule()->getValue();
  packedHeads = schedule.getPackedHeads();
  tileRows = *schedule.queryTile;
  queries = {schedule.getQueriesOfTile(), sizes[2]};
  if (online.getMultiples())
    queries.multiple = online.getMultiples()->front();
  keyTile = *schedule.keyTile;
  int64_t allColumns = online.getValue().getType().getShape().back();
  columns.count = schedule.valueColumns.value_or(allColumns);
  bool isQuantized =
      multipliesQuantized(online.getPrecision(), online.getSchedule());
  areOfKeys =
      !isQuantized && areColumnsOfKeys(online.getKey(), online.getValue()) &&
      beginAtPanels(allColumns, columns.count,
                    online.getValue().getType().getElementTypeBitWidth() / 8);
  groups = HeadGroups(b, loc, online.getQuery(), online.getKey());
  rowsOfKernel = getRowsOfKernel(online.getQuery(), finalize->getResults(),
                                 online.getQueryLengths());
  splits =
      KeySplits(b, online,
                rowsOfKernel ? rowsOfKernel.getDefiningOp<AddressOpInterface>()
                             : AddressOpInterface());

  if (isQuantized)
    interleaved = interleaveValues();

  SmallVector<Value> results = {finalize.getOutputInit()}, inits;
  if (finalize.getLseInit())
    results.push_back(finalize.getLseInit());
  if (splits.mayBeOne())
    inits = results;
  numResults = inits.size();
  SmallVector<OpFoldResult> ends(ArrayRef(sizes).drop_back());
  SmallVector<int64_t> steps = {1, packedHeads, queries.tile};
  if (splits.maySplit()) {
    SmallVector<OpFoldResult> partialSizes(ends);
    // Partial results lie where rows do.
    if (rowsOfKernel)
      partialSizes.front() = tensor::getMixedSize(
          b, loc, rowsOfKernel.getDefiningOp<AddressOpInterface>().getMemory(),
          0);
    // One split needs no memory for partial results.
    partialSizes.insert(partialSizes.begin(),
                        splits.choose(b, loc, index(0), splits.getCount()));
    partialSizes.push_back(index(allColumns));
    for (ArrayRef<OpFoldResult> shape :
         {ArrayRef(partialSizes), ArrayRef(partialSizes).drop_back()})
      inits.push_back(tensor::EmptyOp::create(b, loc, shape, b.getF32Type()));
    ends.insert(ends.begin(), splits.getCount());
    steps.insert(steps.begin(), 1);
  }
  addValueBlocks(b, allColumns, columns.count, ends, steps);
  auto kernel =
      KernelOp::create(b, loc, ends, steps, inits, schedule, rowsOfKernel);
  // How long a split is only the device knows.
  if (splits.getKeys() && splits.maySplit() && !rowsOfKernel &&
      (online.getLengths() || online.getKeyLengths()))
    kernel.setOrderAttr(OrderAttr::get(b.getContext(), TileOrder::Linear));
  // Keys are cached, and prompts may be beside tokens. Blocks with roles that
  // do not claim tiles are for few queries of each sequence: all heads of a
  // sequence come together there, since the last head would begin the longest
  // sequence near the end.
  AddressOpInterface ofKeys = AddressOpInterface::ofRows(online.getKey());
  if (rowsOfKernel && !splits.maySplit() &&
      !isa_and_nonnull<UnpackOp>(ofKeys.getOperation())) {
    bool haveFewQueries = schedule.has(ScheduleFeatures::SpecializeWarps) &&
                          !schedule.has(ScheduleFeatures::ClaimTiles);
    kernel.setOrderAttr(
        OrderAttr::get(b.getContext(), haveFewQueries ? TileOrder::HeadsFastest
                                                      : TileOrder::Halves));
  }
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(kernel.getStore());
    queryTileBody(ValueRange(kernel.getPosition()),
                  ValueRange(kernel.getDestinations()));
  }
  ValueRange partial = kernel.getResults().drop_front(numResults);
  if (numResults > 0)
    results.assign(kernel.getResults().begin(),
                   kernel.getResults().begin() + numResults);
  if (!partial.empty())
    results = combineSplits(
        b, loc, splits, partial[0], partial[1], results,
        /*alongHeads=*/packedHeads > 1, rowsOfKernel,
        [&](OpBuilder &at, Value batch) { return countSplitsOf(at, batch); });

  finalize->replaceAllUsesWith(results);
  finalize.erase();
  auto slice = online.getValue().getDefiningOp<tensor::ExtractSliceOp>();
  online.erase();
  if (slice && areOfKeys)
    eraseUnread(slice);
}

/// The finalize that is the only user of all of a step's results, or null.
static FinalizeOp getOnlyFinalize(OnlineAttentionOp online) {
  FinalizeOp finalize;
  for (Operation *user : online->getUsers()) {
    auto candidate = dyn_cast<FinalizeOp>(user);
    if (!candidate || (finalize && candidate != finalize))
      return nullptr;
    finalize = candidate;
  }
  if (finalize && finalize.getAcc() == online.getAccOut() &&
      finalize.getMax() == online.getMaxOut() &&
      finalize.getSum() == online.getSumOut())
    return finalize;
  return nullptr;
}

static LogicalResult verifyPackedHeads(OnlineAttentionOp online) {
  int64_t packed = online.getSchedule()->getValue().getPackedHeads();
  RankedTensorType query = online.getQuery().getType(),
                   key = online.getKey().getType();
  if (packed == 1)
    return success();
  if (multipliesQuantized(online.getPrecision(), online.getSchedule()))
    return online.emitOpError("with precision(fp8) has a factor for each tile, "
                              "so it packs no heads; leave out packed_heads");
  if (query.isDynamicDim(1) || key.isDynamicDim(1))
    return online.emitOpError("can pack heads only where the types say how "
                              "many there are");
  int64_t group = query.getDimSize(1) / key.getDimSize(1);
  if (group % packed == 0)
    return success();
  return online.emitOpError("packs ")
         << packed << " heads, which must divide the " << group
         << " query heads that read the same keys";
}

namespace {
struct Tile : flash::impl::TileBase<Tile> {
  void runOnOperation() override {
    SmallVector<std::pair<OnlineAttentionOp, FinalizeOp>> pairs;
    WalkResult walk = getOperation().walk([&](OnlineAttentionOp online) {
      if (online.isTile())
        return WalkResult::advance();
      Schedule schedule =
          online.getSchedule() ? online.getSchedule()->getValue() : Schedule();
      if (!schedule.queryTile || !schedule.keyTile) {
        online.emitOpError("has no schedule with query_tile and key_tile; run "
                           "flash-select-schedule or write them");
        return WalkResult::interrupt();
      }
      if (!llvm::all_of(online.getMixedPosition(), isZeroInteger)) {
        online.emitOpError("can be tiled only from position [0, 0, 0, 0] on");
        return WalkResult::interrupt();
      }
      if (failed(verifyPackedHeads(online)))
        return WalkResult::interrupt();
      std::string fault = findBlockFault(online.getBlockSizes(), schedule,
                                         /*isGradient=*/false);
      int64_t columns = online.getValue().getType().getShape().back();
      if (fault.empty())
        fault = findValueColumnsFault(columns,
                                      schedule.valueColumns.value_or(columns));
      if (!fault.empty()) {
        online.emitOpError("cannot be tiled: ") << fault;
        return WalkResult::interrupt();
      }
      FinalizeOp finalize = getOnlyFinalize(online);
      if (!finalize) {
        online.emitOpError("can be tiled only if all of its results go to one "
                           "flash.finalize and nowhere else");
        return WalkResult::interrupt();
      }
      bool splits = schedule.splitKeys || schedule.splitCtas ||
                    schedule.numSplits.value_or(1) > 1;
      fault = findSplitFault(online.getQuery(), finalize->getResults(),
                             online.getQueryLengths());
      if (splits && !fault.empty()) {
        online.emitOpError("cannot be tiled: ") << fault;
        return WalkResult::interrupt();
      }
      pairs.emplace_back(online, finalize);
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    for (auto [online, finalize] : pairs)
      Tiler(online, finalize).run();
  }
};
} // namespace
