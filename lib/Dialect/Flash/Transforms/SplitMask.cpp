//===- SplitMask.cpp - Visit only the tiles that hold work ----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop goes over tiles of keys for a tile of queries, or the other way round.
// The latter is the former under the transposed mask, so that what is written
// here of keys and queries holds for it with the words exchanged. Along a
// diagonal tiles of both go on; what is written of the query tile holds for
// their distance then, and the tiles that are counted are those of queries.
//
//===----------------------------------------------------------------------===//

#include "MaskConditions.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/MaskNodes.h"
#include "flash/Dialect/Flash/Utils/MaskTiles.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/Support/SaveAndRestore.h"

namespace flash {
#define GEN_PASS_DEF_SPLITMASK
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
/// Which tiles the iterations of a loop have.
enum class Path {
  Row,      ///< Those of keys of a tile of queries, or the other way round.
  Diagonal, ///< Those of queries that are as far behind those of keys.
  Pair      ///< The same two, of other batches or heads.
};

/// What a copy of the loop body still has to take care of.
struct StepKind {
  bool masked; ///< Some elements of the tile may be masked.
  bool ragged; ///< Some rows of the tiles may not exist.
};

/// Splits one loop over tiles.
class Splitter {
public:
  Splitter(scf::ForOp loop, StepOpInterface step, Path path);
  void run();

private:
  using Step = function_ref<SmallVector<Value>(Value key, ValueRange state)>;
  using Branch = function_ref<SmallVector<Value>()>;

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  /// The least (`isMin`) or greatest result of `map` at `operands`.
  Value extremum(bool isMin, AffineMap map, ArrayRef<OpFoldResult> operands);
  Value min(Value lhs, Value rhs) { return ofTwo(/*isMin=*/true, lhs, rhs); }
  Value max(Value lhs, Value rhs) { return ofTwo(/*isMin=*/false, lhs, rhs); }
  Value ofTwo(bool isMin, Value lhs, Value rhs) {
    return extremum(isMin, b.getMultiDimIdentityMap(2), {lhs, rhs});
  }
  /// The expression `expr` of one dimension at `value`.
  Value apply(AffineExpr expr, OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(
        b, loc, affine::makeComposedFoldedAffineApply(b, loc, expr, {value}));
  }

  /// The bound that `bounds` describe, see MaskTiles: the least or greatest of
  /// those whose guard holds, each the greatest or least of its map's results.
  Value combine(bool outerIsMin, ArrayRef<TileBound> bounds, Value fallback);
  /// Whether the point `dims` lies in `set`, or in one of `sets`.
  Value isIn(IntegerSet set, ArrayRef<Value> dims) {
    return emitIsIn(b, loc, set, dims, extents);
  }
  Value isInAny(ArrayRef<IntegerSet> sets, ArrayRef<Value> dims) {
    return emitIsInAny(b, loc, sets, dims, extents);
  }

  /// Copies the loop body for the key tile that starts at `key`.
  SmallVector<Value> copyStep(Value key, ValueRange carried, StepKind kind);
  /// Copies what steps of the tile that starts at `key` read, for all copies of
  /// the step that follow.
  void shareTiles(Value key);
  /// Says of the tile that starts at `key` which units a contribution to it is
  /// among: those of the loop's other dimension that visit it.
  void narrow(ContributeOp contribution, Value key);
  /// Makes a copied step read whole tiles of which `count` rows exist: all do.
  void dropPadding(StepOpInterface copy, Value count);
  /// How many rows exist of the tiles that iterations change.
  SmallVector<Value> getCounts(StepOpInterface of);
  /// Emits how many of the tiles have all the rows that `count` counts: those
  /// before it have, and none behind them.
  Value countWholeTiles(Value count);
  /// The first tile from `tile` on that the loop visits, which may be one
  /// behind its end.
  Value nextVisited(Value tile);
  /// Emits a loop over the tiles [from, to) that carries on the state, unless
  /// it is known to be empty.
  void loopOver(Value from, Value to, Step body);
  /// The same of what the loop itself counts.
  void emitLoop(Value from, Value to, Step body);
  /// Emits the results of `then` where `condition` holds, else of `otherwise`.
  SmallVector<Value> choose(Value condition, Branch then, Branch otherwise);

  void splitIntoRanges(const MaskTiles &tiles, Value lo, Value hi);
  void putLastFirst(Value lo, Value fullLo, Value whole, Value hi,
                    bool isLastOnly);
  auto stepOf(StepKind kind) {
    return [this, kind](Value key, ValueRange carried) {
      return copyStep(key, carried, kind);
    };
  }
  /// Asks of the tile at `point`, of which all rows exist where `isWhole`,
  /// whether to visit it and how.
  SmallVector<Value> testTile(const MaskTiles &tiles, ArrayRef<Value> point,
                              Value isWhole, Value key, ValueRange carried);
  void testEachTile(const MaskTiles &tiles, Value lo, Value hi);
  void splitPair(const MaskTiles &tiles, ArrayRef<OpFoldResult> at);
  /// Whether all rows of both tiles exist; null if only an iteration tells.
  Value isWholePair();

