//===- TileCapturedGrad.cpp - Gradients of what score regions read --------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An element of a captured tensor is read for many scores, and its gradient is
// the sum of what each of these reads contributes. Which element a read is of
// depends on few things: on the head, say, or on the distance of query and key.
// So one program sums up the contributions of all scores that agree in these,
// in registers, into partial sums; another one looks for each element of the
// tensor which partial sums are its own. Nothing is added to memory, and the
// order of all additions is that of the text.
//
//===----------------------------------------------------------------------===//

#include "GradProgram.h"
#include "flash/Dialect/Flash/Utils/MaskConditions.h"

#include "flash/Analysis/MaskNodes.h"
#include "flash/Analysis/MaskTiles.h"
#include "flash/Analysis/ScoreDependence.h"
#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "flash/Machine/TargetAttr.h"
#include "flash/Schedule/GradKernels.h"
#include "flash/Support/DescribeLocation.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

/// The elements that an iteration looks for partial sums of, and how many sums
/// it looks at in a step, or writes where each element has one.
static constexpr int64_t elementsOfIteration = 8, sumsOfStep = 256;

namespace {
/// Reads of a tensor at the same indices.
struct ReadGroup {
  SmallVector<int64_t> reads; ///< Their numbers.
  tensor::ExtractOp first;
  SmallVector<Value> indices; ///< In the region.
};
} // namespace

static SmallVector<ReadGroup> getReadGroups(Region &score, Value captured) {
  SmallVector<ReadGroup> groups;
  int64_t number = 0;
  for (auto read : score.front().getOps<tensor::ExtractOp>()) {
    if (read.getTensor() != captured)
      continue;
    auto *same = llvm::find_if(groups, [&](const ReadGroup &group) {
      return llvm::equal(group.indices, read.getIndices());
    });
    if (same == groups.end()) {
      groups.push_back(
          {{}, read, llvm::to_vector_of<Value>(read.getIndices())});
      same = &groups.back();
    }
    same->reads.push_back(number++);
  }
  return groups;
}

