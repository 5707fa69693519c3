//===- VisitLowering.cpp - A visit of tiles as loops ----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VisitLowering.h"

#include "flash/Analysis/ScoreRegion.h"
#include "flash/Dialect/Flash/Utils/MaskConditions.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "flash/Dialect/Flash/Utils/TileSlices.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace flash;

VisitLowering::VisitLowering(VisitOp visit)
    : visit(visit), step(visit.getStep()),
      tiles(visit.getTiles().value_or(TilesAttr())), b(visit),
      loc(visit.getLoc()), tile(visit.getTile()),
      block(visit.getCut().value_or(0)), ragged(!getCounts().empty()),
      state(visit.getInits().begin(), visit.getInits().end()) {}

Value VisitLowering::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value VisitLowering::extremum(bool isMin, AffineMap map,
                              ArrayRef<OpFoldResult> operands) {
  if (map.getNumResults() == 1)
    return getValueOrCreateConstantIndexOp(
        b, loc, affine::makeComposedFoldedAffineApply(b, loc, map, operands));
  OpFoldResult value =
      isMin ? affine::makeComposedFoldedAffineMin(b, loc, map, operands)
            : affine::makeComposedFoldedAffineMax(b, loc, map, operands);
  return getValueOrCreateConstantIndexOp(b, loc, value);
}

Value VisitLowering::ofTwo(bool isMin, Value lhs, Value rhs) {
  return extremum(isMin, b.getMultiDimIdentityMap(2), {lhs, rhs});
}

Value VisitLowering::apply(AffineExpr expr, ArrayRef<OpFoldResult> operands) {
  return getValueOrCreateConstantIndexOp(
      b, loc, affine::makeComposedFoldedAffineApply(b, loc, expr, operands));
}

Value VisitLowering::combine(bool outerIsMin, ArrayAttr bounds,
                             Value fallback) {
  if (!bounds || bounds.empty())
    return fallback;
  SmallVector<OpFoldResult> operands(position.begin(), position.end());
  llvm::append_range(operands, extents);
  auto isIn = [&](TileBoundAttr bound) {
    return emitIsIn(b, loc, bound.getGuard().getValue(), position, extents);
  };
  auto at = [&](TileBoundAttr bound) {
    return extremum(!outerIsMin, bound.getMap().getValue(), operands);
  };
  if (bounds.size() == 1) {
    auto bound = cast<TileBoundAttr>(bounds[0]);
    Value value = at(bound);
    if (!bound.getGuard())
      return value;
    return arith::SelectOp::create(b, loc, isIn(bound), value, fallback);
  }
  // Bounds whose guard fails become an extreme that loses against any other. No
  // tile has such a number, and it fits the 32-bit indices of a GPU.
  Value lost = constant(outerIsMin ? std::numeric_limits<int32_t>::max()
                                   : std::numeric_limits<int32_t>::min());
  Value result = lost;
  for (auto bound : bounds.getAsRange<TileBoundAttr>()) {
    Value value = at(bound);
    if (bound.getGuard())
      value = arith::SelectOp::create(b, loc, isIn(bound), value, lost);
    result = outerIsMin
                 ? arith::MinSIOp::create(b, loc, result, value).getResult()
                 : arith::MaxSIOp::create(b, loc, result, value).getResult();
  }
  Value none =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, result, lost);
  return arith::SelectOp::create(b, loc, none, fallback, result);
}

Value VisitLowering::isInAny(ArrayAttr sets, ArrayRef<Value> dims) {
  SmallVector<IntegerSet> any;
  for (auto set : sets.getAsRange<IntegerSetAttr>())
    any.push_back(set.getValue());
  return emitIsInAny(b, loc, any, dims, extents);
}

//===----------------------------------------------------------------------===//
// Copies of the step
//===----------------------------------------------------------------------===//