  scf::ForOp loop;
  StepOpInterface step;
  Path path;
  OpBuilder b;
  Location loc;
  int64_t packedHeads, queryTile, keyTile;
  SmallVector<Value> position; ///< (b, h, i) of the query tile.
  SmallVector<Value> extents;  ///< (nq, nk).
  bool ragged;                 ///< Whether some tiles may lack rows.
  Value wholeTiles;            ///< Tiles before this one have all their keys.
  MaskAttrInterface mask;      ///< Of the loop's queries and keys.
  /// The first tile of the loop, and the distance between its tiles; null if it
  /// visits all.
  Value firstTile, tileStep;
  DenseMap<Value, Value> visited; ///< Results of nextVisited.
  IRMapping shared;               ///< What copies of the step have in common.
  SmallVector<Value> state;
};
} // namespace

/// Whether the loop is one over keys under the transposed mask.
static bool isTransposed(Path path, StepOpInterface step) {
  return path == Path::Row && step.stepsOverQueries();
}

Splitter::Splitter(scf::ForOp loop, StepOpInterface step, Path path)
    : loop(loop), step(step), path(path), b(loop), loc(loop.getLoc()),
      packedHeads(step.getPackedHeads()),
      queryTile(step.getQuery().getType().getDimSize(0) / packedHeads),
      keyTile(step.getKey().getType().getDimSize(0)),
      ragged(!getCounts(step).empty()),
      state(loop.getInitArgs().begin(), loop.getInitArgs().end()) {
  if (isTransposed(path, step))
    std::swap(queryTile, keyTile);
}

Value Splitter::extremum(bool isMin, AffineMap map,
                         ArrayRef<OpFoldResult> operands) {
  if (map.getNumResults() == 1)
    return getValueOrCreateConstantIndexOp(
        b, loc, affine::makeComposedFoldedAffineApply(b, loc, map, operands));
  OpFoldResult value =
      isMin ? affine::makeComposedFoldedAffineMin(b, loc, map, operands)
            : affine::makeComposedFoldedAffineMax(b, loc, map, operands);
  return getValueOrCreateConstantIndexOp(b, loc, value);
}

Value Splitter::combine(bool outerIsMin, ArrayRef<TileBound> bounds,
                        Value fallback) {
  if (bounds.empty())
    return fallback;
  SmallVector<OpFoldResult> operands(position.begin(), position.end());
  llvm::append_range(operands, extents);
  if (bounds.size() == 1) {
    Value value = extremum(!outerIsMin, bounds[0].map, operands);
    if (bounds[0].guard == IntegerSet())
      return value;
    return arith::SelectOp::create(b, loc, isIn(bounds[0].guard, position),
                                   value, fallback);
  }
  // Bounds whose guard fails become an extreme that loses against any other. No
  // tile has such a number, and it fits the 32-bit indices of a GPU.
  Value lost = constant(outerIsMin ? std::numeric_limits<int32_t>::max()
                                   : std::numeric_limits<int32_t>::min());
  Value result = lost;
  for (const TileBound &bound : bounds) {
    Value value = extremum(!outerIsMin, bound.map, operands);
    if (bound.guard != IntegerSet())
      value = arith::SelectOp::create(b, loc, isIn(bound.guard, position),
                                      value, lost);
    result = outerIsMin
                 ? arith::MinSIOp::create(b, loc, result, value).getResult()
                 : arith::MaxSIOp::create(b, loc, result, value).getResult();
  }
  Value none =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, result, lost);
  return arith::SelectOp::create(b, loc, none, fallback, result);
}

namespace {
/// An affine operation in a loop, by the loop's induction variable.
struct InductionMap {
  AffineMap map;
  SmallVector<OpFoldResult> operands; ///< 0 in the place of the variable.
  AffineExpr variable;                ///< Null if it is no operand.

  /// The expression, null if it depends on the variable.
  AffineExpr getInvariant(AffineExpr expr) const {
    expr = simplifyAffineExpr(expr, map.getNumDims(), map.getNumSymbols());
    bool varies = false;
    expr.walk([&](AffineExpr part) { varies |= part == variable; });
    return varies ? AffineExpr() : expr;
  }
};
} // namespace

