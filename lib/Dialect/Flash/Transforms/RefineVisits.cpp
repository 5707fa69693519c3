//===- RefineVisits.cpp - Which tiles a mask leaves to a visit ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/MaskNodes.h"
#include "flash/Analysis/MaskTiles.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace flash {
#define GEN_PASS_DEF_REFINEVISITS
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// Says that a mask leaves no tile out only because the analysis gave up.
static void warnOfAllTiles(Location loc, StepOpInterface step, VisitKind kind) {
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
                      "determine which tiles of "
                   << (kind == VisitKind::Keys      ? "keys"
                       : kind == VisitKind::Queries ? "queries"
                                                    : "queries and keys")
                   << " it leaves out: all are visited, "
                      "which is right but slow";
}

/// Whether `value` is known to be a multiple of `factor`: a constant, an affine
/// expression that is known to be one, or the position of a loop or a visit
/// that starts at a multiple and steps by one.
static bool isMultipleOf(OpFoldResult value, int64_t factor) {
  // The size of a tile without rows.
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
  if (auto kernel = argument
                        ? dyn_cast<KernelOp>(argument.getOwner()->getParentOp())
                        : KernelOp())
    return argument.getArgNumber() < kernel.getSteps().size() &&
           kernel.getSteps()[argument.getArgNumber()] % factor == 0;
  if (auto visit = argument
                       ? dyn_cast<VisitOp>(argument.getOwner()->getParentOp())
                       : VisitOp())
    return argument == visit.getAt() && visit.getTo() &&
           isMultipleOf(getAsOpFoldResult(visit.getFrom()), factor) &&
           isMultipleOf(getAsOpFoldResult(visit.getBy()), factor);
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

namespace {
/// What the dimension i0 and the symbols of bounds on tiles are multiples of.
/// With it, a quotient does not depend on the last bits of a number that is
/// added in front of the division. So the full tiles of a causal mask, say, end
/// at the last tile that is visited, which can be seen from their bounds.
struct Multiples {
  int64_t ofStart;
  int64_t ofSizes[2];
  /// Whether i0 is less than the first size.
  bool isBeforeEnd;

  AffineExpr scale(AffineExpr expr) const;
  AffineExpr simplify(AffineExpr expr) const;
  void simplify(SmallVectorImpl<TileBound> &bounds) const;
};
} // namespace

/// The expression with a multiple of a number instead of each number that is
/// known to be one.
AffineExpr Multiples::scale(AffineExpr expr) const {
  MLIRContext *context = expr.getContext();
  AffineExpr dims[3], symbols[2];
  for (unsigned i = 0; i < 3; ++i)
    dims[i] = getAffineDimExpr(i, context) * (i == 2 ? ofStart : 1);
  for (unsigned i = 0; i < 2; ++i)
    symbols[i] = getAffineSymbolExpr(i, context) * ofSizes[i];
  return expr.replaceDimsAndSymbols(dims, symbols);
}

AffineExpr Multiples::simplify(AffineExpr expr) const {
  auto op = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!op)
    return expr;
  AffineExprKind kind = op.getKind();
  AffineExpr lhs = simplify(op.getLHS()), rhs = simplify(op.getRHS());
  bool isFloor = kind == AffineExprKind::FloorDiv;
  auto sum = dyn_cast<AffineBinaryOpExpr>(lhs);
  auto divisor = dyn_cast<AffineConstantExpr>(rhs);
  auto added = sum && sum.getKind() == AffineExprKind::Add
                   ? dyn_cast<AffineConstantExpr>(sum.getRHS())
                   : AffineConstantExpr();
  if (added && divisor && (isFloor || kind == AffineExprKind::CeilDiv)) {
    int64_t step = std::gcd(scale(sum.getLHS()).getLargestKnownDivisor(),
                            divisor.getValue());
    lhs = sum.getLHS() +
          (isFloor ? llvm::divideFloorSigned(added.getValue(), step)
                   : llvm::divideCeilSigned(added.getValue(), step)) *
              step;
  }
  return getAffineBinaryOpExpr(kind, lhs, rhs);
}