SmallVector<BlockArgument> VisitLowering::getCounts() {
  SmallVector<BlockArgument> counts;
  auto add = [&](Value count) {
    if (count)
      counts.push_back(llvm::is_contained(visit.getRowArgs(), count)
                           ? cast<BlockArgument>(count)
                           : BlockArgument());
  };
  if (!step)
    return counts;
  add(step.getCount());
  // The number of rows of the tile that stays is the same for all tiles.
  if (visit.getNumRowArgs() > 1)
    add(step.getFixedCount());
  return counts;
}

void VisitLowering::mapTile(IRMapping &mapping, Value at, bool ragged) {
  mapping.map(visit.getAt(), at);
  Value starts[] = {at, at};
  if (BlockArgument keyAt = visit.getKeyAt()) {
    starts[1] = apply(b.getAffineDimExpr(0) - b.getAffineDimExpr(1),
                      {at, visit.getDistance()});
    mapping.map(keyAt, starts[1]);
  }
  bool ofPair = visit.isOfPair();
  for (auto [i, argument] : llvm::enumerate(visit.getRowArgs())) {
    if (argument.use_empty())
      continue;
    OpFoldResult exist = getAsOpFoldResult(visit.getExist()[i]), count;
    if (!ragged)
      count = b.getIndexAttr(ofPair ? getRowsOfPair(i) : tile);
    else if (ofPair)
      count = exist;
    else
      count =
          TiledDim{tile, exist, /*multiple=*/1, /*mayEndBefore=*/false, block}
              .existing(b, loc, starts[i]);
    mapping.map(argument, getValueOrCreateConstantIndexOp(b, loc, count));
  }
}

int64_t VisitLowering::getRowsOfPair(unsigned dim) {
  return (dim == 0 ? step.getQuery() : step.getKey()).getType().getDimSize(0);
}

void VisitLowering::shareTiles(Value at) {
  mapTile(shared, at, /*ragged=*/true);
  for (Operation &op : visit.getBody().front().without_terminator()) {
    auto isKnown = [&](Value value) {
      return !visit.getBody().isAncestor(value.getParentRegion()) ||
             shared.contains(value);
    };
    if (isMemoryEffectFree(&op) && &op != step &&
        llvm::all_of(op.getOperands(), isKnown))
      b.clone(op, shared);
  }
}

void VisitLowering::narrow(ContributeOp contribution, Value at) {
  TilesAttr contributors = visit.getContributors().value_or(TilesAttr());
  if (!contributors || !contribution.getFirst())
    return;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(contribution);
  // The bounds hold for a visit of the iterations that contribute to the tile.
  llvm::SaveAndRestore ofTile(position,
                              SmallVector<Value>{position[0], position[1], at}),
      ofContributors(extents, SmallVector<Value>{extents[1], extents[0]});
  Value first = contribution.getFirst(), end = contribution.getEnd();
  contribution.getFirstMutable().assign(max(
      combine(/*outerIsMin=*/true, contributors.getLo(), constant(0)), first));
  contribution.getEndMutable().assign(min(
      combine(/*outerIsMin=*/false, contributors.getHi(), constant(0)), end));
}