/// That of the operation that gives `value`, none if another operand of it
/// varies in the loop.
template <typename Op>
static std::optional<InductionMap> getInductionMap(scf::ForOp loop,
                                                   Value value) {
  auto op = value.getDefiningOp<Op>();
  if (!op)
    return std::nullopt;
  Builder b(loop.getContext());
  InductionMap result = {op.getAffineMap(), {}, {}};
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    if (operand == loop.getInductionVar()) {
      unsigned numDims = result.map.getNumDims();
      result.variable = i < numDims ? b.getAffineDimExpr(i)
                                    : b.getAffineSymbolExpr(i - numDims);
      result.operands.push_back(b.getIndexAttr(0));
    } else if (loop.isDefinedOutsideOfLoop(operand)) {
      result.operands.push_back(operand);
    } else {
      return std::nullopt;
    }
  }
  return result;
}

SmallVector<Value> Splitter::getCounts(StepOpInterface of) {
  SmallVector<Value> counts;
  if (Value count = of.getCount())
    counts.push_back(count);
  if (Value count = of.getFixedCount(); count && path != Path::Row)
    counts.push_back(count);
  return counts;
}

Value Splitter::countWholeTiles(Value count) {
  // A tile at j has min(n - j, keyTile) of n keys: whatever the loop's end is,
  // this says n.
  std::optional<InductionMap> ofTile =
      getInductionMap<affine::AffineMinOp>(loop, count);
  if (!ofTile || !ofTile->variable)
    return constant(0);
  bool isOfTile = false;
  SmallVector<AffineExpr> all;
  for (AffineExpr result : ofTile->map.getResults()) {
    auto most = dyn_cast<AffineConstantExpr>(result);
    if (most && most.getValue() == keyTile) {
      isOfTile = true;
      continue;
    }
    all.push_back(ofTile->getInvariant(result + ofTile->variable));
    if (!all.back())
      return constant(0);
  }
  if (!isOfTile || all.empty())
    return constant(0);
  AffineMap map =
      AffineMap::get(ofTile->map.getNumDims(), ofTile->map.getNumSymbols(), all,
                     b.getContext());
  return apply(b.getAffineDimExpr(0).floorDiv(keyTile),
               extremum(/*isMin=*/true, map, ofTile->operands));
}

void Splitter::narrow(ContributeOp contribution, Value key) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(contribution);
  // As a loop over the units of the tile would visit them.
  llvm::SaveAndRestore ofTile(
      position, SmallVector<Value>{position[0], position[1], key}),
      ofUnits(extents, SmallVector<Value>{extents[1], extents[0]});
  MaskTiles units = computeMaskTiles(transposeMask(mask), keyTile, queryTile,
                                     getConstantIntValue(extents[0]),
                                     getConstantIntValue(extents[1]));
  assert(units.exact && units.visitedIsRange && "flash-tile-grad checks it");
  Value first = contribution.getFirst(), end = contribution.getEnd();
  contribution.getFirstMutable().assign(
      max(combine(/*outerIsMin=*/true, units.lo, constant(0)), first));
  contribution.getEndMutable().assign(
      min(combine(/*outerIsMin=*/false, units.hi, constant(0)), end));
}

/// The slice of which `tile` is a copy that is padded behind its first `rows`
/// rows, and nowhere else; null if it is none.
static tensor::ExtractSliceOp getPaddedSlice(Value tile, Value rows) {
  auto pad = tile.getDefiningOp<tensor::PadOp>();
  auto slice =
      pad ? pad.getSource().getDefiningOp<tensor::ExtractSliceOp>() : nullptr;
  if (!slice || !llvm::all_of(pad.getMixedLowPad(), isZeroInteger) ||
      slice.getType().getDimSize(0) != ShapedType::kDynamic ||
      slice.getType().getShape().drop_front() !=
          pad.getType().getShape().drop_front())
    return nullptr;
  ValueRange sizes = slice.getSizes();
  return llvm::hasSingleElement(sizes) && sizes.front() == rows ? slice
                                                                : nullptr;
}

void Splitter::dropPadding(StepOpInterface copy, Value count) {
  for (OpOperand &operand : copy->getOpOperands()) {
    tensor::ExtractSliceOp slice = getPaddedSlice(operand.get(), count);
    if (!slice)
      continue;
    auto type = cast<RankedTensorType>(operand.get().getType());
    SmallVector<OpFoldResult> sizes = slice.getMixedSizes();
    for (OpFoldResult &size : sizes)
      if (isa<Value>(size))
        size = b.getIndexAttr(type.getDimSize(0));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(operand.get().getDefiningOp());
    operand.set(tensor::ExtractSliceOp::create(b, loc, type, slice.getSource(),
                                               slice.getMixedOffsets(), sizes,
                                               slice.getMixedStrides()));
  }
}

void Splitter::shareTiles(Value key) {
  shared.map(loop.getInductionVar(), key);
  for (Operation &op : loop.getBody()->without_terminator()) {
    auto isKnown = [&](Value value) {
      return loop.isDefinedOutsideOfLoop(value) || shared.contains(value);
    };
    if (isMemoryEffectFree(&op) && &op != step &&
        llvm::all_of(op.getOperands(), isKnown))
      b.clone(op, shared);
  }
}