LogicalResult flash::verifyCapturedReads(AttentionGradOp op) {
  if (op.getCaptured().empty())
    return success();
  ScoreDependences dependences(op.getScore());
  for (auto [number, captured] : llvm::enumerate(op.getCaptured()))
    for (auto read : op.getScore().front().getOps<tensor::ExtractOp>())
      for (Value index : read.getIndices())
        if (read.getTensor() == captured && dependences.get(index).onScore) {
          InFlightDiagnostic error =
              op.emitOpError("tensor #")
              << number
              << " of wrt is read at an index that depends on the score, so "
                 "that it is unknown which elements of its gradient a tile "
                 "adds to; compute the index from the batch, the head, the "
                 "query, the key and tensors, or leave the tensor out of wrt";
          error.attachNote(read.getLoc()) << "the read";
          return error;
        }
  return success();
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

namespace {
/// One coordinate of partial sums.
struct Coordinate {
  enum Kind { Batch, Head, Query, Key, Distance } kind;
  OpFoldResult size;
};

/// Partial sums of the contributions of some reads, f32, one for each tuple of
/// coordinates; a batch or head of size 1 may stand for all.
struct PartialSums {
  Value sums;
  SmallVector<Coordinate> coordinates;
  /// The distance from key to query of the first ones, where one coordinate is
  /// the distance.
  Value firstDistance = {};
  /// Where the last coordinate is a row of a view, that, and the rows that a
  /// batch starts at a multiple of: sums are where `emitPosition` says.
  AddressOpInterface view = {};
  int64_t tile = 0;
};

/// The distances that the mask leaves: distances of pairs of tiles, in tiles,
/// and distances of the elements of these.
struct Distances {
  OpFoldResult firstOfTiles, numOfTiles, first, number;
};

/// Which partial sums belong to an element of the tensor.
struct Owners {
  /// For each coordinate of the sums, the dimension of the tensor whose index
  /// is that coordinate, or for a distance, differs from it by what the batch
  /// and the head determine.
  SmallVector<std::optional<unsigned>> dimOf;
  /// Whether an index of the tensor is known in this way. Others are computed
  /// for each partial sum, and compared.
  SmallVector<bool> isKnown;
  /// The coordinates along which an element adds up several partial sums.
  SmallVector<unsigned> looped;
};

class CapturedGradTiler : GradProgram {
public:
  CapturedGradTiler(AttentionGradOp op, Value captured, Value lseLog2,
                    Value delta, Value diagonals);
  Value run();

private:
  /// The tiles of a step, and the queries and keys of their batch: those that
  /// there are, and those keys that take part.
  struct Pair {
    Value batch, head, query, key;
    TiledDim queries, keys, usedKeys;
  };
  Pair makePair(Value batch, Value head, Value query, Value key);
  Pair inBatch(const Pair &pair, Value batch) {
    return makePair(batch, pair.head, pair.query, pair.key);
  }
  PartialSums emitPartialSums(const ReadGroup &group);
  /// From now on steps have tiles for warps with roles, or for others, and
  /// their rows are keys or queries.
  void useTiles(bool withRoles, bool rowsAreKeys);
  /// The schedule of a program that copies so many pairs of these in each step,
  /// and so many once.
  Schedule ofTiles(int64_t inStep, int64_t once) {
    return model.getSchedule(withRoles, inStep, once);
  }
  PartialSums emitRowSums(const ReadGroup &group);
  PartialSums emitTileSums(const ReadGroup &group, const ScoreDependence &on);
  PartialSums emitDistanceSums(const ReadGroup &group,
                               const ScoreDependence &on);
  /// The same where each pair of tiles has sums of its diagonals.
  PartialSums emitSumsOfDiagonals(const ReadGroup &group,
                                  const ScoreDependence &on);
  /// Adds the sums of the pairs with the tile of keys to the sums of distances
  /// from `first` on. The tile's `rows` follow each other.
  Value addDiagonalsOfKeys(Value batch, Value head, Value keyTile, Value first,
                           Value rows, Value sums);
  Distances findDistances(const ReadGroup &group);
  /// Sums of the distances, from the `parts` sums of the tiles at each
  /// distance.
  Value addDiagonals(Value tiles, OpFoldResult batches,
                     const Distances &distances, int64_t parts);
  /// Adds the steps of the tile of queries and all tiles of keys.
  Value addKeys(const ReadGroup &group, Pair pair, Value sum);
  /// Adds the steps of the tiles of queries that are `distance` behind a tile
  /// of keys, from `skipped` behind the first such tile on, for so many rows.
  Value addDiagonal(const ReadGroup &group, Pair pair, Value distance,
                    Value skipped, std::optional<int64_t> mostRows, Value sum);
  /// Adds the steps of two tiles in a range of batches or of heads.
  Value addPairs(const ReadGroup &group, Pair pair, VisitKind kind, Value from,
                 Value to, Value sum);
  /// Rows of the operands, as they are in a step, and how many of them exist;
  /// null if all do.
  struct Rows {
    SmallVector<Value> tiles;
    Value count;
  };
  Value emitStep(const ReadGroup &group, const Pair &pair, Value sum,
                 const Rows &ofQueries, const Rows &ofKeys);
  /// The rows of the tile at `pair`; so many of them exist.
  Rows takeQueries(const Pair &pair, OpFoldResult rows);
  Rows takeKeys(const Pair &pair, const TiledDim &dim, OpFoldResult rows);
  OpFoldResult existingQueries(const Pair &pair) {
    return pair.queries.existing(b, b.getLoc(), pair.query);
  }
  OpFoldResult existingKeys(const Pair &pair) {
    return pair.keys.existing(b, b.getLoc(), pair.key);
  }
  /// All tiles of the dimension before `end`.
  VisitedTiles getRange(VisitKind kind, const TiledDim &dim, OpFoldResult end);
  /// The keys of the batch that take part.
  TiledDim getUsedKeys(const TiledDim &dim, Value batch) {
    return ofBatch(dim, op.getLengths(), batch);
  }
  /// Whether an index is the batch, the head, the query or the key itself.
  bool isIndexOf(Value indexed, Coordinate::Kind kind);
  /// What an index adds to the distance of a pair, in the batch and the head of
  /// the position.
  Value emitAddedToDistance(ImplicitLocOpBuilder &b, Value indexed,
                            ScorePosition position);
  /// How many values a coordinate of this kind has: tensors may have fewer
  /// elements than the rows that sequences might have.
  OpFoldResult getMost(const ReadGroup &group, Coordinate::Kind kind,
                       OpFoldResult size);
  Value merge(ArrayRef<ReadGroup> readGroups, ArrayRef<PartialSums> partial);
  /// Which of the partial sums an element of the tensor owns.
  Owners findOwners(const ReadGroup &group, const PartialSums &partial);
  /// The partial sum at `at`, null where the element says it, if the element of
  /// these indices owns it; else 0.
  Value emitOwnSum(ImplicitLocOpBuilder &b, const ReadGroup &group,
                   const PartialSums &partial, const Owners &owners,
                   ArrayRef<Value> element, ArrayRef<Value> at,
                   Value numQueries, Value numKeys);
  /// Adds what elements from `first` on own to `sum`, where that is more than
  /// one partial sum for each of them.
  Value addOwnSums(const ReadGroup &group, const PartialSums &partial,
                   const Owners &owners, ArrayRef<Value> first, Value sum);
  /// The gradient, rounded, from sums that were added, if there are any, and
  /// from partial sums where each element owns one.
  Value collect(ArrayRef<ReadGroup> readGroups, ArrayRef<PartialSums> partial,
                ArrayRef<Owners> owners, Value added,
                ArrayRef<OpFoldResult> sizes);
  /// `end`, or 0 where there are no partial sums.
  Value zeroIfEmpty(const PartialSums &partial, Value end);

  /// The number of tiles of `size` elements.
  OpFoldResult countTiles(OpFoldResult size) {
    return affine::makeComposedFoldedAffineApply(
        b, b.getLoc(), b.getAffineDimExpr(0).ceilDiv(tile), {size});
  }
  Value emptyOf(ArrayRef<OpFoldResult> sizes, Type element) {
    return tensor::EmptyOp::create(b, sizes, element);
  }
  Value apply(AffineExpr expr, ArrayRef<Value> operands) {
    return asValue(affine::makeComposedFoldedAffineApply(
        b, b.getLoc(), expr, getAsOpFoldResult(operands)));
  }
  /// Writes as much of a tile as there is of it, the last two of `sizes`, to
  /// `output`, an output of a parallel loop.
  void insert(Value tile, Value output, ArrayRef<OpFoldResult> offsets,
              ArrayRef<OpFoldResult> sizes);

  Value captured, lseLog2, delta, diagonals;
  ScoreDependences dependences;
  CapturedGradModel model;
  int64_t tile;
  bool withRoles = false, rowsAreKeys = false;
  /// Where warps with roles take the statistics of columns, these.
  Value lseLog2RowsOf8, deltaRowsOf8;
  TiledDim queries, keys;
  OpFoldResult batches, heads;
};
} // namespace

/// Whether coordinate number `c` is a row of a view.
static bool isRowOfSequence(const PartialSums &partial, size_t c) {
  return partial.view && c + 1 == partial.coordinates.size();
}

static Value emitLength(ImplicitLocOpBuilder &b, const PartialSums &partial,
                        Value batch) {
  AddressOpInterface view = partial.view;
  return view.emitLength(b, b.getLoc(), batch);
}

CapturedGradTiler::CapturedGradTiler(AttentionGradOp op, Value captured,
                                     Value lseLog2, Value delta,
                                     Value diagonals)
    : GradProgram(op), captured(captured), lseLog2(lseLog2), delta(delta),
      diagonals(diagonals), dependences(op.getScore()),
      model(op.getSchedule()->getValue(), getMachineOfKernels(op),
            op.getHeadDim(), op.getValueDim(),
            op.getQuery().getType().getElementTypeBitWidth() / 8),
      tile(model.getTile(/*withRoles=*/false)),
      queries{tile, tensor::getMixedSize(b, op.getLoc(), op.getQuery(), 2)},
      keys{tile, tensor::getMixedSize(b, op.getLoc(), op.getKey(), 2)},
      batches(tensor::getMixedSize(b, op.getLoc(), op.getQuery(), 0)),
      heads(tensor::getMixedSize(b, op.getLoc(), op.getQuery(), 1)) {
  if (std::optional<ArrayRef<int64_t>> multiples = op.getMultiples()) {
    queries.multiple = multiples->front();
    keys.multiple = multiples->back();
  }
}

void CapturedGradTiler::insert(Value tile, Value output,
                               ArrayRef<OpFoldResult> offsets,
                               ArrayRef<OpFoldResult> sizes) {
  auto type = cast<RankedTensorType>(tile.getType());
  ArrayRef<OpFoldResult> existing = sizes.take_back(type.getRank());
  SmallVector<int64_t> shape =
      llvm::map_to_vector(existing, [](OpFoldResult size) {
        return getConstantIntValue(size).value_or(ShapedType::kDynamic);
      });
  if (type.getShape() != ArrayRef(shape))
    tile = tensor::ExtractSliceOp::create(
        b, type.clone(shape), tile,
        SmallVector<OpFoldResult>(shape.size(), index(0)), existing,
        SmallVector<OpFoldResult>(shape.size(), index(1)));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(KernelOp::of(output).getStores());
  tensor::ParallelInsertSliceOp::create(
      b, tile, output, offsets, sizes,
      SmallVector<OpFoldResult>(offsets.size(), index(1)));
}

PartialSums CapturedGradTiler::emitPartialSums(const ReadGroup &group) {
  ScoreDependence on = dependences.ofFunction(group.indices);
  if (on.isOnPairs()) {
    useTiles(/*withRoles=*/false, /*rowsAreKeys=*/false);
    return emitTileSums(group, on);
  }
  if (diagonals && isSumByDistance(group.first, dependences))
    return emitSumsOfDiagonals(group, on);
  bool withRoles = model.canHaveRoles();
  if (on.onDistance) {
    useTiles(withRoles, /*rowsAreKeys=*/withRoles);
    return emitDistanceSums(group, on);
  }
  // Either will do where it is neither.
  useTiles(withRoles, on.onKey || (withRoles && !on.onQuery));
  return emitRowSums(group);
}

void CapturedGradTiler::useTiles(bool withRoles, bool rowsAreKeys) {
  this->withRoles = withRoles;
  this->rowsAreKeys = rowsAreKeys;
  tile = queries.tile = keys.tile = model.getTile(withRoles);
  bool hasRowsOf8 = withRoles && rowsAreKeys;
  lseLog2RowsOf8 = hasRowsOf8 ? splitIntoRowsOf8(lseLog2) : Value();
  deltaRowsOf8 = hasRowsOf8 ? splitIntoRowsOf8(delta) : Value();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

CapturedGradTiler::Pair CapturedGradTiler::makePair(Value batch, Value head,
                                                    Value query, Value key) {
  TiledDim keysOfBatch = ofBatch(keys, op.getKeyLengths(), batch);
  return {batch,
          head,
          query,
          key,
          ofBatch(queries, op.getQueryLengths(), batch),
          keysOfBatch,
          getUsedKeys(keysOfBatch, batch)};
}

CapturedGradTiler::Rows CapturedGradTiler::takeQueries(const Pair &pair,
                                                       OpFoldResult rows) {
  if (!pair.queries.isRagged())
    rows = index(tile);
  Rows taken;
  for (Value tensor : {op.getQuery(), op.getOutputGrad()})
    taken.tiles.push_back(extract(tensor, {pair.batch, pair.head, pair.query},
                                  rows, pair.queries));
  SmallVector<OpFoldResult> first =
      emitStatistics(pair.batch, pair.head, pair.query);
  for (auto [statistics, rowsOf8] :
       {std::pair(lseLog2, lseLog2RowsOf8), {delta, deltaRowsOf8}})
    taken.tiles.push_back(
        rowsOf8 ? extractFromRowsOf8(rowsOf8, first, rows, queries)
                : extract(statistics, first, rows, pair.queries));
  if (pair.queries.isRagged())
    taken.count = asValue(rows);
  return taken;
}

CapturedGradTiler::Rows CapturedGradTiler::takeKeys(const Pair &pair,
                                                    const TiledDim &dim,
                                                    OpFoldResult rows) {
  if (!dim.isRagged())
    rows = index(tile);
  OpFoldResult head = groups.getKeyHead(b, b.getLoc(), pair.head);
  Rows taken;
  for (Value tensor : {op.getKey(), op.getValue()})
    taken.tiles.push_back(
        extract(tensor, {pair.batch, head, pair.key}, rows, dim));
  if (dim.isRagged())
    taken.count = asValue(rows);
  return taken;
}

Value CapturedGradTiler::emitStep(const ReadGroup &group, const Pair &pair,
                                  Value sum, const Rows &ofQueries,
                                  const Rows &ofKeys) {
  SmallVector<int64_t> open(4, ShapedType::kDynamic), lengths;
  SmallVector<Value> extents;
  dispatchIndexOpFoldResults({pair.queries.end, pair.keys.end}, extents,
                             lengths);
  Schedule ofStep;
  ofStep.queryTile = ofStep.keyTile = tile;
  auto step = CapturedGradStepOp::create(
      b, sum.getType(), ofQueries.tiles[0], ofKeys.tiles[0], ofKeys.tiles[1],
      ofQueries.tiles[1], ofQueries.tiles[2], ofQueries.tiles[3], captured,
      group.reads, sum, ofQueries.count, ofKeys.count, rowsAreKeys,
      ValueRange{pair.batch, pair.head, pair.query, pair.key}, extents, open,
      lengths, APFloat(op.getScaleOrDefault()), op.getMaskAttr(),
      op.getPrecisionAttr(), ScheduleAttr::get(b.getContext(), ofStep));
  IRMapping mapping;
  op.getScore().cloneInto(&step.getScore(), mapping);
  return step.getResult();
}

Value CapturedGradTiler::addKeys(const ReadGroup &group, Pair pair, Value sum) {
  OpFoldResult rows = existingQueries(pair);
  Rows ofQueries = takeQueries(pair, rows);
  const TiledDim &used = pair.usedKeys;
  auto step = [&](VisitOp visit, ValueRange state) -> SmallVector<Value> {
    pair.key = visit.getAt();
    return {emitStep(group, pair, state[0], ofQueries,
                     takeKeys(pair, used, visit.getRowArgs()[0]))};
  };
  OpFoldResult end = used.end;
  if (op.getQueryLengths())
    end = endUnlessEmpty(b, b.getLoc(), rows, end);
  return emitVisit(b, b.getLoc(), getRange(VisitKind::Keys, used, end), sum,
                   step)[0];
}

Value CapturedGradTiler::addDiagonal(const ReadGroup &group, Pair pair,
                                     Value distance, Value skipped,
                                     std::optional<int64_t> mostRows,
                                     Value sum) {
  Location loc = b.getLoc();
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1),
             d2 = b.getAffineDimExpr(2), d3 = b.getAffineDimExpr(3);
  const TiledDim &used = pair.usedKeys;
  Value from = asValue(affine::makeComposedFoldedAffineMax(
      b, loc, AffineMap::get(2, 0, {d0 + d1, d1}, b.getContext()),
      {distance, skipped}));
  SmallVector<AffineExpr> ends = {d0, d1 + d2};
  if (mostRows)
    ends.push_back(d3 + *mostRows);
  Value to = asValue(affine::makeComposedFoldedAffineMin(
      b, loc, AffineMap::get(4, 0, ends, b.getContext()),
      {pair.queries.end, used.end, distance, from}));
  auto step = [&](VisitOp visit, ValueRange state) -> SmallVector<Value> {
    pair.query = visit.getAt();
    pair.key = visit.getKeyAt();
    auto rows = visit.getRowArgs();
    return {emitStep(group, pair, state[0], takeQueries(pair, rows[0]),
                     takeKeys(pair, used, rows[1]))};
  };
  VisitedTiles visited = {VisitKind::Diagonal, tile, from, to, constant(tile)};
  visited.distance = distance;
  visited.exist = {pair.queries.end, used.end};
  visited.multiples = getMultiplesOfBatches(op);
  return emitVisit(b, loc, visited, sum, step)[0];
}

Value CapturedGradTiler::addPairs(const ReadGroup &group, Pair pair,
                                  VisitKind kind, Value from, Value to,
                                  Value sum) {
  VisitedTiles visited = {kind, /*tile=*/1, from, to, constant(1)};
  visited.exist = {existingQueries(pair), existingKeys(pair)};
  visited.multiples = getMultiplesOfBatches(op);
  if (areSequences())
    for (OpFoldResult rows : visited.exist)
      visited.to = asValue(endUnlessEmpty(b, b.getLoc(), rows, visited.to));
  auto step = [&](VisitOp visit, ValueRange state) -> SmallVector<Value> {
    if (kind == VisitKind::Heads)
      pair.head = visit.getAt();
    else
      pair = inBatch(pair, visit.getAt());
    auto rows = visit.getRowArgs();
    Rows ofKeys = takeKeys(pair, pair.keys, rows[1]);
    // The tile may lie behind all keys that take part.
    if (op.getLengths())
      ofKeys.count =
          arith::SubIOp::create(b, asValue(pair.usedKeys.end), pair.key);
    return {
        emitStep(group, pair, state[0], takeQueries(pair, rows[0]), ofKeys)};
  };
  return emitVisit(b, b.getLoc(), visited, sum, step)[0];
}

VisitedTiles CapturedGradTiler::getRange(VisitKind kind, const TiledDim &dim,
                                         OpFoldResult end) {
  VisitedTiles range = {kind, tile, constant(0), asValue(end), constant(tile)};
  range.exist = {dim.end};
  range.multiples = getMultiplesOfBatches(op);
  return range;
}

//===----------------------------------------------------------------------===//
// Partial sums
//===----------------------------------------------------------------------===//

/// Sums over all keys of a query, or over all queries of a key.
PartialSums CapturedGradTiler::emitRowSums(const ReadGroup &group) {
  const TiledDim &fixed = rowsAreKeys ? keys : queries;
  Value view = rowsAreKeys ? op.getKey() : op.getQuery();
  auto address = view.getDefiningOp<AddressOpInterface>();
  SmallVector<OpFoldResult> sizes = {batches, heads, fixed.end};
  auto body = [&](ValueRange position, ValueRange outputs) {
    Pair pair = makePair(position[0], position[1], position[2], position[2]);
    OpFoldResult rows = fixed.existing(b, b.getLoc(), position[2]);
    Value sum = zeros({tile});
    if (rowsAreKeys) {
      Rows ofKeys = takeKeys(pair, pair.keys, existingKeys(pair));
      Value queryEnd = asValue(pair.queries.end);
      if (op.getLengths() || op.getKeyLengths()) {
        Value end = asValue(pair.usedKeys.end);
        Value isUsed =
            arith::CmpIOp::create(b, arith::CmpIPredicate::slt, pair.key, end);
        queryEnd = arith::SelectOp::create(b, isUsed, queryEnd, constant(0));
        ofKeys.count = arith::SubIOp::create(b, end, pair.key);
      }
      auto step = [&](VisitOp visit, ValueRange state) -> SmallVector<Value> {
        pair.query = visit.getAt();
        return {emitStep(group, pair, state[0],
                         takeQueries(pair, visit.getRowArgs()[0]), ofKeys)};
      };
      VisitedTiles range = getRange(VisitKind::Queries, pair.queries, queryEnd);
      sum = emitVisit(b, b.getLoc(), range, sum, step)[0];
    } else {
      sum = addKeys(group, pair, sum);
    }
    storeRows(b, b.getLoc(), sum, outputs[0],
              emitPosition(b, b.getLoc(), address, tile, position[0],
                           position[1], position[2]),
              address ? index(tile) : rows);
  };
  Value sums = parallelLoop(
      sizes, {1, 1, tile},
      emptyOf(getSizesOfPositions(address, tile, sizes), b.getF32Type()),
      ofTiles(/*inStep=*/1, /*once=*/1), body, address ? view : Value())[0];
  return {sums,
          {{Coordinate::Batch, batches},
           {Coordinate::Head, heads},
           {rowsAreKeys ? Coordinate::Key : Coordinate::Query, fixed.end}},
          /*firstDistance=*/Value(),
          address,
          tile};
}

/// Sums of each pair of a query and a key over the batches and heads that do
/// not matter.
PartialSums CapturedGradTiler::emitTileSums(const ReadGroup &group,
                                            const ScoreDependence &on) {
  OpFoldResult someBatches = on.onBatch ? batches : index(1),
               someHeads = on.onHead ? heads : index(1);
  OpFoldResult someQueries = getMost(group, Coordinate::Query, queries.end),
               someKeys = getMost(group, Coordinate::Key, keys.end);
  SmallVector<OpFoldResult> sizes = {someBatches, someHeads, someQueries,
                                     someKeys};
  auto body = [&](ValueRange position, ValueRange outputs) {
    Pair pair = {position[0], position[1], position[2], position[3],
                 queries,     keys,        keys};
    // The batch and the head of the iteration, or all.
    Value from = on.onBatch ? position[0] : constant(0);
    Value to = on.onBatch ? apply(b.getAffineDimExpr(0) + 1, {from})
                          : asValue(batches);
    auto ofBatch = [&](Value batch, ValueRange state) -> SmallVector<Value> {
      Value head = on.onHead ? position[1] : constant(0);
      Value headEnd =
          on.onHead ? apply(b.getAffineDimExpr(0) + 1, {head}) : asValue(heads);
      return {addPairs(group, inBatch(pair, batch), VisitKind::Heads, head,
                       headEnd, state[0])};
    };
    Value sum = zeros({tile, tile});
    // How much of the tiles there is of a sequence is known before the visit.
    sum = on.onHead && !areSequences()
              ? addPairs(group, pair, VisitKind::Batches, from, to, sum)
              : loop(from, to, 1, sum, ofBatch)[0];
    OpFoldResult rows = TiledDim{tile, someQueries, queries.multiple}.existing(
                     b, b.getLoc(), position[2]),
                 columns = TiledDim{tile, someKeys, keys.multiple}.existing(
                     b, b.getLoc(), position[3]);
    insert(sum, outputs[0], getAsOpFoldResult(position),
           {index(1), index(1), rows, columns});
  };
  Value sums =
      parallelLoop(sizes, {1, 1, tile, tile}, emptyOf(sizes, b.getF32Type()),
                   ofTiles(/*inStep=*/2, /*once=*/0), body)[0];
  return {sums,
          {{Coordinate::Batch, someBatches},
           {Coordinate::Head, someHeads},
           {Coordinate::Query, someQueries},
           {Coordinate::Key, someKeys}}};
}

/// A score that takes part is read in range.
OpFoldResult CapturedGradTiler::getMost(const ReadGroup &group,
                                        Coordinate::Kind kind,
                                        OpFoldResult size) {
  if (!areSequences())
    return size;
  for (auto [dim, indexed] : llvm::enumerate(group.indices))
    if (isIndexOf(indexed, kind))
      return affine::makeComposedFoldedAffineMin(
          b, b.getLoc(), b.getMultiDimIdentityMap(2),
          {size, tensor::getMixedSize(b, b.getLoc(), captured, dim)});
  return size;
}

/// The bound on distances that `bounds` describe, see MaskTiles.
static OpFoldResult emitBound(ImplicitLocOpBuilder &b, bool outerIsMin,
                              ArrayRef<TileBound> bounds,
                              OpFoldResult numQueries, OpFoldResult numKeys) {
  auto extremum = [&](bool isMin, AffineMap map,
                      ArrayRef<OpFoldResult> operands) {
    return isMin ? affine::makeComposedFoldedAffineMin(b, b.getLoc(), map,
                                                       operands)
                 : affine::makeComposedFoldedAffineMax(b, b.getLoc(), map,
                                                       operands);
  };
  if (bounds.empty())
    return b.getIndexAttr(0);
  SmallVector<OpFoldResult> operands(3, b.getIndexAttr(0)), values;
  operands.append({numQueries, numKeys});
  for (const TileBound &bound : bounds)
    values.push_back(extremum(!outerIsMin, bound.map, operands));
  return extremum(outerIsMin, b.getMultiDimIdentityMap(values.size()), values);
}

Distances CapturedGradTiler::findDistances(const ReadGroup &group) {
  Location loc = b.getLoc();
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1),
             one = b.getAffineConstantExpr(1);
  OpFoldResult numQueries = queries.end, numKeys = keys.end;
  auto fold = [&](AffineExpr expr, ArrayRef<OpFoldResult> operands) {
    return affine::makeComposedFoldedAffineApply(b, loc, expr, operands);
  };
  auto greater = [&](AffineExpr x, AffineExpr y,
                     ArrayRef<OpFoldResult> operands) {
    return affine::makeComposedFoldedAffineMax(
        b, loc, AffineMap::get(operands.size(), 0, {x, y}, b.getContext()),
        operands);
  };
  // The mask of a sequence is aligned to the sequence's own end.
  MaskAttrInterface mask = op.getMask() && !areSequences()
                               ? *op.getMask()
                               : FullAttr::get(b.getContext());
  MaskTiles tiles =
      computeDiagonalTiles(mask, tile, getConstantIntValue(numQueries),
                           getConstantIntValue(numKeys));
  Distances result;
  result.firstOfTiles =
      emitBound(b, /*outerIsMin=*/true, tiles.distanceLo, numQueries, numKeys);
  OpFoldResult end =
      emitBound(b, /*outerIsMin=*/false, tiles.distanceHi, numQueries, numKeys);
  // All sequences together have more rows than one: tensors are as long as the
  // longest, and a score that takes part is read in range.
  for (auto [dim, indexed] : llvm::enumerate(group.indices)) {
    std::optional<int64_t> added = dependences.get(indexed).getDistance();
    if (!areSequences() || !added)
      continue;
    result.firstOfTiles = greater(
        d0, b.getAffineConstantExpr(llvm::divideFloorSigned(-*added, tile)),
        {result.firstOfTiles});
    end = affine::makeComposedFoldedAffineMin(
        b, loc,
        AffineMap::get(2, 0, {d0, (d1 - *added + tile - 2).floorDiv(tile) + 1},
                       b.getContext()),
        {end, tensor::getMixedSize(b, loc, captured, dim)});
  }
  // One at least, so that there is something to read.
  result.numOfTiles = greater(d1 - d0, one, {result.firstOfTiles, end});
  result.first =
      greater((d0 - 1) * tile + 1, 1 - d1, {result.firstOfTiles, numKeys});
  OpFoldResult last =
      fold((d0 + d1) * tile - 1, {result.firstOfTiles, result.numOfTiles});
  last = affine::makeComposedFoldedAffineMin(
      b, loc, AffineMap::get(2, 0, {d0, d1 - 1}, b.getContext()),
      {last, numQueries});
  result.number = greater(d1 - d0 + 1, one - 1, {result.first, last});
  return result;
}

