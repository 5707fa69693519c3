//===- NormalForm.cpp - A mask as a union of systems ----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NormalForm.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace flash;
using namespace flash::detail;

/// Limits of one union. Each piece is projected, which takes about a
/// millisecond, and becomes code that each tile runs, of about ten
/// instructions; a tile of the smallest size has thousands.
static constexpr size_t kMaxPieces = 64;
static constexpr size_t kMaxPieceConstraints = 32;
static constexpr size_t kMaxPieceQuotients = 12;
static constexpr int64_t kMaxMaskCoefficient = int64_t(1) << 31;
/// Comparisons of two constraints, which take nanoseconds.
static constexpr int64_t kMaxComparisons = int64_t(1) << 22;

NormalForm::NormalForm(ArrayRef<MaskNode> nodes, const System &tile,
                       bool hasHeads, MakeRow makeRow)
    : nodes(nodes), tile(tile), firstQuotient(hasHeads ? 3 : 2),
      sets(nodes.size()) {
  flatten(nodes, makeRow);
}

/// Writes the constraints of all sets over the same quotients.
void NormalForm::flatten(ArrayRef<MaskNode> nodes, MakeRow makeRow) {
  constexpr unsigned numDims = 4, numSymbols = 2;
  std::vector<AffineExpr> exprs;
  std::vector<FlatConstraint *> places;
  for (auto [index, node] : llvm::enumerate(nodes)) {
    if (node.kind != MaskForm::Kind::Set)
      continue;
    for (bool isEquality : node.set.getEqFlags())
      sets[index].push_back({std::nullopt, isEquality});
    for (auto [expr, place] :
         llvm::zip(node.set.getConstraints(), sets[index])) {
      exprs.push_back(expr);
      places.push_back(&place);
    }
  }
  if (exprs.empty())
    return;
  std::vector<SmallVector<int64_t, 8>> rows;
  FlatLinearConstraints locals;
  if (failed(getFlattenedAffineExprs(
          AffineMap::get(numDims, numSymbols, exprs, exprs[0].getContext()),
          &rows, &locals)))
    return;

  // Flattened columns: b, h, i, j, nq, nk, locals, constant.
  unsigned numLocals = locals.getNumLocalVars();
  auto convert = [&](ArrayRef<int64_t> row) -> std::optional<Constraint> {
    for (int64_t value : row)
      if (llvm::AbsoluteValue(value) > uint64_t(kMaxMaskCoefficient))
        return std::nullopt;
    Constraint constraint;
    bool hasHeads = firstQuotient > 2;
    constraint.p =
        makeRow({row[0], hasHeads ? 0 : row[1], row[4], row[5], row.back()});
    constraint.x = {row[2], row[3]};
    if (hasHeads)
      constraint.x.push_back(row[1]);
    llvm::append_range(constraint.x, row.slice(6, numLocals));
    while (constraint.x.size() > firstQuotient && constraint.x.back() == 0)
      constraint.x.pop_back();
    return constraint;
  };
  for (auto [row, place] : llvm::zip(rows, places))
    place->constraint = convert(row);
  definitions.resize(numLocals);
  for (unsigned i = 0, e = numLocals ? locals.getNumInequalities() : 0; i != e;
       ++i) {
    SmallVector<int64_t> row;
    bool fits = true;
    for (const llvm::DynamicAPInt &value : locals.getInequality(i)) {
      fits &= llvm::abs(value) <= kMaxMaskCoefficient;
      row.push_back(fits ? int64_t(value) : 0);
    }
    // A quotient that lacks a bound may have any value.
    std::optional<Constraint> bound;
    if (fits)
      bound = convert(row);
    if (bound && bound->x.size() > firstQuotient)
      definitions[bound->x.size() - firstQuotient - 1].push_back(*bound);
  }
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

static ArrayRef<int64_t> getTerms(const Constraint &constraint) {
  return ArrayRef(constraint.p).drop_front();
}

/// Whether the constraints differ in their constants at most.
static bool areParallel(const Constraint &lhs, const Constraint &rhs) {
  return lhs.x == rhs.x && getTerms(lhs) == getTerms(rhs);
}

/// Whether the sum of the constraints is a constant.
static bool areOpposite(const Constraint &lhs, const Constraint &rhs) {
  auto areNegated = [](ArrayRef<int64_t> lhs, ArrayRef<int64_t> rhs) {
    return llvm::equal(lhs, rhs, [](int64_t x, int64_t y) { return x == -y; });
  };
  return areNegated(lhs.x, rhs.x) && areNegated(getTerms(lhs), getTerms(rhs));
}

/// The constraint `offset - constraint >= 0`.
static Constraint subtractFrom(int64_t offset, Constraint constraint) {
  for (int64_t &value : constraint.p)
    value = -value;
  for (int64_t &value : constraint.x)
    value = -value;
  constraint.p[0] += offset;
  return constraint;
}

/// Adds a constraint; returns false if the piece is seen to be empty.
bool NormalForm::add(Piece &piece, Constraint constraint) {
  int64_t gcd = 0;
  for (int64_t value : getTerms(constraint))
    gcd = std::gcd(gcd, value);
  for (int64_t value : constraint.x)
    gcd = std::gcd(gcd, value);
  if (gcd == 0)
    return constraint.p[0] >= 0;
  constraint.p[0] = llvm::divideFloorSigned(constraint.p[0], gcd);
  for (int64_t &value : llvm::drop_begin(constraint.p))
    value /= gcd;
  for (int64_t &value : constraint.x)
    value /= gcd;

  budget -= piece.size();
  for (const Constraint &other : piece)
    if (areOpposite(other, constraint) && other.p[0] + constraint.p[0] < 0)
      return false;
  auto it = llvm::find_if(piece, [&](const Constraint &other) {
    return areParallel(other, constraint);
  });
  if (it != piece.end())
    it->p[0] = std::min(it->p[0], constraint.p[0]);
  else if (piece.size() < kMaxPieceConstraints)
    piece.push_back(std::move(constraint));
  else
    exact = false;
  return true;
}

/// Whether `lhs` is seen to lie in `rhs`.
bool NormalForm::isPart(const Piece &lhs, const Piece &rhs) {
  budget -= lhs.size() * rhs.size() + 1;
  return llvm::all_of(rhs, [&](const Constraint &constraint) {
    return llvm::any_of(lhs, [&](const Constraint &other) {
      return other.p[0] <= constraint.p[0] && areParallel(other, constraint);
    });
  });
}

/// Adds a piece that is part of no other, and drops those that are part of it.
void NormalForm::insert(Pieces &pieces, Piece piece) {
  if (budget < 0) {
    pieces.push_back(std::move(piece));
    return;
  }
  if (llvm::any_of(pieces,
                   [&](const Piece &other) { return isPart(piece, other); }))
    return;
  llvm::erase_if(pieces,
                 [&](const Piece &other) { return isPart(other, piece); });
  pieces.push_back(std::move(piece));
}

/// A piece that holds all of them: what is true in each.
NormalForm::Piece NormalForm::getHull(ArrayRef<Piece> pieces) const {
  Piece hull = pieces.front();
  for (const Piece &piece : pieces.drop_front())
    llvm::erase_if(hull, [&](Constraint &constraint) {
      auto it = llvm::find_if(piece, [&](const Constraint &other) {
        return areParallel(other, constraint);
      });
      if (it != piece.end())
        constraint.p[0] = std::max(constraint.p[0], it->p[0]);
      return it == piece.end();
    });
  return hull;
}

System NormalForm::getSystem(const Piece &piece) {
  SmallVector<bool> isUsed(definitions.size(), false);
  auto scan = [&](const Constraint &constraint) {
    for (unsigned i = firstQuotient, e = constraint.x.size(); i < e; ++i)
      isUsed[i - firstQuotient] |= constraint.x[i] != 0;
  };
  llvm::for_each(piece, scan);
  // A quotient's numerator may have earlier quotients.
  for (unsigned i = definitions.size(); i-- > 0;)
    if (isUsed[i])
      llvm::for_each(definitions[i], scan);

  SmallVector<unsigned> columns = llvm::to_vector(llvm::seq(firstQuotient));
  for (unsigned i = 0, e = isUsed.size(); i != e; ++i)
    if (isUsed[i] && columns.size() < firstQuotient + kMaxPieceQuotients)
      columns.push_back(i + firstQuotient);
  System system = tile;
  auto addPacked = [&](const Constraint &constraint, bool isEquality) {
    Constraint packed{constraint.p, {}};
    unsigned numFound = 0;
    for (unsigned column : columns) {
      packed.x.push_back(Projector::at(constraint.x, column));
      numFound += packed.x.back() != 0;
    }
    if (llvm::count_if(constraint.x, [](int64_t v) { return v != 0; }) ==
        numFound)
      (isEquality ? system.eqs : system.ineqs).push_back(std::move(packed));
    else
      exact = false;
  };
  for (auto it = piece.begin(), e = piece.end(); it != e; ++it) {
    auto isOpposite = [&](const Constraint &other) {
      return it->p[0] + other.p[0] == 0 && areOpposite(*it, other);
    };
    if (std::none_of(piece.begin(), it, isOpposite))
      addPacked(*it, std::any_of(it, e, isOpposite));
  }
  for (unsigned column : ArrayRef(columns).drop_front(firstQuotient)) {
    const Piece &definition = definitions[column - firstQuotient];
    for (const Constraint &bound : definition)
      addPacked(bound, /*isEquality=*/false);
    exact &= definition.size() == 2;
  }
  return system;
}

/// Drops empty pieces of many; returns whether few are left.
bool NormalForm::isFew(Pieces &pieces, Projector &projector) {
  if (pieces.size() > kMaxPieces && budget >= 0)
    llvm::erase_if(pieces, [&](const Piece &piece) {
      return projector.isEmpty(getSystem(piece));
    });
  return pieces.size() <= kMaxPieces && budget >= 0;
}

/// Puts several of too many pieces into one.
void NormalForm::limit(Pieces &pieces, Projector &projector) {
  constexpr size_t numKept = kMaxPieces / 2;
  if (isFew(pieces, projector) || pieces.size() <= numKept)
    return;
  exact = false;
  Piece hull = getHull(ArrayRef(pieces).drop_front(numKept));
  pieces.resize(numKept);
  insert(pieces, std::move(hull));
}

NormalForm::Pieces NormalForm::intersect(const Pieces &lhs, const Pieces &rhs,
                                         Projector &projector) {
  Pieces products;
  for (const Piece &left : lhs) {
    for (const Piece &right : rhs) {
      Piece product = left;
      if (!llvm::all_of(right, [&](const Constraint &constraint) {
            return add(product, constraint);
          }))
        continue;
      insert(products, std::move(product));
      if (isFew(products, projector))
        continue;
      // Take from the right side only what holds in all of its pieces.
      exact = false;
      if (rhs.size() == 1 || budget < 0)
        return lhs;
      return intersect(lhs, {getHull(rhs)}, projector);
    }
  }
  return products;
}

NormalForm::Pieces NormalForm::getSet(unsigned node, bool isComplement,
                                      Projector &projector) {
  // What is beyond the limits might hold as well as not.
  if (llvm::any_of(sets[node], [](const FlatConstraint &flat) {
        return !flat.constraint;
      })) {
    exact = false;
    if (isComplement)
      return {Piece()};
  }
  Piece all;
  Pieces violations;
  for (const auto &[constraint, isEquality] : sets[node]) {
    if (!constraint)
      continue;
    if (!isComplement) {
      if (!add(all, *constraint) ||
          (isEquality && !add(all, subtractFrom(0, *constraint))))
        return {};
      continue;
    }
    SmallVector<Constraint, 2> sides = {subtractFrom(-1, *constraint)};
    if (isEquality) {
      sides.push_back(*constraint);
      sides.back().p[0] -= 1;
    }
    for (const Constraint &side : sides)
      if (Piece violation; add(violation, side))
        insert(violations, std::move(violation));
  }
  if (!isComplement)
    return {all};
  limit(violations, projector);
  return violations;
}

std::vector<System> NormalForm::get(bool isComplement, Projector &projector) {
  exact = true;
  budget = kMaxComparisons;
  // Not (x and y) is not x or not y.
  MaskForm::Kind unionKind =
      isComplement ? MaskForm::Kind::Intersection : MaskForm::Kind::Union;
  std::vector<Pieces> found(nodes.size());
  for (auto [index, node] : llvm::enumerate(nodes)) {
    Pieces &pieces = found[index];
    if (node.kind == MaskForm::Kind::Set) {
      pieces = getSet(index, isComplement, projector);
      continue;
    }
    if (node.kind == unionKind) {
      for (unsigned part : node.parts) {
        for (const Piece &piece : found[part])
          insert(pieces, piece);
        limit(pieces, projector);
      }
      continue;
    }
    // Parts of one piece come first: they leave less of the others.
    SmallVector<unsigned> parts(node.parts.begin(), node.parts.end());
    llvm::sort(parts, [&](unsigned lhs, unsigned rhs) {
      return std::pair(found[lhs].size(), lhs) <
             std::pair(found[rhs].size(), rhs);
    });
    pieces = {Piece()};
    for (unsigned part : parts)
      pieces = intersect(pieces, found[part], projector);
  }
  std::vector<System> systems;
  for (const Piece &piece : found.back())
    systems.push_back(getSystem(piece));
  return systems;
}