SmallVector<Value> Splitter::copyStep(Value key, ValueRange carried,
                                      StepKind kind) {
  IRMapping mapping = shared;
  mapping.map(loop.getInductionVar(), key);
  mapping.map(loop.getRegionIterArgs(), carried);
  SmallVector<Operation *> copies;
  for (Operation &op : loop.getBody()->without_terminator())
    if (op.getNumResults() == 0 || !shared.contains(op.getResult(0))) {
      copies.push_back(b.clone(op, mapping));
      if (auto contribution = dyn_cast<ContributeOp>(copies.back()))
        narrow(contribution, key);
    }
  auto copy = cast<StepOpInterface>(mapping.lookup(step.getOperation()));
  if (!kind.masked)
    copy.removeMaskAttr();
  if (!kind.ragged) {
    // Steps that are chosen between share their tiles, padded or not.
    if (shared.getValueMap().empty())
      for (Value count : getCounts(copy))
        dropPadding(copy, count);
    copy.getCountMutable().clear();
    if (path != Path::Row)
      copy.getFixedCountMutable().clear();
  }
  SmallVector<Value> results =
      llvm::map_to_vector(loop.getYieldedValues(), [&](Value yielded) {
        return mapping.lookup(yielded);
      });
  auto isResult = [&](Value value) {
    return llvm::is_contained(results, value);
  };
  for (Operation *op : llvm::reverse(copies))
    if (isOpTriviallyDead(op) && llvm::none_of(op->getResults(), isResult))
      op->erase();
  return results;
}

Value Splitter::nextVisited(Value tile) {
  if (!tileStep)
    return tile;
  if (isConstantIntValue(tile, 0))
    return firstTile;
  if (isConstantIntValue(tileStep, 1))
    return max(tile, firstTile);
  Value &next = visited[tile];
  if (next)
    return next;
  // No bound of tiles is negative, so neither is the sum here.
  Value distance = arith::SubIOp::create(b, loc, tile, firstTile);
  distance = arith::MaxSIOp::create(b, loc, distance, constant(0));
  Value steps = arith::CeilDivUIOp::create(b, loc, distance, tileStep);
  Value there = arith::MulIOp::create(b, loc, steps, tileStep);
  return next = arith::AddIOp::create(b, loc, firstTile, there);
}

void Splitter::loopOver(Value from, Value to, Step body) {
  if (from == to)
    return;
  AffineExpr toKey = b.getAffineDimExpr(0) * keyTile;
  // The next loop starts where this one ends, also if not all tiles are
  // visited.
  emitLoop(apply(toKey, nextVisited(from)), apply(toKey, nextVisited(to)),
           body);
}

void Splitter::emitLoop(Value from, Value to, Step body) {
  auto copy = scf::ForOp::create(b, loc, from, to, loop.getStep(), state);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  scf::YieldOp::create(b, loc,
                       body(copy.getInductionVar(), copy.getRegionIterArgs()));
  state.assign(copy.getResults().begin(), copy.getResults().end());
}

SmallVector<Value> Splitter::choose(Value condition, Branch then,
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

/// The tiles that need care are visited first, beginning with the last one,
/// whether it does or not: a loop that is entered wherever there is a tile at
/// all, which a choice around all loops asks for. So the pipeline of a kernel
/// is filled once, and does not end where masked tiles do. If `isLastOnly`, no
/// tile but the last one needs care, whatever the sizes are: there is no loop
/// for it.
void Splitter::putLastFirst(Value lo, Value fullLo, Value whole, Value hi,
                            bool isLastOnly) {
  Value last = apply(b.getAffineDimExpr(0) - 1, hi);
  AffineExpr toKey = b.getAffineDimExpr(0) * keyTile;
  bool masked = static_cast<bool>(step.getMask());
  Value from = max(isLastOnly ? last : min(whole, last), lo);
  Value firstKey = apply(toKey, from), endKey = apply(toKey, hi);
  // A sum that cannot overflow: the loop is known to have one iteration.
  auto keyBehind = [&](Value key) {
    return b.createOrFold<arith::AddIOp>(loc, key, constant(keyTile),
                                         arith::IntegerOverflowFlags::nsw);
  };
  auto visit = [&] {
    emitLoop(firstKey, isLastOnly ? keyBehind(firstKey) : endKey,
             stepOf({masked, ragged}));
    if (fullLo != lo) {
      fullLo = min(fullLo, from);
      loopOver(lo, fullLo, stepOf({/*masked=*/true, /*ragged=*/false}));
    }
    loopOver(fullLo, from, stepOf({/*masked=*/false, /*ragged=*/false}));
    return state;
  };
  std::optional<int64_t> first = getConstantIntValue(firstKey),
                         end = getConstantIntValue(endKey);
  if (first && end) {
    if (*first < *end)
      visit();
    return;
  }
  Value isEntered = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                          firstKey, endKey);
  state = choose(isEntered, visit, [init = state] { return init; });
}

