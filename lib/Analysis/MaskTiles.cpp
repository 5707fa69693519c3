//===- MaskTiles.cpp - Which key tiles a mask touches ---------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile is visited if some (i, j) of it lies in the mask, and not full if some
// (i, j) of it lies in the complement. Each is a union of systems over i, j and
// the divisions in the mask; projecting those out leaves constraints on the
// tile.
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/MaskTiles.h"

#include "NormalForm.h"
#include "Projection.h"
#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Debug.h"
#include <numeric>

#define DEBUG_TYPE "flash-mask-tiles"

using namespace mlir;
using namespace flash;
using namespace flash::detail;

namespace {
/// Columns of a row. The start of the query tile is Q * kFixed: knowing that it
/// is a multiple of Q is what makes bounds of static shapes short. Along a
/// diagonal that is the distance from the key tile to the query tile.
enum Column : unsigned { kOne, kB, kH, kFixed, kT, kNq, kNk, kEnd };

/// What the tiles that are classified have in common.
enum class Path { OfQueryTile, Diagonal };

class Analysis {
public:
  /// Tiles are of `heads` heads; 1 where the mask does not depend on heads.
  Analysis(MLIRContext *context, Path path, int64_t Q, int64_t K,
           std::optional<int64_t> nq, std::optional<int64_t> nk, int64_t heads)
      : context(context), path(path), Q(Q), K(K), heads(heads), nq(nq), nk(nk),
        projector(makeProjector(Projector::Method::Exact)) {}

  MaskTiles run(MaskAttrInterface mask);
  bool keepsOnlyExistingKeys(MaskAttrInterface mask);

private:
  using Union = SmallVector<Conjunct>;

  using Terms = std::initializer_list<std::pair<Column, int64_t>>;

  /// A row that takes known lengths as constants.
  Row makeRow(Terms terms) const;
  /// The number of the tile of queries, or of keys, times `factor`, and
  /// `terms`.
  Row makeRowOfTile(bool ofQueries, int64_t factor, Terms terms = {}) const;
  /// Not negative where the tile is not before the first one, or not behind the
  /// last one.
  Row getFirstTileRow(bool ofQueries) const {
    return makeRowOfTile(ofQueries, 1);
  }
  Row getLastTileRow(bool ofQueries) const {
    return ofQueries ? makeRowOfTile(true, -Q, {{kNq, 1}, {kOne, -1}})
                     : makeRowOfTile(false, -K, {{kNk, 1}, {kOne, -1}});
  }
  SmallVector<Row> getContextRows() const;
  NormalForm getNormalForm(ArrayRef<MaskNode> nodes, const System &tile) const;
  Projector makeProjector(Projector::Method method) const {
    return Projector(kEnd - 1, getContextRows(), method);
  }
  System getTile();
  void dropLargeRows(Union &result);
  /// The tiles with a pair of the mask, or of its complement. `facts` are known
  /// of the tiles that are classified.
  Union project(NormalForm &form, bool isComplement, ArrayRef<Row> facts = {});

  std::pair<AffineExpr, int64_t> getScaledExpr(ArrayRef<int64_t> row) const;
  AffineExpr getQuotient(ArrayRef<int64_t> num, int64_t den) const;
  IntegerSet getSet(ArrayRef<Row> rows, unsigned numDims) const;
  AffineExpr getLowerBound(const Row &row, Column column = kT) const;
  AffineExpr getUpperBound(const Row &row, Column column = kT) const;
  /// Facts about the distance of some tile of queries and some tile of keys.
  SmallVector<Row> getDistanceRows() const {
    return {makeRow({{kNq, 1}, {kFixed, -Q}, {kOne, -1}}),
            makeRow({{kNk, 1}, {kFixed, K}, {kOne, -1}})};
  }
  void setVisitedRange(const Union &visited, MaskTiles &tiles);
  void setDistances(const Union &visited, MaskTiles &tiles) const;
  void setFullRange(const Union &notFull, MaskTiles &tiles) const;

  MLIRContext *context;
  Path path;
  int64_t Q, K, heads;
  std::optional<int64_t> nq, nk;
  Projector projector;
  bool dropsRows = false;
};

/// The constraints of a disjunct by their effect on the key tile.
struct Split {
  SmallVector<Row> lower, upper, guard;
  /// False if a constraint bounds a quotient of the tile.
  bool isInterval = true;

