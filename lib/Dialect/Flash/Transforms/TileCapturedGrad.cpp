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

#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "flash/Dialect/Flash/Utils/MaskNodes.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "flash/Support/Place.h"
#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

/// The rows and columns of the tiles of scores; more would not stay in
/// registers beside their sums.
static constexpr int64_t mostRowsOfTile = 64;

/// The elements whose partial sums a unit of work looks for, and how many of
/// these it looks at in a step.
static constexpr int64_t elementsOfUnit = 8, sumsOfStep = 256;

//===----------------------------------------------------------------------===//
// What indices depend on
//===----------------------------------------------------------------------===//

namespace {
/// What a value of a score region depends on.
struct Dependence {
  bool onScore = false, onBatch = false, onHead = false;
  /// On these other than by their difference.
  bool onQuery = false, onKey = false;
  bool onDistance = false;
  /// Beside all that, multiples of the query and of the key, to be added,
  int64_t queries = 0, keys = 0;
  /// and this number, where all of it is known.
  std::optional<int64_t> rest;

  /// The same of what is computed from the value in any way.
  Dependence ofFunction() const {
    Dependence result = *this;
    if (queries != 0 && queries == -keys)
      result.onDistance = true;
    else {
      result.onQuery |= queries != 0;
      result.onKey |= keys != 0;
    }
    result.queries = result.keys = 0;
    result.rest.reset();
    return result;
  }
  void add(const Dependence &other) {
    onScore |= other.onScore;
    onBatch |= other.onBatch;
    onHead |= other.onHead;
    onQuery |= other.onQuery;
    onKey |= other.onKey;
    onDistance |= other.onDistance;
  }
  /// The distance from key to query, and a number that is added to it.
  std::optional<int64_t> getDistance() const {
    Dependence others = *this;
    others.queries = others.keys = 0;
    others = others.ofFunction();
    bool isLinear = !others.onScore && !others.onBatch && !others.onHead &&
                    !others.onQuery && !others.onKey && !others.onDistance;
    return isLinear && queries == 1 && keys == -1 ? rest : std::nullopt;
  }
};

/// What the values of a score region depend on.
class Dependences {
public:
  explicit Dependences(Region &score);
  /// That of a value, also from outside, which depends on nothing.
  Dependence get(Value value) const {
    auto found = known.find(value);
    if (found != known.end())
      return found->second;
    Dependence constant;
    APInt number;
    if (matchPattern(value, m_ConstantInt(&number)))
      constant.rest = number.getSExtValue();
    return constant;
  }

private:
  Dependence compute(Operation &op);
  DenseMap<Value, Dependence> known;
};
} // namespace

Dependences::Dependences(Region &score) {
  Block &block = score.front();
  known[block.getArgument(0)].onScore = true;
  known[block.getArgument(1)].onBatch = true;
  known[block.getArgument(2)].onHead = true;
  for (auto [argument, isQuery] : {std::pair(3, true), {4, false}}) {
    Dependence &position = known[block.getArgument(argument)];
    (isQuery ? position.queries : position.keys) = 1;
    position.rest = 0;
  }
  for (Operation &op : block.without_terminator())
    known[op.getResult(0)] = compute(op);
}

Dependence Dependences::compute(Operation &op) {
  // Guards change what no score reads; positions fit in 32 bits.
  if (isa<GuardOp, arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::TruncIOp>(op))
    return get(op.getOperand(0));
  auto combine = [&](int64_t ofLhs, int64_t ofRhs) {
    Dependence lhs = get(op.getOperand(0)), rhs = get(op.getOperand(1));
    Dependence sum = lhs;
    sum.add(rhs);
    sum.queries = ofLhs * lhs.queries + ofRhs * rhs.queries;
    sum.keys = ofLhs * lhs.keys + ofRhs * rhs.keys;
    sum.rest.reset();
    if (lhs.rest && rhs.rest)
      sum.rest = ofLhs * *lhs.rest + ofRhs * *rhs.rest;
    return sum;
  };
  if (isa<arith::AddIOp>(op))
    return combine(1, 1);
  if (isa<arith::SubIOp>(op))
    return combine(1, -1);
  if (isa<arith::ConstantOp>(op)) {
    Dependence constant;
    APInt number;
    if (matchPattern(op.getResult(0), m_ConstantInt(&number)))
      constant.rest = number.getSExtValue();
    return constant;
  }
  Dependence result;
  for (Value operand : op.getOperands())
    result.add(get(operand).ofFunction());
  return result;
}