/// Says that a mask leaves no tile out only because the analysis gave up.
static void warnOfAllTiles(Location loc, StepOpInterface step, Path path) {
  MaskAttrInterface mask = *step.getMask();
  constexpr size_t mostParts = 8, mostChars = 160;
  // The text of a mask has a shared part once for each path to it.
  size_t numParts = getMaskNodes(mask).size();
  std::string text = "of " + std::to_string(numParts) + " parts";
  if (numParts <= mostParts) {
    text.clear();
    llvm::raw_string_ostream(text) << mask;
    if (text.size() > mostChars)
      text.replace(mostChars, std::string::npos, "...");
  }
  emitWarning(loc) << "the mask " << text
                   << " is too complicated, or its numbers are too large, to "
                      "tell which tiles of "
                   << (path != Path::Row         ? "queries and keys"
                       : step.stepsOverQueries() ? "queries"
                                                 : "keys")
                   << " it leaves out: all are visited, "
                      "which is right but slow";
}

/// Whether `bound` is known to be at least the last of the tiles before `hi`.
static bool reachesLast(Value bound, Value hi) {
  AffineExpr last = getAffineDimExpr(0, hi.getContext()) - 1;
  return ValueBoundsConstraintSet::compare(
      bound, ValueBoundsConstraintSet::GE,
      ValueBoundsConstraintSet::Variable(AffineMap::get(1, 0, last),
                                         ValueRange(hi)));
}

/// Where visited and full tiles are ranges, up to four loops cover
/// [lo, fullLo), [fullLo, whole), [whole, fullHi) and [fullHi, hi).
void Splitter::splitIntoRanges(const MaskTiles &tiles, Value lo, Value hi) {
  Value fullLo = combine(/*outerIsMin=*/false, tiles.fullLo, lo);
  if (fullLo != lo)
    fullLo = min(max(fullLo, lo), hi);
  Value fullHi = combine(/*outerIsMin=*/true, tiles.fullHi, hi);
  // All tiles before these are so, but perhaps for the last one.
  bool isLastOnly =
      reachesLast(fullHi, hi) && (!ragged || reachesLast(wholeTiles, hi));
  if (fullHi != hi)
    fullHi = max(min(fullHi, hi), fullLo);
  Value whole = fullHi;
  if (ragged)
    whole = max(min(fullHi, wholeTiles), fullLo);

  std::optional<ScheduleAttr> schedule = step.getSchedule();
  // What the first tiles are depends on the other rows, and on what types say.
  if (schedule && !tileStep && !schedule->getValue().splitKeys &&
      schedule->getValue().has(ScheduleFeatures::Overlap))
    return putLastFirst(lo, fullLo, whole, hi, isLastOnly);
  loopOver(lo, fullLo, stepOf({/*masked=*/true, ragged}));
  loopOver(fullLo, whole, stepOf({/*masked=*/false, /*ragged=*/false}));
  loopOver(whole, fullHi, stepOf({/*masked=*/false, /*ragged=*/true}));
  loopOver(fullHi, hi, stepOf({/*masked=*/true, ragged}));
}

SmallVector<Value> Splitter::testTile(const MaskTiles &tiles,
                                      ArrayRef<Value> point, Value isWhole,
                                      Value key, ValueRange carried) {
  auto choiceOf = [&](StepKind kind) {
    return [this, key, carried, kind] { return copyStep(key, carried, kind); };
  };
  auto unmasked = [&] {
    if (!isWhole)
      return choiceOf({/*masked=*/false, ragged})();
    return choose(isWhole, choiceOf({/*masked=*/false, /*ragged=*/false}),
                  choiceOf({/*masked=*/false, /*ragged=*/true}));
  };
  auto visit = [&] {
    return choose(isInAny(tiles.notFull, point),
                  choiceOf({/*masked=*/true, ragged}), unmasked);
  };
  if (path != Path::Pair && tiles.visitedIsRange)
    return visit();
  return choose(isInAny(tiles.visited, point), visit,
                [&] { return SmallVector<Value>(carried); });
}

/// Otherwise one loop covers the hull and asks at each tile.
void Splitter::testEachTile(const MaskTiles &tiles, Value lo, Value hi) {
  loopOver(lo, hi, [&](Value key, ValueRange carried) {
    Value tile = apply(b.getAffineDimExpr(0).floorDiv(keyTile), key), isWhole;
    shareTiles(key);
    SmallVector<Value> point(position);
    point.push_back(tile);
    if (ragged)
      isWhole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, tile,
                                      wholeTiles);
    return testTile(tiles, point, isWhole, key, carried);
  });
}