void Multiples::simplify(SmallVectorImpl<TileBound> &bounds) const {
  for (TileBound &bound : bounds) {
    AffineMap map = bound.map;
    bound.map = AffineMap::get(map.getNumDims(), map.getNumSymbols(),
                               llvm::map_to_vector(map.getResults(),
                                                   [&](AffineExpr result) {
                                                     return simplify(result);
                                                   }),
                               map.getContext());
    if (!bound.guard || !isBeforeEnd)
      continue;
    // A whole tile is in front of the end.
    AffineExpr behind = getAffineSymbolExpr(0, map.getContext()) -
                        getAffineDimExpr(2, map.getContext());
    int64_t least = std::gcd(ofStart, ofSizes[0]);
    bool holds = llvm::all_of(
        llvm::zip_equal(bound.guard.getConstraints(), bound.guard.getEqFlags()),
        [&](auto constraint) {
          auto [expr, isEquality] = constraint;
          auto more = dyn_cast<AffineConstantExpr>(simplifyAffineExpr(
              expr - behind, /*numDims=*/3, /*numSymbols=*/2));
          return !isEquality && more && more.getValue() >= -least;
        });
    if (holds)
      bound.guard = IntegerSet();
  }
}

/// Whether the classification of tiles holds for the tiles of the step: they
/// are where the visit is, and start at multiples of their size.
static bool isAligned(VisitOp visit, StepOpInterface step) {
  auto isOutside = [&](OpFoldResult entry) {
    auto value = dyn_cast<Value>(entry);
    return !value || !visit.getBody().isAncestor(value.getParentRegion());
  };
  RankedTensorType query = step.getQuery().getType(),
                   key = step.getKey().getType();
  if (query.getRank() != 2 || !query.hasStaticShape() ||
      !key.hasStaticShape() || !llvm::all_of(step.getMixedExtents(), isOutside))
    return false;
  VisitKind kind = visit.getKind();
  SmallVector<OpFoldResult> at = step.getMixedPosition();
  // What the visit goes over is its own, and the rest the same for all tiles.
  OpFoldResult own[4];
  switch (kind) {
  case VisitKind::Keys:
    own[3] = visit.getAt();
    break;
  case VisitKind::Queries:
    own[2] = visit.getAt();
    break;
  case VisitKind::Diagonal:
    own[2] = visit.getAt();
    own[3] = visit.getKeyAt();
    break;
  case VisitKind::Batches:
    own[0] = visit.getAt();
    break;
  case VisitKind::Heads:
    own[1] = visit.getAt();
    break;
  }
  for (unsigned i = 0; i < 4; ++i)
    if (own[i] ? at[i] != own[i] : !isOutside(at[i]))
      return false;

  int64_t packedHeads = step.getPackedHeads(),
          queryTile = query.getDimSize(0) / packedHeads,
          keyTile = key.getDimSize(0), tile = visit.getTile();
  bool areTiles = isMultipleOf(getAsOpFoldResult(visit.getFrom()), tile) &&
                  isMultipleOf(getAsOpFoldResult(visit.getBy()), tile);
  switch (kind) {
  case VisitKind::Keys:
    return areTiles && tile == keyTile && isMultipleOf(at[2], queryTile);
  case VisitKind::Queries:
    return areTiles && tile == queryTile && packedHeads == 1 &&
           isMultipleOf(at[3], keyTile);
  case VisitKind::Diagonal:
    return areTiles && packedHeads == 1 && queryTile == tile &&
           keyTile == tile && isMultipleOf(visit.getDistance(), tile);
  case VisitKind::Batches:
  case VisitKind::Heads:
    return isMultipleOf(at[2], queryTile) && isMultipleOf(at[3], keyTile);
  }
  llvm_unreachable("unknown kind of visit");
}

static ArrayAttr getBounds(Builder &b, ArrayRef<TileBound> bounds) {
  if (bounds.empty())
    return {};
  return b.getArrayAttr(
      llvm::map_to_vector(bounds, [&](const TileBound &bound) -> Attribute {
        return TileBoundAttr::get(b.getContext(), AffineMapAttr::get(bound.map),
                                  bound.guard == IntegerSet()
                                      ? IntegerSetAttr()
                                      : IntegerSetAttr::get(bound.guard));
      }));
}

