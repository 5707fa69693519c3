//===- MaskEvaluate.cpp - Masks and their tiles at a point ----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/MaskNodes.h"
#include "flash/Analysis/MaskTiles.h"

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

int64_t flash::evaluate(AffineExpr expr, ArrayRef<int64_t> dims,
                        ArrayRef<int64_t> symbols) {
  switch (expr.getKind()) {
  case AffineExprKind::Constant:
    return cast<AffineConstantExpr>(expr).getValue();
  case AffineExprKind::DimId:
    return dims[cast<AffineDimExpr>(expr).getPosition()];
  case AffineExprKind::SymbolId:
    return symbols[cast<AffineSymbolExpr>(expr).getPosition()];
  default:
    break;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t lhs = evaluate(binary.getLHS(), dims, symbols);
  int64_t rhs = evaluate(binary.getRHS(), dims, symbols);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return lhs + rhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  case AffineExprKind::Mod:
    return llvm::mod(lhs, rhs);
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(lhs, rhs);
  case AffineExprKind::CeilDiv:
    return llvm::divideCeilSigned(lhs, rhs);
  default:
    llvm_unreachable("not a binary affine expression");
  }
}

bool flash::contains(IntegerSet set, ArrayRef<int64_t> dims,
                     ArrayRef<int64_t> symbols) {
  for (auto [expr, isEq] : llvm::zip(set.getConstraints(), set.getEqFlags())) {
    int64_t value = evaluate(expr, dims, symbols);
    if (isEq ? value != 0 : value < 0)
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// MaskTiles
//===----------------------------------------------------------------------===//

/// The least or greatest, over the bounds that count, of the other extreme over
/// a map's results.
static int64_t getBound(ArrayRef<TileBound> bounds, bool isLeast, int64_t none,
                        ArrayRef<int64_t> dims, ArrayRef<int64_t> symbols) {
  std::optional<int64_t> result;
  for (TileBound bound : bounds) {
    if (bound.guard && !contains(bound.guard, dims, symbols))
      continue;
    std::optional<int64_t> value;
    for (AffineExpr expr : bound.map.getResults()) {
      int64_t next = evaluate(expr, dims, symbols);
      value = !value    ? next
              : isLeast ? std::max(*value, next)
                        : std::min(*value, next);
    }
    result = !result   ? *value
             : isLeast ? std::min(*result, *value)
                       : std::max(*result, *value);
  }
  return result.value_or(none);
}

TileRange MaskTiles::getRange(int64_t b, int64_t h, int64_t i0, int64_t nq,
                              int64_t nk) const {
  int64_t dims[] = {b, h, i0}, symbols[] = {nq, nk};
  TileRange range;
  range.lo = getBound(lo, /*isLeast=*/true, 0, dims, symbols);
  range.hi = getBound(hi, /*isLeast=*/false, 0, dims, symbols);
  range.hi = std::max(range.lo, range.hi);
  range.fullLo = range.fullHi = range.lo;
  if (!fullIsRange)
    return range;
  range.fullLo = getBound(fullLo, /*isLeast=*/false, range.lo, dims, symbols);
  range.fullLo = std::clamp(range.fullLo, range.lo, range.hi);
  range.fullHi = getBound(fullHi, /*isLeast=*/true, range.hi, dims, symbols);
  range.fullHi = std::clamp(range.fullHi, range.fullLo, range.hi);
  return range;
}

std::pair<int64_t, int64_t> MaskTiles::getDistances(int64_t nq,
                                                    int64_t nk) const {
  int64_t dims[] = {0, 0, 0}, symbols[] = {nq, nk};
  return {getBound(distanceLo, /*isLeast=*/true, 0, dims, symbols),
          getBound(distanceHi, /*isLeast=*/false, 0, dims, symbols)};
}

bool MaskTiles::isVisited(int64_t b, int64_t h, int64_t i0, int64_t t,
                          int64_t nq, int64_t nk) const {
  return llvm::any_of(visited, [&](IntegerSet set) {
    return contains(set, {b, h, i0, t}, {nq, nk});
  });
}

bool MaskTiles::isFull(int64_t b, int64_t h, int64_t i0, int64_t t, int64_t nq,
                       int64_t nk) const {
  return llvm::none_of(notFull, [&](IntegerSet set) {
    return contains(set, {b, h, i0, t}, {nq, nk});
  });
}

void MaskTiles::print(raw_ostream &os) const {
  auto printBounds = [&](StringRef name, ArrayRef<TileBound> bounds) {
    for (TileBound bound : bounds) {
      os << "  " << name << " " << bound.map;
      if (bound.guard)
        bound.guard.print(os << " if ");
      os << "\n";
    }
  };
  os << "tiles" << (exact ? "" : gaveUp ? " (gave up)" : " (inexact)") << "\n";
  printBounds(visitedIsRange ? "lo     =" : "lo     <=", lo);
  printBounds(visitedIsRange ? "hi     =" : "hi     >=", hi);
  printBounds("fullLo =", fullLo);
  printBounds("fullHi =", fullHi);
  printBounds("distances from", distanceLo);
  printBounds("distances to  ", distanceHi);
  auto printSets = [&](StringRef name, ArrayRef<IntegerSet> sets) {
    for (IntegerSet set : sets) {
      set.print(os << "  " << name << " ");
      os << "\n";
    }
  };
  printSets("visited ", visited);
  printSets("not full", notFull);
}

//===----------------------------------------------------------------------===//
// Counting
//===----------------------------------------------------------------------===//

namespace {
/// Counts the keys of one query that a mask keeps.
class KeyCounter {
public:
  /// Looks at `budget` parts of the mask in all, then counts half of the keys
  /// that it does not know of.
  KeyCounter(MaskAttrInterface mask, int64_t nq, int64_t nk, int64_t budget)
      : nodes(getMaskNodes(mask)), found(nodes.size()), symbols{nq, nk},
        budget(budget), isRange(nodes.size() == 1 && isRangeOfKeys(nodes[0])) {}

  /// Counts among the first `numKeys` keys, all of a tile if any is kept.
  int64_t count(int64_t b, int64_t h, int64_t i, int64_t numKeys,
                int64_t tile = 1) {
    dims[0] = b;
    dims[1] = h;
    dims[2] = i;
    if (tile == 1)
      return countKept({0, numKeys - 1});
    int64_t keys = 0;
    for (int64_t first = 0; first < numKeys; first += tile) {
      Interval ofTile = {first, std::min(first + tile, numKeys) - 1};
      if (countKept(ofTile) > 0)
        keys += ofTile.hi - ofTile.lo + 1;
    }
    return keys;
  }
  bool isOverBudget() const { return budget < 0; }
  bool dependsOn(unsigned dim) const {
    return llvm::any_of(nodes, [&](const MaskNode &node) {
      return node.kind == MaskForm::Kind::Set &&
             llvm::any_of(node.set.getConstraints(), [&](AffineExpr expr) {
               return expr.isFunctionOfDim(dim);
             });
    });
  }

private:
  struct Interval {
    int64_t lo, hi; // Both inclusive.
  };
  enum class Part : char { None, Some, All };

  /// The values of the expression lie in this interval, which for a single key
  /// is its value.
  Interval bound(AffineExpr expr, Interval keys) const;
  /// Which of the keys a set, or the mask, contains; not Some for a single key.
  Part getPart(IntegerSet set, Interval keys) const;
  Part getPart(Interval keys);
  int64_t countKept(Interval keys) {
    std::optional<int64_t> known;
    if (isRange && !isOverBudget())
      known = countRange(keys);
    return known ? *known : count(keys);
  }
  /// Halves the keys until the mask contains each half or nothing of it.
  int64_t count(Interval keys);
  /// Whether the keys of each query are a range, by constraints that are linear
  /// in the key.
  static bool isRangeOfKeys(const MaskNode &node);
  /// Counts such a range from its ends; none where numbers are too large for
  /// it.
  std::optional<int64_t> countRange(Interval keys);

  std::vector<MaskNode> nodes;
  std::vector<Part> found;
  int64_t symbols[2], dims[3];
  int64_t budget;
  bool isRange;
};
} // namespace

bool KeyCounter::isRangeOfKeys(const MaskNode &node) {
  constexpr unsigned key = 3;
  if (node.kind != MaskForm::Kind::Set)
    return false;
  bool isLinear = true;
  for (AffineExpr constraint : node.set.getConstraints())
    constraint.walk([&](AffineExpr expr) {
      auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
      if (binary && expr.getKind() != AffineExprKind::Add &&
          expr.getKind() != AffineExprKind::Mul)
        isLinear &= !binary.isFunctionOfDim(key);
    });
  return isLinear;
}

/// Sums and products that stay at the ends of their type.
static int64_t saturate(int64_t value, bool overflows, bool isNegative) {
  if (!overflows)
    return value;
  return isNegative ? std::numeric_limits<int64_t>::min()
                    : std::numeric_limits<int64_t>::max();
}
static int64_t add(int64_t x, int64_t y) {
  int64_t sum;
  bool overflows = llvm::AddOverflow(x, y, sum);
  return saturate(sum, overflows, x < 0);
}
static int64_t multiply(int64_t x, int64_t y) {
  int64_t product;
  bool overflows = llvm::MulOverflow(x, y, product);
  return saturate(product, overflows, (x < 0) != (y < 0));
}

KeyCounter::Interval KeyCounter::bound(AffineExpr expr, Interval keys) const {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return {constant.getValue(), constant.getValue()};
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return {symbols[symbol.getPosition()], symbols[symbol.getPosition()]};
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    if (dim.getPosition() == 3)
      return keys;
    return {dims[dim.getPosition()], dims[dim.getPosition()]};
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Interval lhs = bound(binary.getLHS(), keys),
           rhs = bound(binary.getRHS(), keys);
  auto monotonic = [&](auto apply) -> Interval {
    int64_t ends[] = {apply(lhs.lo, rhs.lo), apply(lhs.lo, rhs.hi),
                      apply(lhs.hi, rhs.lo), apply(lhs.hi, rhs.hi)};
    auto [least, most] = std::minmax_element(std::begin(ends), std::end(ends));
    return {*least, *most};
  };
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return {add(lhs.lo, rhs.lo), add(lhs.hi, rhs.hi)};
  case AffineExprKind::Mul:
    return monotonic(multiply);
  case AffineExprKind::FloorDiv:
    return monotonic(
        [](int64_t x, int64_t y) { return llvm::divideFloorSigned(x, y); });
  case AffineExprKind::CeilDiv:
    return monotonic(
        [](int64_t x, int64_t y) { return llvm::divideCeilSigned(x, y); });
  default:
    // A remainder grows until its divisor, which is a constant, wraps it round.
    if (llvm::divideFloorSigned(lhs.lo, rhs.lo) ==
        llvm::divideFloorSigned(lhs.hi, rhs.lo))
      return {llvm::mod(lhs.lo, rhs.lo), llvm::mod(lhs.hi, rhs.lo)};
    return {0, rhs.lo - 1};
  }
}

KeyCounter::Part KeyCounter::getPart(IntegerSet set, Interval keys) const {
  Part part = Part::All;
  for (auto [expr, isEq] : llvm::zip(set.getConstraints(), set.getEqFlags())) {
    auto [lo, hi] = bound(expr, keys);
    if (hi < 0 || (isEq && lo > 0))
      return Part::None;
    if (lo < 0 || (isEq && hi > 0))
      part = Part::Some;
  }
  return part;
}

KeyCounter::Part KeyCounter::getPart(Interval keys) {
  budget -= nodes.size();
  for (auto [index, node] : llvm::enumerate(nodes)) {
    Part &result = found[index];
    if (node.kind == MaskForm::Kind::Set) {
      result = getPart(node.set, keys);
      continue;
    }
    // The least of an intersection's parts, the greatest of a union's.
    bool isUnion = node.kind == MaskForm::Kind::Union;
    result = isUnion ? Part::None : Part::All;
    for (unsigned part : node.parts)
      result = isUnion ? std::max(result, found[part])
                       : std::min(result, found[part]);
  }
  return found.back();
}

int64_t KeyCounter::count(Interval keys) {
  if (keys.lo > keys.hi)
    return 0;
  int64_t size = keys.hi - keys.lo + 1;
  if (isOverBudget())
    return size / 2;
  Part part = getPart(keys);
  if (part != Part::Some)
    return part == Part::All ? size : 0;
  int64_t middle = keys.lo + (keys.hi - keys.lo) / 2;
  return count({keys.lo, middle}) + count({middle + 1, keys.hi});
}

std::optional<int64_t> KeyCounter::countRange(Interval keys) {
  constexpr int64_t largest = int64_t(1) << 60;
  --budget;
  auto [lo, hi] = keys;
  const IntegerSet &set = nodes.front().set;
  for (auto [expr, isEq] : llvm::zip(set.getConstraints(), set.getEqFlags())) {
    int64_t first = bound(expr, {0, 0}).lo, second = bound(expr, {1, 1}).lo;
    if (std::abs(first) > largest || std::abs(second) > largest)
      return std::nullopt;
    int64_t slope = second - first;
    if (slope == 0 && (first < 0 || (isEq && first > 0)))
      return 0;
    if (slope == 0)
      continue;
    // Equal is at least and at most.
    if (slope > 0 || isEq)
      lo = std::max(lo, slope > 0 ? llvm::divideCeilSigned(-first, slope)
                                  : llvm::divideCeilSigned(first, -slope));
    if (slope < 0 || isEq)
      hi = std::min(hi, slope < 0 ? llvm::divideFloorSigned(first, -slope)
                                  : llvm::divideFloorSigned(-first, slope));
  }
  return std::max<int64_t>(hi - lo + 1, 0);
}

/// The greatest magnitude of the value; none if that or one it is computed from
/// does not fit in 32 bits.
static std::optional<int64_t> getMagnitude(AffineExpr expr,
                                           ArrayRef<int64_t> mostDims,
                                           ArrayRef<int64_t> mostSymbols) {
  int64_t most;
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    most = std::abs(
        std::max(constant.getValue(), -std::numeric_limits<int64_t>::max()));
  } else if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    most = mostSymbols[symbol.getPosition()];
  } else if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    most = mostDims[dim.getPosition()];
  } else {
    auto binary = cast<AffineBinaryOpExpr>(expr);
    auto lhs = getMagnitude(binary.getLHS(), mostDims, mostSymbols),
         rhs = getMagnitude(binary.getRHS(), mostDims, mostSymbols);
    if (!lhs || !rhs)
      return std::nullopt;
    most = expr.getKind() == AffineExprKind::Add   ? *lhs + *rhs
           : expr.getKind() == AffineExprKind::Mul ? *lhs * *rhs
           : expr.getKind() == AffineExprKind::Mod ? *rhs
                                                   : *lhs / *rhs + 1;
  }
  if (most > std::numeric_limits<int32_t>::max())
    return std::nullopt;
  return most;
}