Value Splitter::isWholePair() {
  int64_t stepped = step.stepsOverQueries() ? queryTile : keyTile,
          fixed = step.stepsOverQueries() ? keyTile : queryTile;
  Value all;
  for (auto [count, rows] : {std::pair(step.getCount(), stepped),
                             std::pair(step.getFixedCount(), fixed)}) {
    if (!count)
      continue;
    Value here = shared.lookupOrDefault(count);
    if (loop.getRegion().isAncestor(here.getParentRegion())) {
      std::optional<InductionMap> ofTile =
          getInductionMap<affine::AffineMinOp>(loop, count);
      if (!ofTile || ofTile->variable)
        return {};
      here = extremum(/*isMin=*/true, ofTile->map, ofTile->operands);
    }
    Value exist = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, here,
                                        constant(rows));
    all = all ? arith::AndIOp::create(b, loc, all, exist) : exist;
  }
  return all;
}

/// Two tiles are left out, whole or neither. Where that is the same for all
/// batches or heads of the loop, it becomes two of which one is empty, or both
/// are.
void Splitter::splitPair(const MaskTiles &tiles, ArrayRef<OpFoldResult> at) {
  Value variable = loop.getInductionVar(), from = loop.getLowerBound(),
        to = loop.getUpperBound();
  auto getPoint = [&](Value iteration) {
    SmallVector<Value> point;
    for (OpFoldResult entry : at)
      point.push_back(entry == OpFoldResult(variable)
                          ? iteration
                          : getValueOrCreateConstantIndexOp(b, loc, entry));
    point.back() = apply(b.getAffineDimExpr(0).floorDiv(keyTile), point.back());
    return point;
  };
  for (unsigned dim : {0, 1})
    if (at[dim] == OpFoldResult(variable) && dependsOn(mask, dim))
      return emitLoop(from, to, [&](Value iteration, ValueRange carried) {
        shareTiles(iteration);
        return testTile(tiles, getPoint(iteration), isWholePair(), iteration,
                        carried);
      });

  Value isWhole = isWholePair(), isVisited, needsCare;
  Value always = arith::ConstantIntOp::create(b, loc, 1, 1);
  if (isWhole)
    needsCare = arith::XOrIOp::create(b, loc, isWhole, always);
  if (step.getMask()) {
    SmallVector<Value> point = getPoint(constant(0));
    isVisited = isInAny(tiles.visited, point);
    Value isPart = isInAny(tiles.notFull, point);
    needsCare =
        needsCare ? arith::OrIOp::create(b, loc, needsCare, isPart) : isPart;
  }
  Value end =
      isVisited ? arith::SelectOp::create(b, loc, isVisited, to, from) : to;
  if (!needsCare)
    needsCare = always;
  bool masked = static_cast<bool>(step.getMask());
  emitLoop(from, arith::SelectOp::create(b, loc, needsCare, end, from),
           stepOf({masked, ragged}));
  emitLoop(from, arith::SelectOp::create(b, loc, needsCare, from, end),
           stepOf({/*masked=*/false, ragged && !isWhole}));
}

/// How far the tiles of queries of a loop are behind those of keys, by a map
/// whose only result does not depend on the iteration; none if that does.
static std::optional<InductionMap> getDistance(scf::ForOp loop,
                                               StepOpInterface step) {
  SmallVector<OpFoldResult> at = step.getMixedPosition();
  auto keys = dyn_cast<Value>(at[3]);
  if (!keys || at[2] != OpFoldResult(loop.getInductionVar()))
    return std::nullopt;
  std::optional<InductionMap> distance =
      getInductionMap<affine::AffineApplyOp>(loop, keys);
  if (!distance || !distance->variable)
    return std::nullopt;
  AffineExpr ofAll =
      distance->getInvariant(distance->variable - distance->map.getResult(0));
  if (!ofAll)
    return std::nullopt;
  distance->map = AffineMap::get(distance->map.getNumDims(),
                                 distance->map.getNumSymbols(), ofAll);
  return distance;
}