namespace {
/// Reads of a tensor at the same indices.
struct ReadGroup {
  SmallVector<int64_t> reads; ///< Their numbers.
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
      groups.push_back({{}, llvm::to_vector_of<Value>(read.getIndices())});
      same = &groups.back();
    }
    same->reads.push_back(number++);
  }
  return groups;
}

LogicalResult flash::verifyCapturedReads(AttentionGradOp op) {
  if (op.getCaptured().empty())
    return success();
  Dependences dependences(op.getScore());
  for (auto [number, captured] : llvm::enumerate(op.getCaptured()))
    for (auto read : op.getScore().front().getOps<tensor::ExtractOp>())
      for (Value index : read.getIndices())
        if (read.getTensor() == captured && dependences.get(index).onScore) {
          InFlightDiagnostic error =
              op.emitOpError("tensor #")
              << number
              << " of wrt is read at an index that depends on the score, so "
                 "that nothing tells where its gradient is; compute the index "
                 "from the batch, the head, the query, the key and tensors, or "
                 "leave the tensor out of wrt";
          error.attachNote(read.getLoc()) << "the read";
          return error;
        }
  return success();
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// The least and the greatest distance from key to query that the mask may
/// keep, where a bound is known: those of causal masks, windows and sets like
/// them.
static std::pair<Value, Value> emitDistanceBounds(ImplicitLocOpBuilder &b,
                                                  MaskAttrInterface mask,
                                                  Value numQueries,
                                                  Value numKeys) {
  using Bounds = std::pair<Value, Value>;
  auto combine = [&](Value x, Value y, bool takesGreater) -> Value {
    if (takesGreater)
      return arith::MaxSIOp::create(b, x, y);
    return arith::MinSIOp::create(b, x, y);
  };
  auto intersect = [&](Bounds &all, const Bounds &other) {
    if (other.first)
      all.first =
          all.first ? combine(all.first, other.first, true) : other.first;
    if (other.second)
      all.second =
          all.second ? combine(all.second, other.second, false) : other.second;
  };
  auto unite = [&](Bounds &all, const Bounds &other) {
    all.first = all.first && other.first
                    ? combine(all.first, other.first, false)
                    : Value();
    all.second = all.second && other.second
                     ? combine(all.second, other.second, true)
                     : Value();
  };
  auto ofSet = [&](IntegerSet set) {
    Bounds bounds;
    for (auto [constraint, isEquality] :
         llvm::zip_equal(set.getConstraints(), set.getEqFlags())) {
      // The coefficients of b, h, i, j, nq, nk and 1, and of quotients.
      SmallVector<int64_t> flat;
      if (failed(getFlattenedAffineExpr(constraint, set.getNumDims(),
                                        set.getNumSymbols(), &flat)) ||
          flat.size() != 7 || flat[0] != 0 || flat[1] != 0 ||
          std::abs(flat[2]) != 1 || flat[2] != -flat[3])
        continue;
      // distance + rest >= 0, or -distance + rest >= 0
      AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
      Value rest = getValueOrCreateConstantIndexOp(
          b, b.getLoc(),
          affine::makeComposedFoldedAffineApply(
              b, b.getLoc(), (d0 * flat[4] + d1 * flat[5] + flat[6]) * -flat[2],
              {numQueries, numKeys}));
      bool isLeast = flat[2] == 1;
      if (isLeast || isEquality)
        intersect(bounds, {rest, Value()});
      if (!isLeast || isEquality)
        intersect(bounds, {Value(), rest});
    }
    return bounds;
  };
  std::vector<MaskNode> nodes = getMaskNodes(mask);
  std::vector<Bounds> boundsOf(nodes.size());
  for (auto [node, bounds] : llvm::zip_equal(nodes, boundsOf)) {
    if (node.kind == MaskForm::Kind::Set) {
      bounds = ofSet(node.set);
      continue;
    }
    bool isUnion = node.kind == MaskForm::Kind::Union;
    for (auto [number, part] : llvm::enumerate(node.parts)) {
      if (number == 0)
        bounds = boundsOf[part];
      else if (isUnion)
        unite(bounds, boundsOf[part]);
      else
        intersect(bounds, boundsOf[part]);
    }
  }
  return boundsOf.back();
}

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
};