/// The attribute for what the analysis has found, with the sets that are tested
/// at each tile.
static TilesAttr getTiles(Builder &b, const MaskTiles &found, bool areRanges,
                          bool isHull) {
  auto getSets = [&](ArrayRef<IntegerSet> sets) {
    return b.getArrayAttr(
        llvm::map_to_vector(sets, [](IntegerSet set) -> Attribute {
          return IntegerSetAttr::get(set);
        }));
  };
  return TilesAttr::get(b.getContext(), getBounds(b, found.lo),
                        getBounds(b, found.hi),
                        areRanges ? getBounds(b, found.fullLo) : ArrayAttr(),
                        areRanges ? getBounds(b, found.fullHi) : ArrayAttr(),
                        isHull ? getSets(found.visited) : ArrayAttr(),
                        areRanges ? ArrayAttr() : getSets(found.notFull));
}

/// Whether `exist` is the extent, or 0 where no tile is visited.
static bool isExtent(Value exist, OpFoldResult extent) {
  if (auto choice = exist.getDefiningOp<arith::SelectOp>())
    if (isZeroInteger(OpFoldResult(choice.getFalseValue())))
      exist = choice.getTrueValue();
  return isEqualConstantIntOrValue(exist, extent);
}

/// Whether `count` counts all rows that exist of a tile of so many from `start`
/// on, before `end`.
static bool countsExisting(Value count, int64_t rows, OpFoldResult start,
                           OpFoldResult end) {
  using Bounds = ValueBoundsConstraintSet;
  AffineExpr d0 = getAffineDimExpr(0, count.getContext()),
             d1 = getAffineDimExpr(1, count.getContext());
  Bounds::Variable existing(AffineMap::get(2, 0, d1 - d0),
                            ArrayRef<Bounds::Variable>{start, end});
  auto min = count.getDefiningOp<affine::AffineMinOp>();
  if (!min)
    return Bounds::compare(count, Bounds::GE, existing);
  AffineMap map = min.getAffineMap();
  return llvm::all_of(llvm::seq(map.getNumResults()), [&](unsigned i) {
    auto constant = dyn_cast<AffineConstantExpr>(map.getResult(i));
    return constant ? constant.getValue() >= rows
                    : Bounds::compare(
                          Bounds::Variable(map.getSubMap(i), min.getOperands()),
                          Bounds::GE, existing);
  });
}

/// Whether the mask of a step keeps, for queries that exist, only keys that
/// exist, and in a visit of queries, whether queries behind the last one see no
/// other keys than it does.
static bool isBounded(VisitOp visit, StepOpInterface step) {
  std::optional<MaskAttrInterface> mask = step.getMask();
  SmallVector<OpFoldResult> at = step.getMixedPosition(),
                            of = step.getMixedExtents();
  VisitKind kind = visit.getKind();
  if (!mask || (kind != VisitKind::Keys && kind != VisitKind::Queries))
    return false;
  if (at[kind == VisitKind::Keys ? 3 : 2] != OpFoldResult(visit.getAt()))
    return false;
  if (kind == VisitKind::Keys) {
    if (step.getCount() != visit.getRowArgs()[0] ||
        !isExtent(visit.getExist()[0], of[1]))
      return false;
  } else {
    Value count = step.getFixedCount();
    if (!count || !countsExisting(count, step.getKey().getType().getDimSize(0),
                                  at[3], of[1]))
      return false;
  }
  std::optional<int64_t> nq = getConstantIntValue(of[0]),
                         nk = getConstantIntValue(of[1]);
  return keepsOnlyExistingKeys(*mask, nq, nk) &&
         (kind == VisitKind::Keys || seesMostAtEnd(*mask, nq, nk));
}