SmallVector<Value> VisitLowering::copyStep(Value at, Value rank,
                                           ValueRange carried, StepKind kind,
                                           Value head) {
  IRMapping mapping = shared;
  if (!mapping.contains(visit.getAt()))
    mapTile(mapping, at, kind.ragged);
  mapping.map(visit.getStateArgs(), carried);
  if (rank)
    mapping.map(visit.getRankArg(), rank);
  if (head)
    mapping.map(visit.getHeadArg(), head);
  SmallVector<Operation *> copies;
  for (Operation &op : visit.getBody().front().without_terminator())
    if (op.getNumResults() == 0 || !shared.contains(op.getResult(0))) {
      copies.push_back(b.clone(op, mapping));
      if (auto contribution = dyn_cast<ContributeOp>(copies.back()))
        narrow(contribution, at);
    }
  if (step) {
    auto copy = cast<StepOpInterface>(mapping.lookup(step.getOperation()));
    if (!kind.masked)
      copy.removeMaskAttr();
    if (!kind.keeps)
      dropKeep(copy.getScore());
    if (!kind.ragged) {
      copy.getCountMutable().clear();
      if (visit.getNumRowArgs() > 1)
        copy.getFixedCountMutable().clear();
    }
    if (kind.partial)
      cast<OnlineAttentionOp>(copy.getOperation())
          .getPartialMutable()
          .assign(kind.partial);
    bool isBounded = kind.masked && visit.getBounded(),
         overQueries = copy.stepsOverQueries();
    if (!kind.fixedRagged || (isBounded && overQueries))
      copy.getFixedCountMutable().clear();
    copy.setNeutralPadding(copy.getCount() && ((visit.getNeutralZeros() &&
                                                (!kind.masked || isBounded)) ||
                                               (isBounded && !overQueries)));
  }
  SmallVector<Value> results =
      llvm::map_to_vector(visit.getYielded(), [&](Value yielded) {
        return mapping.lookupOrDefault(yielded);
      });
  auto isResult = [&](Value value) {
    return llvm::is_contained(results, value);
  };
  for (Operation *op : llvm::reverse(copies))
    if (isOpTriviallyDead(op) && llvm::none_of(op->getResults(), isResult))
      op->erase();
  return results;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void VisitLowering::emitLoop(Value from, Value to, Value by, Step body) {
  auto loop = scf::ForOp::create(b, loc, from, to, by, state);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(b, loc,
                       body(loop.getInductionVar(), loop.getRegionIterArgs()));
  state.assign(loop.getResults().begin(), loop.getResults().end());
}

Value VisitLowering::nextOf(Value from, Value first, Value by) {
  Value distance = arith::SubIOp::create(b, loc, from, first);
  distance = arith::MaxSIOp::create(b, loc, distance, constant(0));
  Value steps = arith::CeilDivUIOp::create(b, loc, distance, by);
  Value there = arith::MulIOp::create(b, loc, steps, by);
  return arith::AddIOp::create(b, loc, first, there);
}

Value VisitLowering::nextVisited(Value from) {
  if (!tileStep)
    return from;
  if (isConstantIntValue(from, 0))
    return firstTile;
  if (isConstantIntValue(tileStep, 1))
    return max(from, firstTile);
  Value &next = visited[from];
  if (next)
    return next;
  return next = nextOf(from, firstTile, tileStep);
}

void VisitLowering::loopOver(Value from, Value to, Step body) {
  if (from == to)
    return;
  AffineExpr toKey = b.getAffineDimExpr(0) * tile;
  // The next loop starts where this one ends, also if not all tiles are
  // visited.
  Value first = apply(toKey, {nextVisited(from)});
  emitLoop(first, apply(toKey, {nextVisited(to)}), visit.getBy(), body);
}

SmallVector<Value> VisitLowering::choose(Value condition, Branch then,
                                         Branch otherwise) {
  auto choice = scf::IfOp::create(b, loc, ValueRange(state).getTypes(),
                                  condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(b, loc, then());
  b.setInsertionPointToStart(choice.elseBlock());
  scf::YieldOp::create(b, loc, otherwise());
  return SmallVector<Value>(choice.getResults());
}

bool VisitLowering::sharesStep() { return step.getScore().empty(); }

Value VisitLowering::emitLess(Value lhs, Value rhs) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, lhs, rhs);
}