  Split(const Conjunct &conjunct, const Projector &projector) {
    for (const Row &row : conjunct) {
      int64_t slope = Projector::at(row, kT);
      if (projector.hasDivisionOf(row, kT))
        isInterval = false;
      else
        (slope > 0 ? lower : slope < 0 ? upper : guard).push_back(row);
    }
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Systems
//===----------------------------------------------------------------------===//

Row Analysis::makeRow(Terms terms) const {
  Row row(kEnd);
  for (auto [column, value] : terms) {
    if (column == kNq && nq)
      row[kOne] += value * *nq;
    else if (column == kNk && nk)
      row[kOne] += value * *nk;
    else
      row[column] += value;
  }
  return row;
}

Row Analysis::makeRowOfTile(bool ofQueries, int64_t factor, Terms terms) const {
  Row row = makeRow(terms);
  bool isFixed = path == Path::OfQueryTile && ofQueries;
  row[isFixed ? kFixed : kT] += factor;
  if (path == Path::Diagonal && !ofQueries)
    row[kFixed] -= factor;
  return row;
}

/// Facts about every tile: it has a query and a key.
SmallVector<Row> Analysis::getContextRows() const {
  return {makeRow({{kB, 1}}),
          makeRow({{kH, 1}}),
          getFirstTileRow(/*ofQueries=*/true),
          getLastTileRow(/*ofQueries=*/true),
          getFirstTileRow(/*ofQueries=*/false),
          getLastTileRow(/*ofQueries=*/false)};
}

/// The pairs of a tile; existentials 0 and 1 are i and j, and of several heads
/// the next one is h.
System Analysis::getTile() {
  System tile;
  auto addRange = [&](bool ofQueries, unsigned var) {
    int64_t size = ofQueries ? Q : K;
    Column length = ofQueries ? kNq : kNk;
    Row plus(var + 1), minus(var + 1);
    plus[var] = 1;
    minus[var] = -1;
    tile.ineqs.push_back({makeRowOfTile(ofQueries, -size), plus});
    tile.ineqs.push_back(
        {makeRowOfTile(ofQueries, size, {{kOne, size - 1}}), minus});
    if (!projector.isImplied(
            makeRowOfTile(ofQueries, -size, {{length, 1}, {kOne, -size}}), {}))
      tile.ineqs.push_back({makeRow({{length, 1}, {kOne, -1}}), minus});
  };
  addRange(/*ofQueries=*/true, 0);
  addRange(/*ofQueries=*/false, 1);
  if (heads > 1) {
    tile.ineqs.push_back({makeRow({{kH, -1}}), {0, 0, 1}});
    tile.ineqs.push_back({makeRow({{kH, 1}, {kOne, heads - 1}}), {0, 0, -1}});
  }
  return tile;
}

/// Leaves out what a GPU cannot compute.
void Analysis::dropLargeRows(Union &result) {
  int64_t queries = nq.value_or(kMostLength), keys = nk.value_or(kMostLength),
          fixed = queries, tiles = keys / K + 1;
  if (path == Path::Diagonal) {
    fixed = std::max(queries, keys);
    tiles = queries / Q + 1;
  }
  for (Conjunct &conjunct : result)
    llvm::erase_if(conjunct, [&](const Row &row) {
      bool isLarge = !fitsIn32Bits(getScaledExpr(row).first,
                                   {kMostHeads, kMostHeads, fixed, tiles},
                                   {queries, keys});
      dropsRows |= isLarge;
      return isLarge;
    });
}

Analysis::Union Analysis::project(NormalForm &form, bool isComplement,
                                  ArrayRef<Row> facts) {
  while (true) {
    projector.addContext(facts);
    Union result;
    for (System &system : form.get(isComplement, projector))
      projector.eliminate(std::move(system), result);
    projector.simplify(result, kT);
    if (!projector.hasFailed()) {
      dropLargeRows(result);
      return result;
    }
    projector = makeProjector(Projector::Method::Shadow);
    // A new projector has none of the old one's divisions.
    if (llvm::any_of(facts, [](const Row &row) { return row.size() > kEnd; }))
      facts = {};
  }
}

//===----------------------------------------------------------------------===//
// Affine expressions
//===----------------------------------------------------------------------===//

/// The row times a positive factor, over Q * kFixed.
std::pair<AffineExpr, int64_t>
Analysis::getScaledExpr(ArrayRef<int64_t> row) const {
  int64_t slope = Projector::at(row, kFixed);
  int64_t factor = slope == 0 ? 1 : Q / std::gcd(slope, Q);
  AffineExpr expr = getAffineConstantExpr(0, context);
  auto addTerm = [&](unsigned column, AffineExpr variable) {
    if (int64_t value = Projector::at(row, column))
      expr = expr + variable * (value * factor);
  };
  addTerm(kB, getAffineDimExpr(0, context));
  addTerm(kH, getAffineDimExpr(1, context));
  expr = expr + getAffineDimExpr(2, context) * (slope * factor / Q);
  addTerm(kT, getAffineDimExpr(3, context));
  ArrayRef<Division> divisions = projector.getDivisions();
  for (unsigned i = 0, e = divisions.size(); i != e; ++i)
    if (Projector::at(row, kEnd + i) != 0)
      addTerm(kEnd + i, getQuotient(divisions[i].num, divisions[i].den));
  addTerm(kNq, getAffineSymbolExpr(0, context));
  addTerm(kNk, getAffineSymbolExpr(1, context));
  return {expr + Projector::at(row, kOne) * factor, factor};
}

AffineExpr Analysis::getQuotient(ArrayRef<int64_t> num, int64_t den) const {
  auto [expr, factor] = getScaledExpr(num);
  return expr.floorDiv(den * factor);
}

IntegerSet Analysis::getSet(ArrayRef<Row> rows, unsigned numDims) const {
  SmallVector<AffineExpr> exprs;
  SmallVector<bool> eqFlags;
  SmallVector<Row> rest(rows);
  for (unsigned i = 0; i < rest.size(); ++i) {
    Row opposite;
    for (int64_t value : rest[i])
      opposite.push_back(-value);
    auto *it = llvm::find(rest, opposite);
    eqFlags.push_back(it > rest.begin() + i && it != rest.end());
    if (eqFlags.back())
      rest.erase(it);
    exprs.push_back(getScaledExpr(rest[i]).first);
  }
  if (exprs.empty()) {
    exprs.push_back(getAffineConstantExpr(0, context));
    eqFlags.push_back(true);
  }
  return IntegerSet::get(numDims, /*symbolCount=*/2, exprs, eqFlags);
}

/// The least t with a * t + e >= 0: ceil(-e / a).
AffineExpr Analysis::getLowerBound(const Row &row, Column column) const {
  int64_t a = row[column];
  Row num;
  for (int64_t value : row)
    num.push_back(-value);
  num[column] = 0;
  num[kOne] += a - 1;
  return getQuotient(num, a);
}

/// One more than the greatest t with -a * t + e >= 0: floor(e / a) + 1.
AffineExpr Analysis::getUpperBound(const Row &row, Column column) const {
  int64_t a = -row[column];
  Row num = row;
  num[column] = 0;
  if (num[kOne] != -1)
    return getQuotient(num, a) + 1;
  num[kOne] = 0;
  auto [expr, factor] = getScaledExpr(num);
  return expr.ceilDiv(a * factor);
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

static AffineMap getMap(ArrayRef<AffineExpr> results, MLIRContext *context) {
  SmallVector<AffineExpr> unique;
  for (AffineExpr expr : results)
    if (!llvm::is_contained(unique, expr))
      unique.push_back(expr);
  return AffineMap::get(/*dimCount=*/3, /*symbolCount=*/2, unique, context);
}

void Analysis::setVisitedRange(const Union &visited, MaskTiles &tiles) {
  std::vector<Split> splits;
  for (const Conjunct &conjunct : visited)
    splits.emplace_back(conjunct, projector);
  bool areIntervals =
      llvm::all_of(splits, [](const Split &split) { return split.isInterval; });
  // Intervals that share an end have an interval as their union.
  bool shareAnEnd =
      splits.size() <= 1 ||
      llvm::all_of(splits,
                   [](const Split &split) { return split.lower.empty(); }) ||
      llvm::all_of(splits,
                   [](const Split &split) { return split.upper.empty(); });
  tiles.visitedIsRange = areIntervals && shareAnEnd;

  // Tiles of keys end somewhere, and along a diagonal tiles of queries, too.
  SmallVector<Row> firsts = {getFirstTileRow(/*ofQueries=*/false)},
                   lasts = {getLastTileRow(/*ofQueries=*/false)};
  SmallVector<Row> known = {makeRow({{kB, 1}}), makeRow({{kH, 1}})};
  if (path == Path::OfQueryTile) {
    known.append({getFirstTileRow(/*ofQueries=*/true),
                  getLastTileRow(/*ofQueries=*/true), makeRow({{kNk, 1}})});
  } else {
    firsts.push_back(getFirstTileRow(/*ofQueries=*/true));
    lasts.push_back(getLastTileRow(/*ofQueries=*/true));
    known.append(getDistanceRows());
  }
  for (const Split &split : splits) {
    // Leave out the first and last tile where the mask's own bounds are
    // tighter; neither may be the reason to leave out the other. A hull needs
    // both, for its own bounds may bound an empty interval, and a failed guard
    // is the empty range up to tile 0.
    SmallVector<Row> facts(known);
    llvm::append_range(facts, split.guard);
    llvm::append_range(facts, split.lower);
    llvm::append_range(facts, split.upper);
    llvm::append_range(facts, firsts);
    llvm::append_range(facts, lasts);
    // Leaves out of the facts what it is not needed for.
    auto isNeeded = [&](const Row &row, bool isOnly) {
      llvm::erase(facts, row);
      if (shareAnEnd && !isOnly &&
          projector.isImplied(row, facts, /*useContext=*/false))
        return false;
      facts.push_back(row);
      return true;
    };
    SmallVector<AffineExpr> lo, hi;
    for (const Row &row : firsts)
      if (isNeeded(row, split.lower.empty() || !split.guard.empty()))
        lo.push_back(getLowerBound(row));
    for (const Row &row : lasts)
      if (isNeeded(row, split.upper.empty()))
        hi.push_back(getUpperBound(row));
    for (const Row &row : split.lower)
      lo.push_back(getLowerBound(row));
    for (const Row &row : split.upper)
      hi.push_back(getUpperBound(row));
    IntegerSet guard;
    if (!split.guard.empty())
      guard = getSet(split.guard, /*numDims=*/3);
    tiles.lo.push_back({guard, getMap(lo, context)});
    tiles.hi.push_back({guard, getMap(hi, context)});
  }
  // A lower bound that never depends on the guard needs none; the range is
  // empty as long as the upper bound is guarded.
  if (!tiles.lo.empty() && llvm::all_of(tiles.lo, [&](const TileBound &bound) {
        return bound.map == tiles.lo.front().map;
      }))
    tiles.lo.assign(1, {IntegerSet(), tiles.lo.front().map});
}

/// What is left of a disjunct without the batch, the head and the tile: the
/// rational shadow, which may hold for some distances more.
void Analysis::setDistances(const Union &visited, MaskTiles &tiles) const {
  const Column others[] = {kT, kB, kH};
  auto saysOnlyDistance = [](const Row &row) {
    for (auto [column, value] : llvm::enumerate(row))
      if (value != 0 && column != kOne && column != kFixed && column != kNq &&
          column != kNk)
        return false;
    return Projector::at(row, kFixed) != 0;
  };
  for (const Conjunct &conjunct : visited) {
    SmallVector<Row> known = getContextRows();
    llvm::append_range(known, conjunct);
    System system;
    for (Row row : known) {
      // Rows with quotients play no part here.
      if (row.size() > kEnd)
        continue;
      row.resize(kEnd);
      Row x;
      for (Column column : others)
        x.push_back(std::exchange(row[column], 0));
      system.ineqs.push_back({row, x});
    }
    Projector shadow(kEnd - 1, getDistanceRows(), Projector::Method::Shadow);
    SmallVector<Conjunct> left;
    shadow.eliminate(std::move(system), left);
    for (const Conjunct &distances : left) {
      SmallVector<Row> rows = getDistanceRows();
      llvm::copy_if(distances, std::back_inserter(rows), saysOnlyDistance);
      SmallVector<AffineExpr> lo, hi;
      for (const Row &row : rows)
        if (row[kFixed] > 0)
          lo.push_back(getLowerBound(row, kFixed));
        else
          hi.push_back(getUpperBound(row, kFixed));
      tiles.distanceLo.push_back({IntegerSet(), getMap(lo, context)});
      tiles.distanceHi.push_back({IntegerSet(), getMap(hi, context)});
    }
  }
}

void Analysis::setFullRange(const Union &notFull, MaskTiles &tiles) const {
  tiles.fullIsRange = tiles.visitedIsRange;
  for (const Conjunct &conjunct : notFull) {
    Split split(conjunct, projector);
    if (!split.isInterval || (!split.lower.empty() && !split.upper.empty()))
      tiles.fullIsRange = false;
    if (!tiles.fullIsRange)
      break;
    TileBound bound;
    if (!split.guard.empty())
      bound.guard = getSet(split.guard, /*numDims=*/3);
    SmallVector<AffineExpr> exprs;
    for (const Row &row : split.upper)
      exprs.push_back(getUpperBound(row));
    for (const Row &row : split.lower)
      exprs.push_back(getLowerBound(row));
    if (exprs.empty())
      exprs.push_back(getAffineConstantExpr(0, context));
    bound.map = getMap(exprs, context);
    (split.upper.empty() ? tiles.fullHi : tiles.fullLo).push_back(bound);
  }
  if (!tiles.fullIsRange) {
    tiles.fullLo.clear();
    tiles.fullHi.clear();
  }
}

NormalForm Analysis::getNormalForm(ArrayRef<MaskNode> nodes,
                                   const System &tile) const {
  return NormalForm(nodes, tile, /*hasHeads=*/heads > 1,
                    [&](ArrayRef<int64_t> row) {
                      return makeRow({{kB, row[0]},
                                      {kH, row[1]},
                                      {kNq, row[2]},
                                      {kNk, row[3]},
                                      {kOne, row[4]}});
                    });
}

/// There is no pair of the mask of a query that exists and a key behind the
/// last one.
bool Analysis::keepsOnlyExistingKeys(MaskAttrInterface mask) {
  std::vector<MaskNode> nodes = getMaskNodes(mask);
  System behind;
  behind.ineqs = {{makeRow({}), {1, 0}},
                  {makeRow({{kNq, 1}, {kOne, -1}}), {-1, 0}},
                  {makeRow({{kNk, -1}}), {0, 1}}};
  NormalForm form = getNormalForm(nodes, behind);
  std::vector<System> kept = form.get(/*isComplement=*/false, projector);
  return !projector.hasFailed() &&
         llvm::all_of(kept, [&](const System &system) {
           return projector.isEmpty(system);
         });
}

MaskTiles Analysis::run(MaskAttrInterface mask) {
  std::vector<MaskNode> nodes = getMaskNodes(mask);
  System tile = getTile();
  NormalForm form = getNormalForm(nodes, tile);
  auto isExact = [&] {
    return form.isExact() && !dropsRows &&
           projector.getMethod() == Projector::Method::Exact;
  };

  MaskTiles tiles;
  Union visited = project(form, /*isComplement=*/false);
  for (const Conjunct &conjunct : visited)
    tiles.visited.push_back(getSet(conjunct, /*numDims=*/4));
  setVisitedRange(visited, tiles);
  if (path == Path::Diagonal)
    setDistances(visited, tiles);
  tiles.exact = isExact();
  tiles.gaveUp = !tiles.exact && llvm::is_contained(visited, Conjunct());

  // Only visited tiles need the answer.
  ArrayRef<Row> facts;
  if (visited.size() == 1)
    facts = visited.front();
  if (projector.getMethod() == Projector::Method::Shadow)
    projector = makeProjector(Projector::Method::Exact);
  Union notFull = project(form, /*isComplement=*/true, facts);
  for (const Conjunct &conjunct : notFull)
    tiles.notFull.push_back(getSet(conjunct, /*numDims=*/4));
  setFullRange(notFull, tiles);
  tiles.exact &= isExact();
  LLVM_DEBUG(llvm::dbgs() << mask << " in tiles of " << Q << " x " << K
                          << ": visited are "
                          << (tiles.visitedIsRange ? "a range" : "sets")
                          << ", full are "
                          << (tiles.fullIsRange ? "a range" : "sets")
                          << (tiles.exact ? "" : ", not exact")
                          << (tiles.gaveUp ? ", given up" : "") << "\n");
  return tiles;
}

MaskTiles flash::computeMaskTiles(MaskAttrInterface mask, int64_t queryTile,
                                  int64_t keyTile, std::optional<int64_t> nq,
                                  std::optional<int64_t> nk, int64_t heads) {
  constexpr unsigned headDim = 1;
  if (!dependsOn(mask, headDim))
    heads = 1;
  return Analysis(mask.getContext(), Path::OfQueryTile, queryTile, keyTile, nq,
                  nk, heads)
      .run(mask);
}

MaskTiles flash::computeDiagonalTiles(MaskAttrInterface mask, int64_t tile,
                                      std::optional<int64_t> nq,
                                      std::optional<int64_t> nk) {
  return Analysis(mask.getContext(), Path::Diagonal, tile, tile, nq, nk,
                  /*heads=*/1)
      .run(mask);
}

bool flash::leavesRanges(MaskAttrInterface mask, int64_t queryTile,
                         int64_t keyTile, std::optional<int64_t> nq,
                         std::optional<int64_t> nk) {
  auto isRange = [](const MaskTiles &tiles) {
    return tiles.exact && tiles.fullIsRange;
  };
  return isRange(computeMaskTiles(mask, queryTile, keyTile, nq, nk)) &&
         isRange(
             computeMaskTiles(transposeMask(mask), keyTile, queryTile, nk, nq));
}

bool flash::keepsOnlyExistingKeys(MaskAttrInterface mask,
                                  std::optional<int64_t> nq,
                                  std::optional<int64_t> nk) {
  return Analysis(mask.getContext(), Path::OfQueryTile, /*Q=*/1, /*K=*/1, nq,
                  nk, /*heads=*/1)
      .keepsOnlyExistingKeys(mask);
}

/// Whether an inequality that holds for a query behind the last one and a key
/// that exists holds for the last query and that key: if it falls as queries
/// come later, or holds for the last query and all keys.
static bool holdsAtEnd(AffineExpr expr, bool isNegated,
                       std::optional<int64_t> nq, std::optional<int64_t> nk) {
  enum { B, H, I, J, NumDims, Nq = NumDims, Nk, One, End };
  SmallVector<int64_t> row;
  if (failed(getFlattenedAffineExpr(expr, NumDims, One - NumDims, &row)) ||
      row.size() != End)
    return false;
  if (isNegated)
    for (int64_t &value : row)
      value = -value;
  if (row[I] <= 0)
    return true;
  // The last query, and the key for which the least is left.
  row[Nq] += row[I];
  row[One] -= row[I];
  if (row[J] < 0) {
    row[Nk] += row[J];
    row[One] -= row[J];
  }
  // What is not known is at least 1.
  int64_t least =
      row[One] + row[Nq] * nq.value_or(1) + row[Nk] * nk.value_or(1);
  return row[B] >= 0 && row[H] >= 0 && (nq || row[Nq] >= 0) &&
         (nk || row[Nk] >= 0) && least >= 0;
}

bool flash::seesMostAtEnd(MaskAttrInterface mask, std::optional<int64_t> nq,
                          std::optional<int64_t> nk) {
  return llvm::all_of(getMaskNodes(mask), [&](const MaskNode &node) {
    if (node.kind != MaskForm::Kind::Set)
      return true;
    IntegerSet set = node.set;
    return llvm::all_of(llvm::seq(set.getNumConstraints()), [&](unsigned i) {
      AffineExpr expr = set.getConstraint(i);
      return holdsAtEnd(expr, /*isNegated=*/false, nq, nk) &&
             (!set.isEq(i) || holdsAtEnd(expr, /*isNegated=*/true, nq, nk));
    });
  });
}

bool flash::endsWithQueries(MaskAttrInterface mask, int64_t queryTile,
                            int64_t keyTile, std::optional<int64_t> nq,
                            std::optional<int64_t> nk) {
  MaskTiles tiles =
      computeMaskTiles(transposeMask(mask), keyTile, queryTile, nk, nq);
  return llvm::all_of(tiles.hi, [](const TileBound &bound) {
    for (unsigned dim = 0; dim < bound.map.getNumDims(); ++dim)
      if (bound.map.isFunctionOfDim(dim))
        return false;
    return true;
  });
}