static void refine(VisitOp visit) {
  StepOpInterface step = visit.getStep();
  if (step)
    visit.setBounded(isBounded(visit, step));
  if (visit.getList() || visit.getTiles() || !step || !isAligned(visit, step))
    return;
  bool hasCount =
      step.getCount() || (visit.getNumRowArgs() > 1 && step.getFixedCount());
  if (!step.getMask() && !hasCount)
    return;
  Builder b(visit.getContext());
  MaskAttrInterface mask =
      step.getMask() ? *step.getMask() : FullAttr::get(b.getContext());
  SmallVector<OpFoldResult> of = step.getMixedExtents();
  std::optional<int64_t> nq = getConstantIntValue(of[0]),
                         nk = getConstantIntValue(of[1]);
  int64_t packedHeads = step.getPackedHeads(),
          queryTile = step.getQuery().getType().getDimSize(0) / packedHeads,
          keyTile = step.getKey().getType().getDimSize(0);
  MaskTiles tiles;
  switch (visit.getKind()) {
  case VisitKind::Queries:
    tiles = computeMaskTiles(transposeMask(mask), keyTile, queryTile, nk, nq);
    break;
  case VisitKind::Diagonal:
    tiles = computeDiagonalTiles(mask, keyTile, nq, nk);
    break;
  default:
    tiles = computeMaskTiles(mask, queryTile, keyTile, nq, nk, packedHeads);
  }
  bool areQueries = visit.getKind() == VisitKind::Queries;
  constexpr int64_t unknown[] = {1, 1};
  ArrayRef<int64_t> ofSizes = visit.getMultiples().value_or(unknown);
  Multiples multiples = {areQueries ? keyTile : queryTile,
                         {ofSizes[areQueries], ofSizes[!areQueries]},
                         visit.getKind() != VisitKind::Diagonal};
  for (SmallVectorImpl<TileBound> *bounds :
       {&tiles.lo, &tiles.hi, &tiles.fullLo, &tiles.fullHi})
    multiples.simplify(*bounds);
  if (tiles.gaveUp)
    warnOfAllTiles(visit.getLoc(), step, visit.getKind());
  bool areRanges =
      !visit.isOfPair() && tiles.visitedIsRange && tiles.fullIsRange;
  visit.setTilesAttr(
      getTiles(b, tiles, areRanges, visit.isOfPair() || !tiles.visitedIsRange));
  // Where all tiles that are visited are full, or none is, nothing is masked.
  if (step.getMask() && areRanges &&
      (tiles.hi.empty() || (tiles.fullLo.empty() && tiles.fullHi.empty()))) {
    step.removeMaskAttr();
    visit.setBounded(false);
  }
  if (visit.getBody().getOps<ContributeOp>().empty())
    return;
  MaskTiles contributors = computeMaskTiles(mask, queryTile, keyTile, nq, nk);
  assert(contributors.exact && contributors.visitedIsRange &&
         "flash-tile-grad checks it");
  visit.setContributorsAttr(
      getTiles(b, contributors, /*areRanges=*/true, /*isHull=*/false));
}

/// If lengths are not known, neither may be much longer than the other.
static bool haveEvenPairsOfQueries(StepOpInterface step) {
  constexpr int64_t someLength = 4096;
  SmallVector<OpFoldResult> extents = step.getMixedExtents();
  std::optional<int64_t> nq = getConstantIntValue(extents[0]),
                         nk = getConstantIntValue(extents[1]);
  if (!nq || !nk)
    nq = nk = someLength;
  return haveEvenPairs(*step.getMask(), *nq, *nk);
}

/// Says in which order tiles of queries are taken that the mask makes longer or
/// shorter, unless the program does. Tiles of keys are longest first as they
/// come: the last keys are those that the fewest queries see.
static void setOrder(KernelOp kernel) {
  StepOpInterface masked;
  bool hasLists = false, isForward = false;
  kernel.walk([&](VisitOp visit) {
    StepOpInterface step = visit.getStep();
    if (step && step.getMask() && visit.getKind() == VisitKind::Keys)
      masked = step;
    hasLists |= visit.getList() && !visit.getRanks();
    isForward |= isa_and_present<OnlineAttentionOp>(step.getOperation());
  });
  if ((!masked && !hasLists) || kernel.getEnds().size() < 2 ||
      kernel.getOrder())
    return;
  auto getOrder = [&] {
    // How long a list is depends on the data, but it is alike for all heads.
    // What counts for attention is that tiles which run at the same time read
    // the same keys.
    if (hasLists)
      return isForward ? TileOrder::Linear : TileOrder::HeadsFastest;
    std::optional<ScheduleAttr> schedule = masked.getSchedule();
    if (!schedule || !schedule->getValue().has(ScheduleFeatures::Persistent) ||
        schedule->getValue().has(ScheduleFeatures::ClaimTiles))
      return TileOrder::LongestFirst;
    return haveEvenPairsOfQueries(masked) ? TileOrder::Pairs : TileOrder::Snake;
  };
  kernel.setOrderAttr(OrderAttr::get(kernel.getContext(), getOrder()));
}

namespace {
struct RefineVisits : flash::impl::RefineVisitsBase<RefineVisits> {
  void runOnOperation() override {
    getOperation().walk(refine);
    getOperation().walk(setOrder);
  }
};
} // namespace