/// In how many parts diagonals are added up where few of them are left: so many
/// that there is work for all of a GPU, none of them of fewer than eight tiles.
static int64_t chooseParts(std::optional<int64_t> numDiagonals,
                           std::optional<int64_t> numTiles) {
  constexpr int64_t enoughIterations = 1024, fewestTiles = 8;
  int64_t parts = 1;
  if (numDiagonals && numTiles)
    while (*numDiagonals * parts < enoughIterations &&
           *numTiles >= 2 * parts * fewestTiles)
      parts *= 2;
  return parts;
}

static std::optional<int64_t> multiply(ArrayRef<OpFoldResult> factors) {
  int64_t product = 1;
  for (OpFoldResult factor : factors) {
    std::optional<int64_t> known = getConstantIntValue(factor);
    if (!known)
      return std::nullopt;
    product *= *known;
  }
  return product;
}

/// Sums of each distance. The elements of square tiles of queries and keys that
/// are as many tiles apart have the same distances, so those tiles are added
/// first.
PartialSums CapturedGradTiler::emitDistanceSums(const ReadGroup &group,
                                                const ScoreDependence &on) {
  OpFoldResult someBatches = on.onBatch ? batches : index(1);
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  Distances distances = findDistances(group);
  std::optional<int64_t> queryTiles =
                             getConstantIntValue(countTiles(queries.end)),
                         keyTiles = getConstantIntValue(countTiles(keys.end)),
                         longest;
  if (queryTiles && keyTiles)
    longest = std::min(*queryTiles, *keyTiles);
  int64_t parts = chooseParts(
      multiply({someBatches, heads, distances.numOfTiles}), longest);
  std::optional<int64_t> rows;
  if (parts > 1)
    rows = tile * llvm::divideCeil(*longest, parts);
  SmallVector<OpFoldResult> ends = {
      someBatches, heads,
      affine::makeComposedFoldedAffineApply(b, b.getLoc(), d0 * parts,
                                            {distances.numOfTiles})};
  SmallVector<OpFoldResult> sizes(ends);
  sizes.append(2, index(tile));
  auto body = [&](ValueRange position, ValueRange outputs) {
    Value distance = apply((d0.floorDiv(parts) + d1) * tile,
                           {position[2], asValue(distances.firstOfTiles)});
    Value skipped = apply((d0 % parts) * rows.value_or(0), {position[2]});
    auto ofBatch = [&](Value batch, ValueRange state) -> SmallVector<Value> {
      Pair pair = makePair(batch, position[1], Value(), Value());
      return {addDiagonal(group, pair, distance, skipped, rows, state[0])};
    };
    Value sum = zeros({tile, tile});
    sum = on.onBatch ? ofBatch(position[0], sum)[0]
                     : loop(constant(0), asValue(batches), 1, sum, ofBatch)[0];
    SmallVector<OpFoldResult> offsets = getAsOpFoldResult(position);
    offsets.append(2, index(0));
    insert(sum, outputs[0], offsets,
           {index(1), index(1), index(1), index(tile), index(tile)});
  };
  Value tiles = parallelLoop(ends, {1, 1, 1}, emptyOf(sizes, b.getF32Type()),
                             ofTiles(/*inStep=*/2, /*once=*/0), body)[0];
  return {addDiagonals(tiles, someBatches, distances, parts),
          {{Coordinate::Batch, someBatches},
           {Coordinate::Head, heads},
           {Coordinate::Distance, distances.number}},
          asValue(distances.first)};
}