/// Which partial sums belong to an element of the tensor.
struct Owners {
  /// For each coordinate of the sums, the dimension of the tensor that is
  /// indexed by just that, with a number added to it: it tells which they are.
  SmallVector<std::optional<unsigned>> dimOf;
  SmallVector<int64_t> added;
  /// Whether an index of the tensor is known in this way. Others are computed
  /// for each partial sum, and compared.
  SmallVector<bool> isKnown;
  /// The coordinates of which an element takes more than one.
  SmallVector<unsigned> looped;
};

class CapturedGradTiler : GradProgram {
public:
  CapturedGradTiler(AttentionGradOp op, Value captured, Value shift,
                    Value delta);
  Value run();

private:
  /// The tiles of a step and how much of them there is.
  struct Pair {
    Value batch, head, query, key;
  };
  /// Of a group, what its indices depend on.
  Dependence dependenceOf(const ReadGroup &group);
  PartialSums emitPartialSums(const ReadGroup &group);
  PartialSums emitRowSums(const ReadGroup &group, bool overQueries);
  PartialSums emitTileSums(const ReadGroup &group, const Dependence &on);
  PartialSums emitDistanceSums(const ReadGroup &group, const Dependence &on);
  /// Sums of the distances from those of tiles at the same distance.
  Value addDiagonals(Value tiles, OpFoldResult batches);
  /// Adds the steps of the tile of queries and all tiles of keys.
  Value addKeys(const ReadGroup &group, Pair pair, Value sum);
  /// The same of one tile of keys, without a loop, in which copies would not be
  /// ahead of their use.
  Value addPair(const ReadGroup &group, const Pair &pair, Value sum);
  /// `end`, or 0 if the mask leaves nothing of a tile of queries and one of
  /// keys whose first elements are `distance` apart.
  Value zeroIfHidden(Value distance, Value end);
  Value emitStep(const ReadGroup &group, const Pair &pair, Value sum,
                 bool overQueries, ArrayRef<Value> ofQueries,
                 ArrayRef<Value> ofKeys, Value queryCount, Value keyCount);
  SmallVector<Value> takeQueries(const Pair &pair);
  SmallVector<Value> takeKeys(const Pair &pair, const TiledDim &dim);
  Value countQueries(const Pair &pair);
  /// The first one past the keys of the batch that take part.
  Value keyEnd(Value batch) {
    return asValue(
        getKeyEnd(b, b.getLoc(), op.getKey(), op.getLengths(), batch));
  }
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
  /// The gradient from sums that were added, if there are any, and those
  /// partial sums of which each element owns one; rounded.
  Value collect(ArrayRef<ReadGroup> readGroups, ArrayRef<PartialSums> partial,
                ArrayRef<Owners> owners, Value added,
                ArrayRef<OpFoldResult> sizes);
  /// `end`, or 0 where there are no partial sums.
  Value zeroIfEmpty(const PartialSums &partial, Value end);

  /// As many tiles as there are of `size`.
  OpFoldResult countTiles(OpFoldResult size) {
    return affine::makeComposedFoldedAffineApply(
        b, b.getLoc(), b.getAffineDimExpr(0).ceilDiv(tile), {size});
  }
  Value emptyOf(ArrayRef<OpFoldResult> sizes, Type element) {
    return tensor::EmptyOp::create(b, sizes, element);
  }
  Value minimum(Value a, Value other) {
    return arith::MinSIOp::create(b, a, other);
  }
  Value maximum(Value a, Value other) {
    return arith::MaxSIOp::create(b, a, other);
  }
  Value apply(AffineExpr expr, ArrayRef<Value> operands) {
    return asValue(affine::makeComposedFoldedAffineApply(
        b, b.getLoc(), expr, getAsOpFoldResult(operands)));
  }
  /// Writes a part of `output`, an output of a parallel loop.
  void insert(Value part, Value output, ArrayRef<OpFoldResult> offsets,
              ArrayRef<OpFoldResult> sizes);

  Value captured, shift, delta;
  Dependences dependences;
  int64_t tile;
  TiledDim queries, keys;
  OpFoldResult batches, heads;
};
} // namespace

static int64_t chooseTile(AttentionGradOp op) {
  Schedule schedule = op.getSchedule()->getValue();
  return std::min(mostRowsOfTile,
                  std::max(*schedule.queryTile, *schedule.keyTile));
}

