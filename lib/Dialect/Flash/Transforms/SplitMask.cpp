//===- SplitMask.cpp - Visit only the tiles that hold work ----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop goes over tiles of keys for a tile of queries, or the other way round.
// The latter is the former under the transposed mask, so that what is written
// here of keys and queries holds for it with the words exchanged.
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
/// What a copy of the loop body still has to take care of.
struct StepKind {
  bool masked; ///< Some elements of the tile may be masked.
  bool ragged; ///< Some keys of the tile may not exist.
};

/// Splits one loop over key tiles.
class Splitter {
public:
  Splitter(scf::ForOp loop, StepOpInterface step);
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
  /// Makes a copied step read whole tiles, all of whose keys exist.
  void dropPadding(StepOpInterface copy);
  /// Emits how many of the tiles have all their keys: those before it have, and
  /// none behind them.
  Value countWholeTiles();
  /// The first tile from `tile` on that the loop visits, which may be one
  /// behind its end.
  Value nextVisited(Value tile);
  /// Emits a loop over the tiles [from, to) that carries on the state, unless
  /// it is known to be empty.
  void loopOver(Value from, Value to, Step body);
  void loopOverKeys(Value from, Value to, Step body);
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
  void testEachTile(const MaskTiles &tiles, Value lo, Value hi);