PartialSums CapturedGradTiler::emitSumsOfDiagonals(const ReadGroup &group,
                                                   const ScoreDependence &on) {
  Location loc = b.getLoc();
  OpFoldResult someBatches = on.onBatch ? batches : index(1);
  Distances distances = findDistances(group);
  SmallVector<OpFoldResult> sizes = {someBatches, heads, distances.number};
  TiledDim blocked = {sumsOfStep, distances.number};
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  Value rows = tensor::CollapseShapeOp::create(
      b, diagonals, ArrayRef<ReassociationIndices>{{0}, {1}, {2}, {3, 4}});
  auto body = [&](ValueRange position, ValueRange outputs) {
    Value first = apply(d0 + d1, {position[2], asValue(distances.first)});
    auto ofBatch = [&](Value batch, ValueRange state) {
      Value end = asValue(affine::makeComposedFoldedAffineApply(
          b, loc, d0.ceilDiv(*schedule.keyTile),
          {getUsedKeys(keys, batch).end}));
      return loop(constant(0), end, 1, state,
                  [&](Value keyTile, ValueRange state) -> SmallVector<Value> {
                    return {addDiagonalsOfKeys(batch, position[1], keyTile,
                                               first, rows, state[0])};
                  });
    };
    Value sum = zeros({1, sumsOfStep});
    sum = on.onBatch ? ofBatch(position[0], sum)[0]
                     : loop(constant(0), asValue(batches), 1, sum, ofBatch)[0];
    insert(sum, outputs[0], getAsOpFoldResult(position),
           {index(1), index(1), blocked.existing(b, loc, position[2])});
  };
  Value sums =
      parallelLoop(sizes, {1, 1, sumsOfStep}, emptyOf(sizes, b.getF32Type()),
                   Schedule(), body)[0];
  return {sums,
          {{Coordinate::Batch, someBatches},
           {Coordinate::Head, heads},
           {Coordinate::Distance, distances.number}},
          asValue(distances.first)};
}