void VisitLowering::enterIfLess(Value from, Value to,
                                function_ref<void()> loops) {
  std::optional<int64_t> first = getConstantIntValue(from),
                         end = getConstantIntValue(to);
  if (first && end) {
    if (*first < *end)
      loops();
    return;
  }
  auto entered = [&] {
    loops();
    return state;
  };
  state = choose(emitLess(from, to), entered, [init = state] { return init; });
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

/// The tiles that need care are visited first, beginning with the last one,
/// whether it does or not: the loop is then entered wherever there is a tile at
/// all, as a choice around all loops requires. So the pipeline of a kernel is
/// filled once, and does not end where masked tiles do. If `isLastOnly`, no
/// tile but the last one needs care, whatever the sizes are: there is no loop
/// for it.
void VisitLowering::putLastFirst(Value lo, Value fullLo, Value whole, Value hi,
                                 bool isLastOnly) {
  AffineExpr d0 = b.getAffineDimExpr(0), toKey = d0 * tile;
  Value last = apply(d0 - 1, {hi});
  bool masked = static_cast<bool>(step.getMask());
  Value from = max(isLastOnly ? last : min(whole, last), lo);
  Value firstKey = apply(toKey, {from}), endKey = apply(toKey, {hi});
  // A sum that cannot overflow: the loop is known to have one iteration.
  auto keyBehind = [&](Value key) {
    return b.createOrFold<arith::AddIOp>(loc, key, constant(tile),
                                         arith::IntegerOverflowFlags::nsw);
  };
  bool hasFirst = fullLo != lo;
  if (hasFirst)
    fullLo = min(fullLo, from);
  enterIfLess(firstKey, endKey, [&] {
    if (hasFirst && sharesStep())
      return loopOverAll(lo, fullLo, from, hi);
    emitLoop(firstKey, isLastOnly ? keyBehind(firstKey) : endKey, visit.getBy(),
             stepOf({masked, ragged}));
    if (hasFirst)
      loopOver(lo, fullLo, stepOf({/*masked=*/true, /*ragged=*/false}));
    loopOver(fullLo, from, stepOf({/*masked=*/false, /*ragged=*/false}));
  });
}

/// One loop over the tiles from `from` to `hi`, then from `lo` to `fullLo`,
/// which need care, and then from there to `from`. It counts from `hi`, so that
/// the last tiles have negative numbers, and goes on with the others' distances
/// from `lo`.
void VisitLowering::loopOverAll(Value lo, Value fullLo, Value from, Value hi) {
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  auto keysBetween = [&](Value begin, Value end) {
    return apply((d1 - d0) * tile, {begin, end});
  };
  Value loKey = apply(d0 * tile, {lo}), hiKey = apply(d0 * tile, {hi}),
        endOfCare = keysBetween(lo, fullLo);
  emitLoop(keysBetween(hi, from), keysBetween(lo, from), visit.getBy(),
           [&](Value number, ValueRange carried) {
             Value origin = arith::SelectOp::create(
                 b, loc, emitLess(number, constant(0)), hiKey, loKey);
             StepKind kind = {/*masked=*/true, ragged};
             kind.partial = emitLess(number, endOfCare);
             return copyStep(arith::AddIOp::create(b, loc, origin, number),
                             /*rank=*/{}, carried, kind);
           });
}

/// Whether `bound` is known to be at least the last of the tiles before `hi`.
static bool reachesLast(Value bound, Value hi) {
  AffineExpr last = getAffineDimExpr(0, hi.getContext()) - 1;
  return ValueBoundsConstraintSet::compare(
      bound, ValueBoundsConstraintSet::GE,
      ValueBoundsConstraintSet::Variable(AffineMap::get(1, 0, last),
                                         ValueRange(hi)));
}

bool VisitLowering::reachesLastOfEach() {
  ArrayAttr full = tiles.getFullHi(), ends = tiles.getHi();
  if (!full || !ends)
    return false;
  SmallVector<Value> operands(position);
  llvm::append_range(operands, extents);
  using Bounds = ValueBoundsConstraintSet;
  auto isOfPair = [&](TileBoundAttr bound, TileBoundAttr end) {
    AffineMap least = bound.getMap().getValue(), most = end.getMap().getValue();
    auto ofTile = [&](AffineExpr expr) {
      return Bounds::Variable(
          AffineMap::get(least.getNumDims(), least.getNumSymbols(), expr),
          operands);
    };
    return llvm::any_of(least.getResults(), [&](AffineExpr value) {
      return llvm::any_of(most.getResults(), [&](AffineExpr other) {
        return Bounds::compare(ofTile(value), Bounds::GE, ofTile(other - 1));
      });
    });
  };
  return llvm::all_of(full.getAsRange<TileBoundAttr>(), [&](auto bound) {
    return llvm::all_of(ends.getAsRange<TileBoundAttr>(),
                        [&](auto end) { return isOfPair(bound, end); });
  });
}

Value VisitLowering::isFixedWhole() {
  auto grad = dyn_cast<KeyGradStepOp>(step.getOperation());
  // Gradients of queries are sums over the keys, and a key of zeros may have an
  // infinite probability.
  if (!grad || !grad.getQueryGrad() || !grad.getKeys())
    return {};
  int64_t rows = grad.getKey().getType().getDimSize(0);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge,
                               grad.getKeys(), constant(rows));
}