CapturedGradTiler::CapturedGradTiler(AttentionGradOp op, Value captured,
                                     Value shift, Value delta)
    : GradProgram(op), captured(captured), shift(shift), delta(delta),
      dependences(op.getScore()),
      tile(chooseTile(op)), queries{tile,
                                    tensor::getMixedSize(b, op.getLoc(),
                                                         op.getQuery(), 2)},
      keys{tile, tensor::getMixedSize(b, op.getLoc(), op.getKey(), 2)},
      batches(tensor::getMixedSize(b, op.getLoc(), op.getQuery(), 0)),
      heads(tensor::getMixedSize(b, op.getLoc(), op.getQuery(), 1)) {
  if (std::optional<ArrayRef<int64_t>> multiples = op.getMultiples()) {
    queries.multiple = multiples->front();
    keys.multiple = multiples->back();
  }
}

void CapturedGradTiler::insert(Value part, Value output,
                               ArrayRef<OpFoldResult> offsets,
                               ArrayRef<OpFoldResult> sizes) {
  auto forall = cast<scf::ForallOp>(
      cast<BlockArgument>(output).getOwner()->getParentOp());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(forall.getTerminator().getBody());
  tensor::ParallelInsertSliceOp::create(
      b, part, output, offsets, sizes,
      SmallVector<OpFoldResult>(offsets.size(), index(1)));
}

Dependence CapturedGradTiler::dependenceOf(const ReadGroup &group) {
  Dependence all;
  for (Value index : group.indices)
    all.add(dependences.get(index).ofFunction());
  return all;
}