Value CapturedGradTiler::addDiagonalsOfKeys(Value batch, Value head,
                                            Value keyTile, Value first,
                                            Value rows, Value sums) {
  int64_t keyRows = *schedule.keyTile, queryRows = schedule.getQueryStep();
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  AffineMap all = map(2, {0, 1});
  Value firstKey = apply(d0 * keyRows, {keyTile});
  Value numSteps = asValue(affine::makeComposedFoldedAffineApply(
      b, b.getLoc(), d0.ceilDiv(queryRows), {queries.end}));
  SmallVector<Value> extents = {asValue(keys.end), asValue(queries.end)};
  std::optional<MaskTiles> tiles;
  if (op.getMask())
    tiles = computeMaskTiles(transposeMask(*op.getMask()), keyRows, queryRows,
                             getConstantIntValue(keys.end),
                             getConstantIntValue(queries.end));
  // In the row of a pair of tiles the element of a distance has the number
  // keyRows + distance + firstKey - firstQuery, so that the distance is in the
  // rows of so many steps of queries. A row has keyRows + queryRows elements,
  // and the one in front of the first of a tile's rows is 0.
  Value base = apply(d0 + d1 + keyRows, {first, firstKey});
  for (int64_t back = 0; back <= keyRows / queryRows; ++back) {
    auto term = [&](ImplicitLocOpBuilder &at,
                    ValueRange args) -> SmallVector<Value> {
      auto number = [&](int64_t value) -> Value {
        return arith::ConstantIndexOp::create(at, value);
      };
      Value place =
          arith::AddIOp::create(at, base, linalg::IndexOp::create(at, 1));
      Value step =
          arith::ShRSIOp::create(at, place, number(llvm::Log2_64(queryRows)));
      step = arith::SubIOp::create(at, step, number(back));
      Value isThere =
          arith::CmpIOp::create(at, arith::CmpIPredicate::ult, step, numSteps);
      // Nobody has written the others.
      if (tiles)
        isThere = arith::AndIOp::create(
            at, isThere,
            emitIsInAny(at, at.getLoc(), tiles->visited,
                        {batch, head, firstKey, step}, extents));
      place = arith::AddIOp::create(
          at, place, arith::MulIOp::create(at, step, number(keyRows)));
      place = arith::SelectOp::create(at, isThere, place, number(0));
      Value sum = tensor::ExtractOp::create(
          at, rows, ValueRange{batch, head, keyTile, place});
      sum = arith::SelectOp::create(at, isThere, sum, emitConstant(at, 0));
      return {arith::AddFOp::create(at, args[0], sum)};
    };
    sums = generic({}, sums, {all}, term)[0];
  }
  return sums;
}