/// Where visited and full tiles are ranges, up to four loops cover
/// [lo, fullLo), [fullLo, whole), [whole, fullHi) and [fullHi, hi).
void VisitLowering::splitIntoRanges(Value lo, Value hi) {
  Value fullLo = combine(/*outerIsMin=*/false, tiles.getFullLo(), lo);
  if (fullLo != lo)
    fullLo = min(max(fullLo, lo), hi);
  Value fullHi = combine(/*outerIsMin=*/true, tiles.getFullHi(), hi);
  // All tiles before these are so, but perhaps for the last one.
  bool isLastOnly = (reachesLast(fullHi, hi) || reachesLastOfEach()) &&
                    (!ragged || reachesLast(wholeTiles, hi));
  if (fullHi != hi)
    fullHi = max(min(fullHi, hi), fullLo);
  bool hasZeros = ragged && visit.getNeutralZeros();
  Value whole = fullHi;
  if (ragged && !hasZeros)
    whole = max(min(fullHi, wholeTiles), fullLo);
  Value isWhole = isFixedWhole();
  if (isWhole)
    whole = arith::SelectOp::create(b, loc, isWhole, whole, fullLo);

  // What the first tiles of every n-th are depends on the other rows.
  if (visit.getFillOnce() && !tileStep)
    return putLastFirst(lo, fullLo, whole, hi, isLastOnly);
  loopOver(lo, fullLo, stepOf({/*masked=*/true, ragged}));
  loopOver(fullLo, whole,
           stepOf({/*masked=*/false, /*ragged=*/hasZeros, /*keeps=*/true,
                   /*fixedRagged=*/!isWhole}));
  loopOver(whole, fullHi, stepOf({/*masked=*/false, ragged}));
  loopOver(fullHi, hi, stepOf({/*masked=*/true, ragged}));
}

SmallVector<Value> VisitLowering::testTile(ArrayRef<Value> point, Value isWhole,
                                           Value at, ValueRange carried) {
  auto choiceOf = [&](StepKind kind) {
    return
        [this, at, carried, kind] { return copyStep(at, {}, carried, kind); };
  };
  auto unmasked = [&] {
    if (!isWhole)
      return choiceOf({/*masked=*/false, ragged})();
    return choose(isWhole, choiceOf({/*masked=*/false, /*ragged=*/false}),
                  choiceOf({/*masked=*/false, /*ragged=*/true}));
  };
  auto visitIt = [&] {
    return choose(isInAny(tiles.getNotFull(), point),
                  choiceOf({/*masked=*/true, ragged}), unmasked);
  };
  if (!tiles.getVisited())
    return visitIt();
  return choose(isInAny(tiles.getVisited(), point), visitIt,
                [&] { return SmallVector<Value>(carried); });
}

/// Otherwise one loop covers the hull and tests each tile.
void VisitLowering::testEachTile(Value lo, Value hi) {
  loopOver(lo, hi, [&](Value key, ValueRange carried) {
    Value number = apply(b.getAffineDimExpr(0).floorDiv(tile), {key}), isWhole;
    shareTiles(key);
    SmallVector<Value> point(position);
    point.push_back(number);
    if (ragged)
      isWhole = emitLess(number, wholeTiles);
    return testTile(point, isWhole, key, carried);
  });
}