PartialSums CapturedGradTiler::emitPartialSums(const ReadGroup &group) {
  Dependence on = dependenceOf(group);
  if ((on.onQuery && on.onKey) || (on.onDistance && (on.onQuery || on.onKey)))
    return emitTileSums(group, on);
  if (on.onDistance)
    return emitDistanceSums(group, on);
  return emitRowSums(group, /*overQueries=*/on.onKey);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

SmallVector<Value> CapturedGradTiler::takeQueries(const Pair &pair) {
  OpFoldResult rows = queries.existing(b, b.getLoc(), pair.query);
  SmallVector<Value> tiles;
  for (Value tensor :
       {Value(op.getQuery()), Value(op.getOutputGrad()), shift, delta})
    tiles.push_back(
        extract(tensor, {pair.batch, pair.head, pair.query}, rows, queries));
  return tiles;
}

SmallVector<Value> CapturedGradTiler::takeKeys(const Pair &pair,
                                               const TiledDim &dim) {
  OpFoldResult rows = dim.existing(b, b.getLoc(), pair.key);
  OpFoldResult head = groups.getKeyHead(b, b.getLoc(), pair.head);
  SmallVector<Value> tiles;
  for (Value tensor : {op.getKey(), op.getValue()})
    tiles.push_back(extract(tensor, {pair.batch, head, pair.key}, rows, dim));
  return tiles;
}

Value CapturedGradTiler::countQueries(const Pair &pair) {
  if (!queries.isRagged())
    return {};
  return asValue(queries.existing(b, b.getLoc(), pair.query));
}

Value CapturedGradTiler::emitStep(const ReadGroup &group, const Pair &pair,
                                  Value sum, bool overQueries,
                                  ArrayRef<Value> ofQueries,
                                  ArrayRef<Value> ofKeys, Value queryCount,
                                  Value keyCount) {
  SmallVector<int64_t> open(4, ShapedType::kDynamic), lengths;
  SmallVector<Value> extents;
  dispatchIndexOpFoldResults({queries.end, keys.end}, extents, lengths);
  Schedule schedule;
  schedule.queryTile = schedule.keyTile = tile;
  auto step = CapturedGradStepOp::create(
      b, sum.getType(), ofQueries[0], ofKeys[0], ofKeys[1], ofQueries[1],
      ofQueries[2], ofQueries[3], captured, group.reads, sum, queryCount,
      keyCount, overQueries,
      ValueRange{pair.batch, pair.head, pair.query, pair.key}, extents, open,
      lengths, APFloat(op.getScaleOrDefault()), op.getMaskAttr(),
      op.getPrecisionAttr(), ScheduleAttr::get(b.getContext(), schedule));
  IRMapping mapping;
  op.getScore().cloneInto(&step.getScore(), mapping);
  return step.getResult();
}

Value CapturedGradTiler::addKeys(const ReadGroup &group, Pair pair, Value sum) {
  SmallVector<Value> ofQueries = takeQueries(pair);
  Value queryCount = countQueries(pair), end = keyEnd(pair.batch);
  TiledDim used = keys;
  if (op.getLengths())
    used = {tile, end};
  auto step = [&](Value at, ValueRange state) -> SmallVector<Value> {
    pair.key = at;
    OpFoldResult existing = used.existing(b, b.getLoc(), at);
    return {emitStep(group, pair, state[0], /*overQueries=*/false, ofQueries,
                     takeKeys(pair, used), queryCount,
                     used.isRagged() ? asValue(existing) : Value())};
  };
  return loop(constant(0), end, tile, sum, step)[0];
}

Value CapturedGradTiler::addPair(const ReadGroup &group, const Pair &pair,
                                 Value sum) {
  Value keyCount;
  if (op.getLengths())
    keyCount = arith::SubIOp::create(b, keyEnd(pair.batch), pair.key);
  else if (keys.isRagged())
    keyCount = asValue(keys.existing(b, b.getLoc(), pair.key));
  return emitStep(group, pair, sum, /*overQueries=*/false, takeQueries(pair),
                  takeKeys(pair, keys), countQueries(pair), keyCount);
}

Value CapturedGradTiler::zeroIfHidden(Value distance, Value end) {
  if (!op.getMask())
    return end;
  auto [least, most] = emitDistanceBounds(
      b, *op.getMask(), asValue(queries.end), asValue(keys.end));
  AffineExpr d0 = b.getAffineDimExpr(0);
  auto hideIf = [&](arith::CmpIPredicate predicate, Value furthest,
                    Value bound) {
    Value isHidden = arith::CmpIOp::create(b, predicate, furthest, bound);
    end = arith::SelectOp::create(b, isHidden, constant(0), end);
  };
  if (least)
    hideIf(arith::CmpIPredicate::slt, apply(d0 + (tile - 1), {distance}),
           least);
  if (most)
    hideIf(arith::CmpIPredicate::sgt, apply(d0 - (tile - 1), {distance}), most);
  return end;
}

//===----------------------------------------------------------------------===//
// Partial sums
//===----------------------------------------------------------------------===//

/// Sums over all keys of a query, or over all queries of a key.
PartialSums CapturedGradTiler::emitRowSums(const ReadGroup &group,
                                           bool overQueries) {
  const TiledDim &fixed = overQueries ? keys : queries;
  SmallVector<OpFoldResult> sizes = {batches, heads, fixed.end};
  auto body = [&](ValueRange position, ValueRange outputs) {
    Pair pair = {position[0], position[1], position[2], position[2]};
    OpFoldResult rows = fixed.existing(b, b.getLoc(), position[2]);
    Value sum = zeros({tile});
    if (overQueries) {
      SmallVector<Value> ofKeys = takeKeys(pair, keys);
      Value queryEnd = asValue(queries.end), keyCount;
      if (op.getLengths()) {
        Value end = keyEnd(pair.batch);
        Value isUsed =
            arith::CmpIOp::create(b, arith::CmpIPredicate::slt, pair.key, end);
        queryEnd = arith::SelectOp::create(b, isUsed, queryEnd, constant(0));
        keyCount = arith::SubIOp::create(b, end, pair.key);
      } else if (keys.isRagged()) {
        keyCount = asValue(rows);
      }
      auto step = [&](Value at, ValueRange state) -> SmallVector<Value> {
        pair.query = at;
        return {emitStep(group, pair, state[0], overQueries, takeQueries(pair),
                         ofKeys, countQueries(pair), keyCount)};
      };
      sum = loop(constant(0), queryEnd, tile, sum, step)[0];
    } else {
      sum = addKeys(group, pair, sum);
    }
    insertRows(b, b.getLoc(), sum, outputs[0], getAsOpFoldResult(position),
               rows);
  };
  Schedule schedule;
  schedule.warps = getDefaultWarps(tile);
  Value sums = parallelLoop(sizes, {1, 1, tile}, emptyOf(sizes, b.getF32Type()),
                            schedule, body)[0];
  return {sums,
          {{Coordinate::Batch, batches},
           {Coordinate::Head, heads},
           {overQueries ? Coordinate::Key : Coordinate::Query, fixed.end}}};
}

/// Sums of each pair of a query and a key over the batches and heads that do
/// not matter.
PartialSums CapturedGradTiler::emitTileSums(const ReadGroup &group,
                                            const Dependence &on) {
  OpFoldResult someBatches = on.onBatch ? batches : index(1),
               someHeads = on.onHead ? heads : index(1);
  SmallVector<OpFoldResult> sizes = {someBatches, someHeads, queries.end,
                                     keys.end};
  auto body = [&](ValueRange position, ValueRange outputs) {
    Pair pair = {position[0], position[1], position[2], position[3]};
    AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
    Value distance = apply(d0 - d1, {pair.query, pair.key});
    // The batch and the head of the unit, or all.
    auto ofHead = [&](Value head, ValueRange state) -> SmallVector<Value> {
      pair.head = head;
      return {addPair(group, pair, state[0])};
    };
    auto ofBatch = [&](Value batch, ValueRange state) {
      pair.batch = batch;
      return on.onHead ? ofHead(position[1], state)
                       : loop(constant(0), asValue(heads), 1, state, ofHead);
    };
    Value from = on.onBatch ? position[0] : constant(0);
    Value to = on.onBatch ? apply(d0 + 1, {from}) : asValue(batches);
    Value sum = loop(from, zeroIfHidden(distance, to), 1, zeros({tile, tile}),
                     ofBatch)[0];
    OpFoldResult rows = queries.existing(b, b.getLoc(), position[2]),
                 columns = keys.existing(b, b.getLoc(), position[3]);
    auto sizeOf = [](OpFoldResult size) {
      return getConstantIntValue(size).value_or(ShapedType::kDynamic);
    };
    if (getConstantIntValue(rows) != tile ||
        getConstantIntValue(columns) != tile)
      sum = tensor::ExtractSliceOp::create(
          b,
          RankedTensorType::get({sizeOf(rows), sizeOf(columns)},
                                b.getF32Type()),
          sum, SmallVector<OpFoldResult>(2, index(0)), {rows, columns},
          SmallVector<OpFoldResult>(2, index(1)));
    insert(sum, outputs[0], getAsOpFoldResult(position),
           {index(1), index(1), rows, columns});
  };
  Schedule schedule;
  schedule.warps = getDefaultWarps(tile);
  Value sums = parallelLoop(sizes, {1, 1, tile, tile},
                            emptyOf(sizes, b.getF32Type()), schedule, body)[0];
  return {sums,
          {{Coordinate::Batch, someBatches},
           {Coordinate::Head, someHeads},
           {Coordinate::Query, queries.end},
           {Coordinate::Key, keys.end}}};
}

/// Sums of each distance. The elements of square tiles of queries and keys that
/// are as many tiles apart have the same distances, so those tiles are added
/// first.
PartialSums CapturedGradTiler::emitDistanceSums(const ReadGroup &group,
                                                const Dependence &on) {
  Location loc = b.getLoc();
  OpFoldResult someBatches = on.onBatch ? batches : index(1);
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  Value queryTiles = asValue(countTiles(queries.end)),
        keyTiles = asValue(countTiles(keys.end));
  // Those of the last key tile and the first query tile come first.
  OpFoldResult apart = getAsOpFoldResult(
      maximum(apply(d0 + d1 - 1, {queryTiles, keyTiles}), constant(0)));
  if (std::optional<int64_t> q = getConstantIntValue(countTiles(queries.end)),
      k = getConstantIntValue(countTiles(keys.end));
      q && k)
    apart = index(std::max<int64_t>(*q + *k - 1, 0));
  SmallVector<OpFoldResult> ends = {someBatches, heads, apart};
  SmallVector<OpFoldResult> sizes(ends);
  sizes.append(2, index(tile));
  auto body = [&](ValueRange position, ValueRange outputs) {
    Pair pair = {position[0], position[1], Value(), Value()};
    // The query tile `t` and the key tile `t - distance`.
    Value distance = apply(d0 - d1 + 1, {position[2], keyTiles});
    Value from = maximum(distance, constant(0));
    Value to = minimum(queryTiles, apply(d0 + d1, {keyTiles, distance}));
    to = zeroIfHidden(apply(d0 * tile, {distance}), to);
    auto ofPair = [&](Value at, ValueRange state) -> SmallVector<Value> {
      pair.query = apply(d0 * tile, {at});
      pair.key = apply((d0 - d1) * tile, {at, distance});
      return {addPair(group, pair, state[0])};
    };
    auto ofBatch = [&](Value batch, ValueRange state) {
      pair.batch = batch;
      return loop(from, to, 1, state, ofPair);
    };
    Value sum = zeros({tile, tile});
    sum = on.onBatch ? ofBatch(position[0], sum)[0]
                     : loop(constant(0), asValue(batches), 1, sum, ofBatch)[0];
    SmallVector<OpFoldResult> offsets = getAsOpFoldResult(position);
    offsets.append(2, index(0));
    insert(sum, outputs[0], offsets,
           {index(1), index(1), index(1), index(tile), index(tile)});
  };
  Schedule schedule;
  schedule.warps = getDefaultWarps(tile);
  Value tiles = parallelLoop(ends, {1, 1, 1}, emptyOf(sizes, b.getF32Type()),
                             schedule, body)[0];
  Value sums = addDiagonals(tiles, someBatches);
  return {sums,
          {{Coordinate::Batch, someBatches},
           {Coordinate::Head, heads},
           {Coordinate::Distance, tensor::getMixedSize(b, loc, sums, 2)}}};
}

Value CapturedGradTiler::addDiagonals(Value tiles, OpFoldResult someBatches) {
  Location loc = b.getLoc();
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  Value keyTiles = asValue(countTiles(keys.end)),
        apart = asValue(tensor::getMixedSize(b, loc, tiles, 2)),
        numKeys = asValue(keys.end);
  OpFoldResult distances;
  if (std::optional<int64_t> q = getConstantIntValue(queries.end),
      k = getConstantIntValue(keys.end);
      q && k)
    distances = index(*q && *k ? *q + *k - 1 : 0);
  else
    distances = getAsOpFoldResult(maximum(
        apply(d0 + d1 - 1, {asValue(queries.end), numKeys}), constant(0)));
  SmallVector<OpFoldResult> sizes = {someBatches, heads, distances};
  TiledDim units = {elementsOfUnit, distances};
  AffineMap all = map(2, {0, 1});
  auto body = [&](ValueRange position, ValueRange outputs) {
    auto term = [&](ImplicitLocOpBuilder &at,
                    ValueRange) -> SmallVector<Value> {
      auto number = [&](int64_t value) -> Value {
        return arith::ConstantIndexOp::create(at, value);
      };
      Value row = linalg::IndexOp::create(at, 0),
            query = linalg::IndexOp::create(at, 1);
      // The distance is tile * n + query - key, for a query and a key of tiles
      // that are n apart, so that n = ceil(x / tile) and key = tile * n - x
      // where x is the distance less the query. Here x - 1 has a multiple of
      // the tile added to it, for it not to be negative.
      Value distance = arith::AddIOp::create(at, position[2], row);
      Value shifted = arith::SubIOp::create(at, distance, numKeys);
      Value base = arith::MulIOp::create(at, keyTiles, number(tile));
      shifted = arith::AddIOp::create(at, shifted, base);
      shifted = arith::SubIOp::create(at, shifted, query);
      shifted = arith::AddIOp::create(at, shifted, number(2 * tile));
      Value quotient = arith::DivUIOp::create(at, shifted, number(tile));
      Value rest = arith::RemUIOp::create(at, shifted, number(tile));
      Value key = arith::SubIOp::create(at, number(tile - 1), rest);
      Value which = arith::SubIOp::create(at, quotient, number(2));
      Value isThere = arith::AndIOp::create(
          at,
          arith::CmpIOp::create(at, arith::CmpIPredicate::sge, which,
                                number(0)),
          arith::CmpIOp::create(at, arith::CmpIPredicate::slt, which, apart));
      Value readable = arith::SelectOp::create(at, isThere, which, number(0));
      Value sum = tensor::ExtractOp::create(
          at, tiles,
          ValueRange{position[0], position[1], readable, query, key});
      return {arith::SelectOp::create(at, isThere, sum, emitConstant(at, 0))};
    };
    Value terms = generic({}, empty({elementsOfUnit, tile}), {all}, term)[0];
    Value sum = generic(
        terms, zeros({elementsOfUnit}), {all, map(2, {0})},
        [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {arith::AddFOp::create(at, args[1], args[0])};
        })[0];
    insertRows(b, loc, sum, outputs[0], getAsOpFoldResult(position),
               units.existing(b, loc, position[2]));
  };
  return parallelLoop(sizes, {1, 1, elementsOfUnit},
                      emptyOf(sizes, b.getF32Type()), Schedule(), body)[0];
}

//===----------------------------------------------------------------------===//
// Which partial sums belong to which elements
//===----------------------------------------------------------------------===//

Owners CapturedGradTiler::findOwners(const ReadGroup &group,
                                     const PartialSums &partial) {
  Owners owners;
  unsigned rank = group.indices.size();
  owners.isKnown.assign(rank, false);
  for (const Coordinate &coordinate : partial.coordinates) {
    bool isDistance = coordinate.kind == Coordinate::Distance;
    std::optional<unsigned> dim;
    int64_t added = 0;
    for (unsigned d = 0; d < rank && !dim; ++d) {
      Value indexed = group.indices[d];
      if (owners.isKnown[d])
        continue;
      if (isDistance) {
        std::optional<int64_t> distance =
            dependences.get(indexed).getDistance();
        if (!distance)
          continue;
        added = *distance;
      } else if (indexed != op.getScore().getArgument(1 + coordinate.kind)) {
        continue;
      }
      dim = d;
      owners.isKnown[d] = true;
    }
    if (!dim && !isConstantIntValue(coordinate.size, 1))
      owners.looped.push_back(owners.dimOf.size());
    owners.dimOf.push_back(dim);
    owners.added.push_back(added);
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
    Value size =
        getValueOrCreateConstantIndexOp(b, b.getLoc(), coordinate.size);
    Value last = arith::SubIOp::create(b, size, number(1)), value = at[c];
    if (owners.dimOf[c]) {
      value = element[*owners.dimOf[c]];
      if (coordinate.kind == Coordinate::Distance) {
        // The first one is that of the first query and the last key.
        value = arith::SubIOp::create(b, value, number(owners.added[c] + 1));
        value = arith::AddIOp::create(b, value, numKeys);
      }
      require(arith::CmpIPredicate::sge, value, zero);
    } else if (!value) {
      value = zero; // One that stands for all.
    }
    require(arith::CmpIPredicate::sle, value, last);
    value =
        arith::MinSIOp::create(b, arith::MaxSIOp::create(b, value, zero), last);
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
      Value lastKey = arith::SubIOp::create(b, numKeys, number(1));
      Value distance = arith::SubIOp::create(b, value, lastKey);
      position.query = arith::MaxSIOp::create(b, distance, zero);
      position.key = arith::SubIOp::create(b, position.query, distance);
      break;
    }
    }
  }
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
        generic({}, empty({elementsOfUnit, sumsOfStep}), {all}, term)[0];
    return {generic(
        terms, state, {all, map(2, {0})},
        [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {arith::AddFOp::create(at, args[1], args[0])};
        })[0]};
  };
  auto inLoops = [&](auto &&self, ArrayRef<unsigned> looped,
                     ValueRange state) -> SmallVector<Value> {
    Value end = asValue(coordinates[looped.front()].size);
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

  // Those of whom there is more than one partial sum for each element.
  TiledDim units = {elementsOfUnit, sizes.back()};
  SmallVector<int64_t> steps(sizes.size(), 1);
  steps.back() = elementsOfUnit;
  auto addSums = [&](ValueRange position, ValueRange outputs) {
    Value sum = zeros({elementsOfUnit});
    SmallVector<Value> first(position.take_back(type.getRank()));
    for (auto [group, sums, owner] :
         llvm::zip_equal(readGroups, partial, owners))
      if (!owner.looped.empty())
        sum = addOwnSums(group, sums, owner, first, sum);
    insertRows(b, loc, sum, outputs[0], getAsOpFoldResult(position),
               units.existing(b, loc, position.back()));
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
  TiledDim units = {sumsOfStep, sizes.back()};
  SmallVector<int64_t> steps(sizes.size(), 1);
  steps.back() = sumsOfStep;
  Value numKeys = asValue(keys.end), numQueries = asValue(queries.end);
  AffineMap all = map(2, {0, 1});
  auto body = [&](ValueRange position, ValueRange outputs) {
    OpFoldResult count = units.existing(b, loc, position.back());
    SmallVector<OpFoldResult> offsets = getAsOpFoldResult(position),
                              part(offsets.size() - 1, index(1)),
                              row = {index(1), count};
    part.push_back(count);
    int64_t known = getConstantIntValue(count).value_or(ShapedType::kDynamic);
    Value sum = zeros({1, sumsOfStep});
    if (added) {
      sum = tensor::ExtractSliceOp::create(
          b, RankedTensorType::get({1, known}, b.getF32Type()), added, offsets,
          part, SmallVector<OpFoldResult>(offsets.size(), index(1)));
      sum = padToTile(b, loc, sum, row, {1, sumsOfStep}, b.getF32FloatAttr(0));
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
    if (known != sumsOfStep)
      sum = tensor::ExtractSliceOp::create(
          b, RankedTensorType::get({1, known}, element), sum,
          SmallVector<OpFoldResult>(2, index(0)), row,
          SmallVector<OpFoldResult>(2, index(1)));
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

Value flash::emitCapturedGrad(AttentionGradOp op, Value captured, Value shift,
                              Value delta) {
  return CapturedGradTiler(op, captured, shift, delta).run();
}