  scf::ForOp loop;
  StepOpInterface step;
  OpBuilder b;
  Location loc;
  int64_t packedHeads, queryTile, keyTile;
  SmallVector<Value> position; ///< (b, h, i) of the query tile.
  SmallVector<Value> extents;  ///< (nq, nk).
  bool ragged;                 ///< Whether some tiles may lack keys.
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

Splitter::Splitter(scf::ForOp loop, StepOpInterface step)
    : loop(loop), step(step), b(loop), loc(loop.getLoc()),
      packedHeads(step.getPackedHeads()),
      queryTile(step.getQuery().getType().getDimSize(0) / packedHeads),
      keyTile(step.getKey().getType().getDimSize(0)),
      ragged(static_cast<bool>(step.getCount())),
      state(loop.getInitArgs().begin(), loop.getInitArgs().end()) {
  if (step.stepsOverQueries())
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
  if (bounds.size() == 1 && bounds[0].guard == IntegerSet())
    return extremum(!outerIsMin, bounds[0].map, operands);
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

Value Splitter::countWholeTiles() {
  // A tile at j has min(n - j, keyTile) of n keys: whatever the loop's end is,
  // this says n.
  auto keys = step.getCount().getDefiningOp<affine::AffineMinOp>();
  if (!keys)
    return constant(0);
  AffineMap map = keys.getMap();
  SmallVector<OpFoldResult> operands;
  AffineExpr tileStart;
  for (auto [i, operand] : llvm::enumerate(keys.getOperands())) {
    if (operand == loop.getInductionVar())
      tileStart = i < map.getNumDims()
                      ? b.getAffineDimExpr(i)
                      : b.getAffineSymbolExpr(i - map.getNumDims());
    else if (!loop.isDefinedOutsideOfLoop(operand))
      return constant(0);
    operands.push_back(operand);
  }
  bool isOfTile = false;
  SmallVector<AffineExpr> counts;
  for (AffineExpr result : map.getResults()) {
    auto most = dyn_cast<AffineConstantExpr>(result);
    if (most && most.getValue() == keyTile) {
      isOfTile = true;
      continue;
    }
    AffineExpr count =
        tileStart ? simplifyAffineExpr(result + tileStart, map.getNumDims(),
                                       map.getNumSymbols())
                  : AffineExpr();
    bool dependsOnTile = false;
    if (count)
      count.walk([&](AffineExpr part) { dependsOnTile |= part == tileStart; });
    if (!count || dependsOnTile)
      return constant(0);
    counts.push_back(count);
  }
  if (!isOfTile || counts.empty())
    return constant(0);
  for (OpFoldResult &operand : operands)
    if (operand == OpFoldResult(loop.getInductionVar()))
      operand = b.getIndexAttr(0); // In no count.
  Value count = extremum(/*isMin=*/true,
                         AffineMap::get(map.getNumDims(), map.getNumSymbols(),
                                        counts, b.getContext()),
                         operands);
  return apply(b.getAffineDimExpr(0).floorDiv(keyTile), count);
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

void Splitter::dropPadding(StepOpInterface copy) {
  for (OpOperand *operand : copy.getSteppedTiles()) {
    tensor::ExtractSliceOp slice =
        getPaddedSlice(operand->get(), copy.getCount());
    if (!slice)
      continue;
    SmallVector<OpFoldResult> sizes = slice.getMixedSizes();
    for (OpFoldResult &size : sizes)
      if (isa<Value>(size))
        size = b.getIndexAttr(keyTile);
    OpBuilder::InsertionGuard guard(b);
    Operation *pad = operand->get().getDefiningOp();
    b.setInsertionPoint(pad);
    operand->set(tensor::ExtractSliceOp::create(
        b, loc, cast<RankedTensorType>(operand->get().getType()),
        slice.getSource(), slice.getMixedOffsets(), sizes,
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
      dropPadding(copy);
    copy.getCountMutable().clear();
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
  loopOverKeys(apply(toKey, nextVisited(from)), apply(toKey, nextVisited(to)),
               body);
}

void Splitter::loopOverKeys(Value from, Value to, Step body) {
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
    loopOverKeys(firstKey, isLastOnly ? keyBehind(firstKey) : endKey,
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
static void warnOfAllTiles(Location loc, StepOpInterface step) {
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
                   << (step.stepsOverQueries() ? "queries" : "keys")
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

/// Otherwise one loop covers the hull and asks at each tile.
void Splitter::testEachTile(const MaskTiles &tiles, Value lo, Value hi) {
  loopOver(lo, hi, [&](Value key, ValueRange carried) {
    Value tile = apply(b.getAffineDimExpr(0).floorDiv(keyTile), key);
    shareTiles(key);
    SmallVector<Value> point(position);
    point.push_back(tile);
    auto choiceOf = [&](StepKind kind) {
      return
          [this, key, carried, kind] { return copyStep(key, carried, kind); };
    };
    auto unmasked = [&] {
      if (!ragged)
        return choiceOf({/*masked=*/false, /*ragged=*/false})();
      Value isWhole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                            tile, wholeTiles);
      return choose(isWhole, choiceOf({/*masked=*/false, /*ragged=*/false}),
                    choiceOf({/*masked=*/false, /*ragged=*/true}));
    };
    auto visit = [&] {
      return choose(isInAny(tiles.notFull, point),
                    choiceOf({/*masked=*/true, ragged}), unmasked);
    };
    if (tiles.visitedIsRange)
      return visit();
    return choose(isInAny(tiles.visited, point), visit,
                  [&] { return SmallVector<Value>(carried); });
  });
}

void Splitter::run() {
  SmallVector<OpFoldResult> at = step.getMixedPosition(),
                            of = step.getMixedExtents();
  mask = step.getMask() ? *step.getMask() : FullAttr::get(b.getContext());
  if (step.stepsOverQueries()) {
    std::swap(at[2], at[3]);
    std::swap(of[0], of[1]);
    mask = transposeMask(mask);
  }
  for (OpFoldResult entry : ArrayRef(at).drop_back())
    position.push_back(getValueOrCreateConstantIndexOp(b, loc, entry));
  for (OpFoldResult entry : of)
    extents.push_back(getValueOrCreateConstantIndexOp(b, loc, entry));
  MaskTiles tiles =
      computeMaskTiles(mask, queryTile, keyTile, getConstantIntValue(of[0]),
                       getConstantIntValue(of[1]), packedHeads);
  if (tiles.gaveUp)
    warnOfAllTiles(loc, step);

  OpFoldResult start = getAsOpFoldResult(loop.getLowerBound()),
               stride = getAsOpFoldResult(loop.getStep());
  if (!isZeroInteger(start) || getConstantIntValue(stride) != keyTile) {
    AffineExpr toTile = b.getAffineDimExpr(0).floorDiv(keyTile);
    firstTile = apply(toTile, start);
    tileStep = apply(toTile, stride);
  }

  Value endTile = apply(b.getAffineDimExpr(0).ceilDiv(keyTile),
                        getAsOpFoldResult(loop.getUpperBound()));
  if (ragged)
    wholeTiles = countWholeTiles();
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
  if (auto apply = cast<Value>(value).getDefiningOp<affine::AffineApplyOp>())
    return apply.getAffineMap().getResult(0).isMultipleOf(factor);
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

/// Whether `loop` visits the keys or queries over which `step` goes one whole
/// tile at a time, all of them or every n-th, for a tile of the others: what
/// the classification of tiles supposes.
static bool isTileLoop(scf::ForOp loop, StepOpInterface step) {
  // What is the same for all tiles is asked for before the loop.
  auto isOutside = [&](OpFoldResult entry) {
    auto value = dyn_cast<Value>(entry);
    return !value || loop.isDefinedOutsideOfLoop(value);
  };
  RankedTensorType query = step.getQuery().getType(),
                   key = step.getKey().getType();
  if (!llvm::hasSingleElement(loop.getOps<StepOpInterface>()) ||
      query.getRank() != 2 || !query.hasStaticShape() || !key.hasStaticShape())
    return false;
  SmallVector<OpFoldResult> at = step.getMixedPosition();
  int64_t fixedTile = query.getDimSize(0) / step.getPackedHeads(),
          steppedTile = key.getDimSize(0);
  if (step.stepsOverQueries()) {
    std::swap(at[2], at[3]);
    std::swap(fixedTile, steppedTile);
  }
  return llvm::all_of(ArrayRef(at).drop_back(), isOutside) &&
         llvm::all_of(step.getMixedExtents(), isOutside) &&
         isMultipleOf(getAsOpFoldResult(loop.getLowerBound()), steppedTile) &&
         isMultipleOf(getAsOpFoldResult(loop.getStep()), steppedTile) &&
         at[3] == OpFoldResult(loop.getInductionVar()) &&
         isMultipleOf(at[2], fixedTile);
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

/// Says in which order tiles of queries are taken that the mask makes longer or
/// shorter, unless the program does. Tiles of keys are longest first as they
/// come: the last keys are those that the fewest queries see.
static void setOrder(scf::ForallOp forall) {
  StepOpInterface masked;
  bool hasLists = false;
  forall.walk([&](StepOpInterface step) {
    if (step.getMask() && !step.stepsOverQueries())
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
    SmallVector<std::pair<scf::ForOp, StepOpInterface>> loops;
    getOperation().walk([&](StepOpInterface step) {
      // Loops in a choice are what putLastFirst has made, or arranged
      // otherwise.
      auto loop = dyn_cast<scf::ForOp>(step->getParentOp());
      if (loop && !isa<scf::IfOp>(loop->getParentOp()) &&
          isTileLoop(loop, step) && (step.getMask() || step.getCount()))
        loops.emplace_back(loop, step);
    });
    for (auto [loop, step] : loops)
      Splitter(loop, step).run();
    getOperation().walk(setOrder);
  }
};
} // namespace