Value VisitLowering::countWholeTiles(BlockArgument count) {
  if (!count)
    return constant(0);
  unsigned dim = count.getArgNumber() - visit.getNumStartArgs();
  OpFoldResult exist = getAsOpFoldResult(visit.getExist()[dim]);
  // A tile's first key is the distance before its first query.
  if (dim == 1)
    exist = affine::makeComposedFoldedAffineApply(
        b, loc, b.getAffineDimExpr(0) + b.getAffineDimExpr(1),
        {exist, visit.getDistance()});
  return apply(b.getAffineDimExpr(0).floorDiv(tile), {exist});
}

void VisitLowering::visitRange() {
  OpFoldResult start = getAsOpFoldResult(visit.getFrom()),
               stride = getAsOpFoldResult(visit.getBy());
  if (!isZeroInteger(start) || getConstantIntValue(stride) != tile) {
    AffineExpr toTile = b.getAffineDimExpr(0).floorDiv(tile);
    firstTile = apply(toTile, {start});
    tileStep = apply(toTile, {stride});
  }
  Value endTile = apply(b.getAffineDimExpr(0).ceilDiv(tile),
                        {getAsOpFoldResult(visit.getTo())});
  for (BlockArgument count : getCounts()) {
    Value whole = countWholeTiles(count);
    wholeTiles = wholeTiles ? min(wholeTiles, whole) : whole;
  }
  Value lo = combine(/*outerIsMin=*/true, tiles.getLo(), constant(0));
  Value hi =
      min(combine(/*outerIsMin=*/false, tiles.getHi(), constant(0)), endTile);
  if (tiles.areRanges())
    splitIntoRanges(lo, hi);
  else
    testEachTile(lo, hi);
}

//===----------------------------------------------------------------------===//
// Pairs of tiles, of batches and heads
//===----------------------------------------------------------------------===//

Value VisitLowering::isWholePair() {
  Value all;
  for (BlockArgument count : getCounts()) {
    if (!count)
      return {};
    unsigned dim = count.getArgNumber() - visit.getNumStartArgs();
    Value exist = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge,
                                        visit.getExist()[dim],
                                        constant(getRowsOfPair(dim)));
    all = all ? arith::AndIOp::create(b, loc, all, exist) : exist;
  }
  return all;
}

/// Whether one of the sets depends on the dimension.
static bool dependOn(ArrayAttr sets, unsigned dim) {
  return llvm::any_of(sets.getAsRange<IntegerSetAttr>(), [&](auto set) {
    return llvm::any_of(set.getValue().getConstraints(), [&](AffineExpr expr) {
      return expr.isFunctionOfDim(dim);
    });
  });
}