bool flash::fitsIn32Bits(AffineExpr expr, ArrayRef<int64_t> mostDims,
                         ArrayRef<int64_t> mostSymbols) {
  return getMagnitude(expr, mostDims, mostSymbols).has_value();
}

std::optional<int64_t> flash::countUnmasked(MaskAttrInterface mask,
                                            MaskSizes sizes,
                                            ArrayRef<int64_t> lengths) {
  constexpr int64_t budget = int64_t(1) << 27;
  KeyCounter counter(mask, sizes.queries, sizes.keys, budget);
  int64_t numB = counter.dependsOn(0) || !lengths.empty()
                     ? sizes.batch
                     : std::min<int64_t>(sizes.batch, 1);
  int64_t numH =
      counter.dependsOn(1) ? sizes.heads : std::min<int64_t>(sizes.heads, 1);
  int64_t count = 0;
  for (int64_t b = 0; b < numB; ++b) {
    int64_t keys = lengths.empty()
                       ? sizes.keys
                       : std::clamp<int64_t>(lengths[b], 0, sizes.keys);
    for (int64_t h = 0; h < numH; ++h)
      for (int64_t i = 0; i < sizes.queries && !counter.isOverBudget(); ++i)
        count += counter.count(b, h, i, keys);
  }
  if (counter.isOverBudget())
    return std::nullopt;
  if (numB)
    count *= sizes.batch / numB;
  if (numH)
    count *= sizes.heads / numH;
  return count;
}