void Splitter::run() {
  if (!step.getMask() && !ragged)
    return;
  SmallVector<OpFoldResult> at = step.getMixedPosition(),
                            of = step.getMixedExtents();
  mask = step.getMask() ? *step.getMask() : FullAttr::get(b.getContext());
  if (isTransposed(path, step)) {
    std::swap(at[2], at[3]);
    std::swap(of[0], of[1]);
    mask = transposeMask(mask);
  }
  for (OpFoldResult entry : of)
    extents.push_back(getValueOrCreateConstantIndexOp(b, loc, entry));
  std::optional<int64_t> nq = getConstantIntValue(of[0]),
                         nk = getConstantIntValue(of[1]);
  MaskTiles tiles =
      path == Path::Diagonal
          ? computeDiagonalTiles(mask, keyTile, nq, nk)
          : computeMaskTiles(mask, queryTile, keyTile, nq, nk, packedHeads);
  if (tiles.gaveUp)
    warnOfAllTiles(loc, step, path);
  if (path == Path::Pair) {
    splitPair(tiles, at);
    loop->replaceAllUsesWith(state);
    return loop.erase();
  }

  if (path == Path::Diagonal) {
    std::optional<InductionMap> distance = getDistance(loop, step);
    at[2] = extremum(/*isMin=*/true, distance->map, distance->operands);
  }
  for (OpFoldResult entry : ArrayRef(at).drop_back())
    position.push_back(getValueOrCreateConstantIndexOp(b, loc, entry));
  OpFoldResult start = getAsOpFoldResult(loop.getLowerBound()),
               stride = getAsOpFoldResult(loop.getStep());
  if (!isZeroInteger(start) || getConstantIntValue(stride) != keyTile) {
    AffineExpr toTile = b.getAffineDimExpr(0).floorDiv(keyTile);
    firstTile = apply(toTile, start);
    tileStep = apply(toTile, stride);
  }

  Value endTile = apply(b.getAffineDimExpr(0).ceilDiv(keyTile),
                        getAsOpFoldResult(loop.getUpperBound()));
  for (Value count : getCounts(step)) {
    Value whole = countWholeTiles(count);
    wholeTiles = wholeTiles ? min(wholeTiles, whole) : whole;
  }
  Value lo = combine(/*outerIsMin=*/true, tiles.lo, constant(0));
  Value hi = min(combine(/*outerIsMin=*/false, tiles.hi, constant(0)), endTile);
  if (tiles.visitedIsRange && tiles.fullIsRange)
    splitIntoRanges(tiles, lo, hi);
  else
    testEachTile(tiles, lo, hi);
  loop->replaceAllUsesWith(state);
  loop.erase();
}

/// Whether `value` is known to be a multiple of `factor`: a constant, an affine
/// expression of which that is known, or the induction variable of a loop that
/// starts at one and steps by one.
static bool isMultipleOf(OpFoldResult value, int64_t factor) {
  // Of a tile without rows.
  if (factor == 0)
    return false;
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return *constant % factor == 0;
  auto areMultiples = [&](AffineMap map) {
    return llvm::all_of(map.getResults(), [&](AffineExpr result) {
      return result.isMultipleOf(factor);
    });
  };
  if (auto apply = cast<Value>(value).getDefiningOp<affine::AffineApplyOp>())
    return areMultiples(apply.getAffineMap());
  if (auto max = cast<Value>(value).getDefiningOp<affine::AffineMaxOp>())
    return areMultiples(max.getAffineMap());
  auto argument = dyn_cast<BlockArgument>(cast<Value>(value));
  auto loop =
      argument
          ? dyn_cast<LoopLikeOpInterface>(argument.getOwner()->getParentOp())
          : LoopLikeOpInterface();
  if (!loop)
    return false;
  auto inductionVars = loop.getLoopInductionVars();
  auto starts = loop.getLoopLowerBounds(), steps = loop.getLoopSteps();
  if (!inductionVars || !starts || !steps)
    return false;
  for (auto [var, start, step] :
       llvm::zip_equal(*inductionVars, *starts, *steps))
    if (var == argument)
      return isMultipleOf(start, factor) && isMultipleOf(step, factor);
  return false;
}

/// What the tiles of `step` have in common in all iterations of `loop`, none if
/// the classification of tiles does not hold for them: it is of whole tiles,
/// all of a row or of a diagonal or every n-th.
static std::optional<Path> getPath(scf::ForOp loop, StepOpInterface step) {
  // What is the same for all tiles is asked for before the loop.
  auto isOutside = [&](OpFoldResult entry) {
    auto value = dyn_cast<Value>(entry);
    return !value || loop.isDefinedOutsideOfLoop(value);
  };
  RankedTensorType query = step.getQuery().getType(),
                   key = step.getKey().getType();
  if (!llvm::hasSingleElement(loop.getOps<StepOpInterface>()) ||
      query.getRank() != 2 || !query.hasStaticShape() ||
      !key.hasStaticShape() || !llvm::all_of(step.getMixedExtents(), isOutside))
    return std::nullopt;
  SmallVector<OpFoldResult> at = step.getMixedPosition();
  OpFoldResult variable = loop.getInductionVar();
  int64_t packedHeads = step.getPackedHeads(),
          queryTile = query.getDimSize(0) / packedHeads,
          keyTile = key.getDimSize(0);
  if (isOutside(at[2]) && isOutside(at[3])) {
    auto isKnown = [&](OpFoldResult entry) {
      return isOutside(entry) || entry == variable;
    };
    if (isKnown(at[0]) && isKnown(at[1]) && isMultipleOf(at[2], queryTile) &&
        isMultipleOf(at[3], keyTile))
      return Path::Pair;
    return std::nullopt;
  }
  if (!isOutside(at[0]) || !isOutside(at[1]))
    return std::nullopt;
  auto visitsTiles = [&](int64_t tile) {
    return isMultipleOf(getAsOpFoldResult(loop.getLowerBound()), tile) &&
           isMultipleOf(getAsOpFoldResult(loop.getStep()), tile);
  };
  if (std::optional<InductionMap> distance = getDistance(loop, step)) {
    if (packedHeads == 1 && queryTile == keyTile && visitsTiles(keyTile) &&
        distance->map.getResult(0).isMultipleOf(keyTile))
      return Path::Diagonal;
    return std::nullopt;
  }
  if (step.stepsOverQueries()) {
    std::swap(at[2], at[3]);
    std::swap(queryTile, keyTile);
  }
  if (isOutside(at[2]) && isMultipleOf(at[2], queryTile) && at[3] == variable &&
      visitsTiles(keyTile))
    return Path::Row;
  return std::nullopt;
}