/// Two tiles are left out, whole or neither. Where that is the same for all
/// batches or heads of the loop, it becomes two loops, and at least one of them
/// is empty.
void VisitLowering::visitPair() {
  Value from = visit.getFrom(), to = visit.getTo(), by = visit.getBy();
  unsigned dim = visit.getKind() == VisitKind::Batches ? 0 : 1;
  auto getPoint = [&](Value iteration) {
    SmallVector<Value> point;
    for (OpFoldResult entry : step.getMixedPosition())
      point.push_back(entry == OpFoldResult(visit.getAt())
                          ? iteration
                          : getValueOrCreateConstantIndexOp(b, loc, entry));
    point.back() =
        apply(b.getAffineDimExpr(0).floorDiv(getRowsOfPair(1)), {point.back()});
    return point;
  };
  if (dependOn(tiles.getVisited(), dim) || dependOn(tiles.getNotFull(), dim))
    return emitLoop(from, to, by, [&](Value iteration, ValueRange carried) {
      shareTiles(iteration);
      return testTile(getPoint(iteration), isWholePair(), iteration, carried);
    });

  Value isWhole = isWholePair(), isVisited, needsCare;
  Value always = arith::ConstantIntOp::create(b, loc, 1, 1);
  if (isWhole)
    needsCare = arith::XOrIOp::create(b, loc, isWhole, always);
  if (step.getMask()) {
    SmallVector<Value> point = getPoint(constant(0));
    isVisited = isInAny(tiles.getVisited(), point);
    Value isPart = isInAny(tiles.getNotFull(), point);
    needsCare =
        needsCare ? arith::OrIOp::create(b, loc, needsCare, isPart) : isPart;
  }
  Value end =
      isVisited ? arith::SelectOp::create(b, loc, isVisited, to, from) : to;
  if (!needsCare)
    needsCare = always;
  bool masked = static_cast<bool>(step.getMask());
  emitLoop(from, arith::SelectOp::create(b, loc, needsCare, end, from), by,
           stepOf({masked, ragged}));
  emitLoop(from, arith::SelectOp::create(b, loc, needsCare, from, end), by,
           stepOf({/*masked=*/false, ragged && !isWhole}));
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

static constexpr bool inPart = false, isFull = true;

void VisitLowering::visitRuns(const BlockList &list) {
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  Value ranks = visit.getRanks();
  Value numTiles = getValueOrCreateConstantIndexOp(
      b, loc, tensor::getMixedSize(b, loc, ranks, 3));
  // The next number may be behind the last tile's.
  auto readRank = [&](Value number) {
    Value inside = getValueOrCreateConstantIndexOp(
        b, loc,
        affine::makeComposedFoldedAffineMin(
            b, loc, AffineMap::get(2, 0, {d0, d1 - 1}, b.getContext()),
            {number, numTiles}));
    return list.read(b, loc, ranks, inside);
  };
  // One loop over all heads of all tiles, in which products may be deferred.
  Value heads = visit.getHeads();
  auto timesHeads = [&](Value tiles) -> Value {
    return heads ? arith::MulIOp::create(b, loc, tiles, heads) : tiles;
  };
  auto findTile = [&](Value count) -> Value {
    return heads ? arith::DivUIOp::create(b, loc, count, heads) : count;
  };
  auto over = [&](Value from, Value to, bool areFull) {
    StepKind kind = getKindInList(areFull);
    emitLoop(timesHeads(from), timesHeads(to), constant(1),
             [&](Value count, ValueRange carried) {
               Value number = findTile(count), head;
               if (heads)
                 head = arith::RemUIOp::create(b, loc, count, heads);
               Value start = apply(d0 * tile, {number});
               if (!visit.getReadAhead())
                 return copyStep(start, list.read(b, loc, ranks, number),
                                 carried, kind, head);
               SmallVector<Value> results = {
                   readRank(findTile(apply(d0 + 1, {count})))};
               llvm::append_range(results,
                                  copyStep(start, carried.front(),
                                           carried.drop_front(), kind, head));
               return results;
             });
  };
  auto readOfRun = [&](Value run, int64_t plane) {
    Value first = arith::MulIOp::create(b, loc, numTiles, constant(plane));
    return list.readTile(b, loc, arith::AddIOp::create(b, loc, first, run));
  };
  emitLoop(constant(0), list.getNumRuns(), constant(1),
           [&](Value run, ValueRange carried) {
             Value first = readOfRun(run, 0), endOfParts = readOfRun(run, 1);
             llvm::SaveAndRestore ofRun(state, SmallVector<Value>(carried));
             if (visit.getReadAhead())
               state.insert(state.begin(), list.read(b, loc, ranks, first));
             over(first, endOfParts, inPart);
             over(endOfParts, readOfRun(run, 2), isFull);
             return SmallVector<Value>(
                 ArrayRef(state).take_back(carried.size()));
           });
}

void VisitLowering::visitBlocks(const BlockList &list) {
  int64_t tilesOfBlock = block / tile;
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  Value exist = visit.getExist()[0], by = visit.getBy();
  // A number beyond the last one means a block without elements where some may
  // lack them, and else the last one. So no sum of it overflows either.
  Value numBlocks = apply(d0.ceilDiv(block), {getAsOpFoldResult(exist)});
  Value most = ragged ? numBlocks : apply(d0 - 1, {numBlocks});
  auto startOf = [&](Value number) {
    Value entry = apply(d0.floorDiv(tilesOfBlock), {number});
    Value ofBlock = min(max(list.readTile(b, loc, entry), constant(0)), most);
    Value start =
        apply(d0 * block + (d1 % tilesOfBlock) * tile, {ofBlock, number});
    return ragged ? min(start, exist) : start;
  };
  auto over = [&](Value from, Value to, StepKind kind) {
    emitLoop(from, to, by ? by : constant(1),
             [&](Value number, ValueRange carried) {
               return copyStep(startOf(number), {}, carried, kind);
             });
  };
  StepKind ofParts = {/*masked=*/true, ragged},
           ofFull = {/*masked=*/false, ragged, /*keeps=*/false};
  Value from = visit.getFrom() ? visit.getFrom() : constant(0);
  // Where all blocks are whole, no more are visited than there are.
  auto endOf = [&](Value entries) {
    return apply(d0 * tilesOfBlock,
                 {ragged ? entries : min(entries, numBlocks)});
  };
  Value end = endOf(list.getEnd());
  if (!step || (!step.getMask() && !masksElements(step.getScore())))
    return over(from, end, ofFull);
  Value endOfParts = endOf(list.getEndOfParts());
  over(from, endOfParts, ofParts);
  over(by ? nextOf(endOfParts, from, by) : endOfParts, end, ofFull);
}

void VisitLowering::visitList() {
  bool isGiven = visit.getCut().has_value();
  BlockList list(b, loc, visit.getList(), visit.getCounts(), visit.getRow(),
                 isGiven);
  if (visit.getRanks())
    return visitRuns(list);
  if (isGiven)
    return visitBlocks(list);
  Value endOfParts = list.getEndOfParts(), end = list.getEnd();
  Value by = visit.getBy() ? visit.getBy() : constant(1);
  auto over = [&](Value from, Value to, bool areFull) {
    StepKind kind = getKindInList(areFull);
    emitLoop(from, to, by, [&](Value entry, ValueRange carried) {
      return copyStep(list.getStart(b, loc, entry, tile), {}, carried, kind);
    });
  };
  if (Value from = visit.getFrom()) {
    Value full = nextOf(endOfParts, from, by);
    over(from, full, inPart);
    return over(full, end, isFull);
  }
  Value zero = constant(0);
  if (!visit.getFillOnce()) {
    over(zero, endOfParts, inPart);
    return over(endOfParts, end, isFull);
  }
  // The first tile is computed with the mask, also if it is a full one.
  Value first = arith::MinSIOp::create(b, loc, end, constant(1));
  first = arith::MaxSIOp::create(b, loc, endOfParts, first);
  enterIfLess(zero, first, [&] {
    if (!sharesStep()) {
      over(zero, first, inPart);
      return over(first, end, isFull);
    }
    emitLoop(zero, end, by, [&](Value entry, ValueRange carried) {
      StepKind kind = getKindInList(inPart);
      kind.partial = emitLess(entry, endOfParts);
      return copyStep(list.getStart(b, loc, entry, tile), {}, carried, kind);
    });
  });
}

void VisitLowering::run() {
  VisitKind kind = visit.getKind();
  if (visit.getList()) {
    visitList();
  } else if (!tiles) {
    emitLoop(visit.getFrom(), visit.getTo(), visit.getBy(),
             stepOf({/*masked=*/true, /*ragged=*/true}));
  } else {
    SmallVector<OpFoldResult> at = step.getMixedPosition(),
                              of = step.getMixedExtents();
    if (kind == VisitKind::Queries) {
      std::swap(at[2], at[3]);
      std::swap(of[0], of[1]);
    }
    for (OpFoldResult entry : of)
      extents.push_back(getValueOrCreateConstantIndexOp(b, loc, entry));
    if (visit.isOfPair()) {
      visitPair();
    } else {
      if (kind == VisitKind::Diagonal)
        at[2] = visit.getDistance();
      for (OpFoldResult entry : ArrayRef(at).drop_back())
        position.push_back(getValueOrCreateConstantIndexOp(b, loc, entry));
      visitRange();
    }
  }
  visit->replaceAllUsesWith(state);
  visit.erase();
}