/// A look at some queries must not take longer than the rest of compiling.
static constexpr int64_t sampleBudget = int64_t(1) << 22;

/// Looks at a query in each part of them, at its middle or its first one, and
/// at which tiles have keys of it.
static KeysOfQuery sampleQueries(MaskAttrInterface mask, int64_t nq, int64_t nk,
                                 bool atMiddle, int64_t tile) {
  int64_t samples = std::min<int64_t>(nq, 64);
  KeyCounter counter(mask, nq, nk, sampleBudget);
  int64_t keys = 0, queries = 0, most = 0;
  for (int64_t sample = 0; sample < samples; ++sample) {
    int64_t query = (2 * sample + atMiddle) * nq / (2 * samples);
    int64_t count = counter.count(/*b=*/0, /*h=*/0, query, nk, tile);
    keys += count;
    queries += count != 0;
    most = std::max(most, count);
  }
  return {queries ? keys / queries : 0, most};
}

KeysOfQuery flash::estimateKeysOfQuery(MaskAttrInterface mask, int64_t nq,
                                       int64_t nk, int64_t tile) {
  return sampleQueries(mask, nq, nk, /*atMiddle=*/true, tile);
}

KeysOfQuery flash::estimateQueriesOfKey(MaskAttrInterface mask, int64_t nq,
                                        int64_t nk, int64_t tile) {
  return sampleQueries(transposeMask(mask), nk, nq, /*atMiddle=*/false, tile);
}

bool flash::haveEvenPairs(MaskAttrInterface mask, int64_t nq, int64_t nk) {
  constexpr int64_t samples = 64, partsOfMean = 20;
  KeyCounter counter(mask, nq, nk, sampleBudget);
  SmallVector<int64_t> sums;
  int64_t all = 0;
  for (int64_t sample = 0; sample < samples && nq > 0; ++sample) {
    int64_t query = (2 * sample + 1) * nq / (4 * samples);
    sums.push_back(counter.count(/*b=*/0, /*h=*/0, query, nk) +
                   counter.count(/*b=*/0, /*h=*/0, nq - 1 - query, nk));
    all += sums.back();
  }
  // The mean distance from the mean, in samples squared.
  int64_t distances = 0;
  for (int64_t sum : sums)
    distances += std::abs(sum * samples - all);
  return distances * partsOfMean <= all * samples;
}