/// Of lengths that are not known, neither may be much longer than the other.
static bool haveEvenPairsOfQueries(StepOpInterface step) {
  constexpr int64_t someLength = 4096;
  SmallVector<OpFoldResult> extents = step.getMixedExtents();
  std::optional<int64_t> nq = getConstantIntValue(extents[0]),
                         nk = getConstantIntValue(extents[1]);
  if (!nq || !nk)
    nq = nk = someLength;
  return haveEvenPairs(*step.getMask(), *nq, *nk);
}

/// Whether the tile that a step adds is one of a block map's list.
static bool isOfList(StepOpInterface step) {
  auto at =
      dyn_cast<Value>(step.getMixedPosition()[step.stepsOverQueries() ? 2 : 3]);
  auto start =
      at ? at.getDefiningOp<affine::AffineApplyOp>() : affine::AffineApplyOp();
  return start && llvm::any_of(start.getMapOperands(), [](Value operand) {
           auto number = operand.getDefiningOp<arith::IndexCastOp>();
           return number && number.getIn().getDefiningOp<tensor::ExtractOp>();
         });
}

/// Whether the step's loop goes over the keys of a tile of queries.
static bool isOverKeys(StepOpInterface step) {
  auto loop = step->getParentOfType<scf::ForOp>();
  auto isOutside = [&](OpFoldResult entry) {
    auto value = dyn_cast<Value>(entry);
    return !value || loop.isDefinedOutsideOfLoop(value);
  };
  SmallVector<OpFoldResult> at = step.getMixedPosition();
  return loop && isOutside(at[2]) && !isOutside(at[3]);
}

/// Says in which order tiles of queries are taken that the mask makes longer or
/// shorter, unless the program does. Tiles of keys are longest first as they
/// come: the last keys are those that the fewest queries see.
static void setOrder(scf::ForallOp forall) {
  StepOpInterface masked;
  bool hasLists = false;
  forall.walk([&](StepOpInterface step) {
    if (step.getMask() && !step.stepsOverQueries() && isOverKeys(step))
      masked = step;
    hasLists |= isOfList(step);
  });
  MLIRContext *context = forall.getContext();
  tile::TileDialect::OrderAttrHelper order(context);
  if ((!masked && !hasLists) || forall.getRank() < 2 ||
      order.isAttrPresent(forall))
    return;
  auto getKind = [&] {
    // How long a list is only the data tell, but it is alike for all heads.
    if (hasLists)
      return tile::OrderKind::HeadsFastest;
    std::optional<ScheduleAttr> schedule = masked.getSchedule();
    if (!schedule || !schedule->getValue().has(ScheduleFeatures::Persistent))
      return tile::OrderKind::LongestFirst;
    return haveEvenPairsOfQueries(masked) ? tile::OrderKind::Pairs
                                          : tile::OrderKind::Snake;
  };
  order.setAttr(forall, tile::OrderAttr::get(context, getKind()));
}

namespace {
struct SplitMask : flash::impl::SplitMaskBase<SplitMask> {
  void runOnOperation() override {
    SmallVector<std::tuple<scf::ForOp, StepOpInterface, Path>> loops;
    getOperation().walk([&](StepOpInterface step) {
      // Loops in a choice are what putLastFirst has made, or arranged
      // otherwise.
      auto loop = dyn_cast<scf::ForOp>(step->getParentOp());
      if (!loop || isa<scf::IfOp>(loop->getParentOp()))
        return;
      if (std::optional<Path> path = getPath(loop, step))
        loops.emplace_back(loop, step, *path);
    });
    for (auto [loop, step, path] : loops)
      Splitter(loop, step, path).run();
    getOperation().walk(setOrder);
  }
};
} // namespace