Value CapturedGradTiler::addDiagonals(Value tiles, OpFoldResult someBatches,
                                      const Distances &distances,
                                      int64_t parts) {
  Location loc = b.getLoc();
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  Value apart = asValue(distances.numOfTiles);
  // From the first distance of the first tiles' first elements to the first
  // one.
  Value ahead = asValue(affine::makeComposedFoldedAffineApply(
      b, loc, d0 - d1 * tile, {distances.first, distances.firstOfTiles}));
  SmallVector<OpFoldResult> sizes = {someBatches, heads, distances.number};
  TiledDim blocked = {sumsOfStep, distances.number};
  AffineMap all = map(2, {0, 1});
  auto body = [&](ValueRange position, ValueRange outputs) {
    // Adds one row after the other of each tile: the elements of neighbouring
    // distances are neighbours in memory.
    auto add = [&](Value row, Value part, Value sums) {
      auto term = [&](ImplicitLocOpBuilder &at,
                      ValueRange args) -> SmallVector<Value> {
        auto number = [&](int64_t value) -> Value {
          return arith::ConstantIndexOp::create(at, value);
        };
        // The distance is tile * n + query - key, for a query and a key of
        // tiles that are n apart: with x the distance and the row's key, n =
        // floor(x / tile) and the query is the rest; with x the distance less
        // the row's query, n = ceil(x / tile) and the key is what is missing.
        // Here n and x are less by the first n, and x has a multiple of the
        // tile added to it, for it not to be negative.
        Value shifted = arith::AddIOp::create(at, position[2],
                                              linalg::IndexOp::create(at, 1));
        shifted = arith::AddIOp::create(at, shifted, ahead);
        if (rowsAreKeys) {
          shifted = arith::AddIOp::create(at, shifted, row);
          shifted = arith::AddIOp::create(at, shifted, number(tile));
        } else {
          shifted = arith::SubIOp::create(at, shifted, row);
          shifted = arith::AddIOp::create(at, shifted, number(2 * tile - 1));
        }
        Value quotient = arith::DivUIOp::create(at, shifted, number(tile));
        Value column = arith::RemUIOp::create(at, shifted, number(tile));
        if (!rowsAreKeys)
          column = arith::SubIOp::create(at, number(tile - 1), column);
        Value which = arith::SubIOp::create(at, quotient, number(1));
        Value isThere = arith::AndIOp::create(
            at,
            arith::CmpIOp::create(at, arith::CmpIPredicate::sge, which,
                                  number(0)),
            arith::CmpIOp::create(at, arith::CmpIPredicate::slt, which, apart));
        Value readable = arith::SelectOp::create(at, isThere, which, number(0));
        readable = arith::MulIOp::create(at, readable, number(parts));
        readable = arith::AddIOp::create(at, readable, part);
        Value sum = tensor::ExtractOp::create(
            at, tiles,
            ValueRange{position[0], position[1], readable, row, column});
        sum = arith::SelectOp::create(at, isThere, sum, emitConstant(at, 0));
        return {arith::AddFOp::create(at, args[0], sum)};
      };
      return generic({}, sums, {all}, term)[0];
    };
    auto ofPart = [&](Value part, ValueRange state) {
      return loop(constant(0), constant(tile), 1, state,
                  [&](Value row, ValueRange state) -> SmallVector<Value> {
                    return {add(row, part, state[0])};
                  });
    };
    Value sum = loop(constant(0), constant(parts), 1, zeros({1, sumsOfStep}),
                     ofPart)[0];
    insert(sum, outputs[0], getAsOpFoldResult(position),
           {index(1), index(1), blocked.existing(b, loc, position[2])});
  };
  return parallelLoop(sizes, {1, 1, sumsOfStep}, emptyOf(sizes, b.getF32Type()),
                      Schedule(), body)[0];
}

//===----------------------------------------------------------------------===//
// Which partial sums belong to which elements
//===----------------------------------------------------------------------===//

bool CapturedGradTiler::isIndexOf(Value indexed, Coordinate::Kind kind) {
  if (auto guard = indexed.getDefiningOp<GuardOp>())
    indexed = guard.getValue();
  return indexed == op.getScore().getArgument(1 + kind);
}

Value CapturedGradTiler::emitAddedToDistance(ImplicitLocOpBuilder &b,
                                             Value indexed,
                                             ScorePosition position) {
  if (std::optional<int64_t> added = dependences.get(indexed).getDistance())
    return arith::ConstantIndexOp::create(b, *added);
  position.query = position.key = arith::ConstantIndexOp::create(b, 0);
  return emitValues(b, op.getScore(), indexed, position,
                    /*takesPart=*/Value())[0];
}

Owners CapturedGradTiler::findOwners(const ReadGroup &group,
                                     const PartialSums &partial) {
  Owners owners;
  unsigned rank = group.indices.size();
  owners.isKnown.assign(rank, false);
  for (const Coordinate &coordinate : partial.coordinates) {
    bool isDistance = coordinate.kind == Coordinate::Distance;
    std::optional<unsigned> dim;
    for (unsigned d = 0; d < rank && !dim; ++d) {
      Value indexed = group.indices[d];
      if (owners.isKnown[d])
        continue;
      if (!(isDistance ? dependences.get(indexed).isDistance()
                       : isIndexOf(indexed, coordinate.kind)))
        continue;
      dim = d;
      owners.isKnown[d] = true;
    }
    if (!dim && !isConstantIntValue(coordinate.size, 1))
      owners.looped.push_back(owners.dimOf.size());
    owners.dimOf.push_back(dim);
  }
  return owners;
}

Value CapturedGradTiler::emitOwnSum(ImplicitLocOpBuilder &b,
                                    const ReadGroup &group,
                                    const PartialSums &partial,
                                    const Owners &owners,
                                    ArrayRef<Value> element, ArrayRef<Value> at,
                                    Value numQueries, Value numKeys) {
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value isOwn = arith::ConstantIntOp::create(b, 1, 1), zero = number(0);
  auto require = [&](arith::CmpIPredicate predicate, Value x, Value y) {
    isOwn = arith::AndIOp::create(b, isOwn,
                                  arith::CmpIOp::create(b, predicate, x, y));
  };
  SmallVector<Value> place;
  ScorePosition position = {zero, zero, zero, zero, numQueries, numKeys};
  for (auto [c, coordinate] : llvm::enumerate(partial.coordinates)) {
    bool isOfSequence = isRowOfSequence(partial, c);
    Value size =
        isOfSequence
            ? emitLength(b, partial, position.batch)
            : getValueOrCreateConstantIndexOp(b, b.getLoc(), coordinate.size);
    Value last = arith::SubIOp::create(b, size, number(1)), value = at[c];
    if (owners.dimOf[c]) {
      value = element[*owners.dimOf[c]];
      if (coordinate.kind == Coordinate::Distance) {
        value = arith::SubIOp::create(
            b, value,
            emitAddedToDistance(b, group.indices[*owners.dimOf[c]], position));
        value = arith::SubIOp::create(b, value, partial.firstDistance);
      }
      require(arith::CmpIPredicate::sge, value, zero);
    } else if (!value) {
      value = zero; // One that stands for all.
    }
    require(arith::CmpIPredicate::sle, value, last);
    value =
        arith::MinSIOp::create(b, arith::MaxSIOp::create(b, value, zero), last);
    // A sequence may have no row; the first is read then.
    if (isOfSequence)
      value = arith::MaxSIOp::create(b, value, zero);
    place.push_back(value);
    switch (coordinate.kind) {
    case Coordinate::Batch:
      position.batch = value;
      break;
    case Coordinate::Head:
      position.head = value;
      break;
    case Coordinate::Query:
      position.query = value;
      break;
    case Coordinate::Key:
      position.key = value;
      break;
    case Coordinate::Distance: {
      Value distance = arith::AddIOp::create(b, value, partial.firstDistance);
      position.query = arith::MaxSIOp::create(b, distance, zero);
      position.key = arith::SubIOp::create(b, position.query, distance);
      break;
    }
    }
  }
  if (partial.view)
    place = getValueOrCreateConstantIndexOp(
        b, b.getLoc(),
        emitPosition(b, b.getLoc(), partial.view, partial.tile, place[0],
                     place[1], place[2]));
  Value sum = tensor::ExtractOp::create(b, partial.sums, place);
  if (!llvm::all_of(owners.isKnown, [](bool known) { return known; })) {
    // A sum that is not 0 is of scores that take part, so that the index may be
    // computed.
    isOwn = arith::AndIOp::create(
        b, isOwn,
        arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, sum,
                              emitConstant(b, 0)));
    SmallVector<Value> indices =
        emitValues(b, op.getScore(), group.indices, position, isOwn);
    for (auto [d, index] : llvm::enumerate(indices))
      if (!owners.isKnown[d])
        require(arith::CmpIPredicate::eq, index, element[d]);
  }
  return arith::SelectOp::create(b, isOwn, sum, emitConstant(b, 0));
}

Value CapturedGradTiler::addOwnSums(const ReadGroup &group,
                                    const PartialSums &partial,
                                    const Owners &owners, ArrayRef<Value> first,
                                    Value sum) {
  ArrayRef<Coordinate> coordinates = partial.coordinates;
  unsigned column = owners.looped.back();
  SmallVector<Value> at(coordinates.size());
  Value numKeys = asValue(keys.end), numQueries = asValue(queries.end);
  AffineMap all = map(2, {0, 1});
  auto step = [&](Value firstColumn, ValueRange state) -> SmallVector<Value> {
    auto term = [&](ImplicitLocOpBuilder &b, ValueRange) -> SmallVector<Value> {
      SmallVector<Value> element(first), place(at);
      Value row = linalg::IndexOp::create(b, 0);
      if (!element.empty())
        element.back() = arith::AddIOp::create(b, element.back(), row);
      place[column] =
          arith::AddIOp::create(b, firstColumn, linalg::IndexOp::create(b, 1));
      return {emitOwnSum(b, group, partial, owners, element, place, numQueries,
                         numKeys)};
    };
    Value terms =
        generic({}, empty({elementsOfIteration, sumsOfStep}), {all}, term)[0];
    return {generic(
        terms, state, {all, map(2, {0})},
        [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {arith::AddFOp::create(at, args[1], args[0])};
        })[0]};
  };
  auto inLoops = [&](auto &&self, ArrayRef<unsigned> looped,
                     ValueRange state) -> SmallVector<Value> {
    Value end = at.front() && isRowOfSequence(partial, looped.front())
                    ? emitLength(b, partial, at.front())
                    : asValue(coordinates[looped.front()].size);
    if (looped.size() == 1) // The columns; of nothing there is none to read.
      return loop(constant(0), zeroIfEmpty(partial, end), sumsOfStep, state,
                  step);
    return loop(constant(0), end, 1, state, [&](Value value, ValueRange state) {
      at[looped.front()] = value;
      return self(self, looped.drop_front(), state);
    });
  };
  return inLoops(inLoops, ArrayRef(owners.looped), sum)[0];
}

Value CapturedGradTiler::zeroIfEmpty(const PartialSums &partial, Value end) {
  for (const Coordinate &coordinate : partial.coordinates)
    if (std::optional<int64_t> size = getConstantIntValue(coordinate.size);
        !size || *size == 0) {
      Value isEmpty = arith::CmpIOp::create(
          b, arith::CmpIPredicate::eq, asValue(coordinate.size), constant(0));
      end = arith::SelectOp::create(b, isEmpty, constant(0), end);
    }
  return end;
}

Value CapturedGradTiler::merge(ArrayRef<ReadGroup> readGroups,
                               ArrayRef<PartialSums> partial) {
  Location loc = b.getLoc();
  auto type = cast<RankedTensorType>(captured.getType());
  // Tiles are matrices, so that there are two dimensions at least.
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, captured);
  int64_t added = std::max<int64_t>(2 - type.getRank(), 0);
  sizes.insert(sizes.begin(), added, index(1));
  SmallVector<Owners> owners;
  for (auto [group, sums] : llvm::zip_equal(readGroups, partial))
    owners.push_back(findOwners(group, sums));

  // The groups with more than one partial sum for each element.
  TiledDim blocked = {elementsOfIteration, sizes.back()};
  SmallVector<int64_t> steps(sizes.size(), 1);
  steps.back() = elementsOfIteration;
  auto addSums = [&](ValueRange position, ValueRange outputs) {
    Value sum = zeros({elementsOfIteration});
    SmallVector<Value> first(position.take_back(type.getRank()));
    for (auto [group, sums, owner] :
         llvm::zip_equal(readGroups, partial, owners))
      if (!owner.looped.empty())
        sum = addOwnSums(group, sums, owner, first, sum);
    storeRows(b, loc, sum, outputs[0], getAsOpFoldResult(position),
              blocked.existing(b, loc, position.back()));
  };
  bool hasSums = llvm::any_of(
      owners, [](const Owners &owner) { return !owner.looped.empty(); });
  Value result;
  if (hasSums)
    result = parallelLoop(sizes, steps, emptyOf(sizes, b.getF32Type()),
                          Schedule(), addSums)[0];
  bool isComplete = hasSums && type.getElementType().isF32() &&
                    llvm::all_of(owners, [](const Owners &owner) {
                      return !owner.looped.empty();
                    });
  if (!isComplete)
    result = collect(readGroups, partial, owners, result, sizes);
  if (added == 0)
    return result;
  SmallVector<ReassociationIndices> dims;
  if (type.getRank() == 1)
    dims.push_back({0, 1});
  return tensor::CollapseShapeOp::create(b, type, result, dims);
}

Value CapturedGradTiler::collect(ArrayRef<ReadGroup> readGroups,
                                 ArrayRef<PartialSums> partial,
                                 ArrayRef<Owners> owners, Value added,
                                 ArrayRef<OpFoldResult> sizes) {
  Location loc = b.getLoc();
  auto type = cast<RankedTensorType>(captured.getType());
  Type element = type.getElementType();
  TiledDim blocked = {sumsOfStep, sizes.back()};
  SmallVector<int64_t> steps(sizes.size(), 1);
  steps.back() = sumsOfStep;
  Value numKeys = asValue(keys.end), numQueries = asValue(queries.end);
  AffineMap all = map(2, {0, 1});
  auto body = [&](ValueRange position, ValueRange outputs) {
    OpFoldResult count = blocked.existing(b, loc, position.back());
    SmallVector<OpFoldResult> offsets = getAsOpFoldResult(position),
                              part(offsets.size() - 1, index(1));
    part.push_back(count);
    Value sum = zeros({1, sumsOfStep});
    if (added) {
      int64_t known = getConstantIntValue(count).value_or(ShapedType::kDynamic);
      sum = tensor::ExtractSliceOp::create(
          b, RankedTensorType::get({1, known}, b.getF32Type()), added, offsets,
          part, SmallVector<OpFoldResult>(offsets.size(), index(1)));
      sum = padToTile(b, loc, sum, {index(1), count}, {1, sumsOfStep},
                      b.getF32FloatAttr(0));
    }
    for (auto [group, sums, owner] :
         llvm::zip_equal(readGroups, partial, owners)) {
      if (!owner.looped.empty())
        continue;
      auto addOwn = [&, &group = group, &sums = sums,
                     &owner = owner](ImplicitLocOpBuilder &b,
                                     ValueRange args) -> SmallVector<Value> {
        SmallVector<Value> own(position.take_back(type.getRank()));
        Value column = linalg::IndexOp::create(b, 1);
        if (!own.empty())
          own.back() = arith::AddIOp::create(b, own.back(), column);
        Value term = emitOwnSum(b, group, sums, owner, own,
                                SmallVector<Value>(sums.coordinates.size()),
                                numQueries, numKeys);
        return {arith::AddFOp::create(b, args[0], term)};
      };
      auto once = [&](Value, ValueRange state) -> SmallVector<Value> {
        return {generic({}, state[0], {all}, addOwn)[0]};
      };
      sum = loop(constant(0), zeroIfEmpty(sums, constant(1)), 1, sum, once)[0];
    }
    if (!element.isF32())
      sum = generic(
          sum, empty({1, sumsOfStep}, element), {all, all},
          [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
            return {truncateF32(at, element, args[0])};
          })[0];
    insert(sum, outputs[0], offsets, part);
  };
  return parallelLoop(sizes, steps, emptyOf(sizes, element), Schedule(),
                      body)[0];
}

Value CapturedGradTiler::run() {
  SmallVector<ReadGroup> readGroups = getReadGroups(op.getScore(), captured);
  SmallVector<PartialSums> partial;
  for (const ReadGroup &group : readGroups)
    partial.push_back(emitPartialSums(group));
  return merge(readGroups, partial);
}

Value flash::emitCapturedGrad(AttentionGradOp op, Value captured, Value lseLog2,
                              Value delta, Value diagonals) {
  return CapturedGradTiler(op, captured, lseLog2, delta, diagonals).run();
}
