//===- Simplification.cpp - Shorter unions of constraints -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Projection.h"

#include "mlir/Analysis/Presburger/Simplex.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace flash::detail;
using mlir::presburger::Simplex;

/// A limit on the work for one mask; the usual masks need tens of tests.
static constexpr unsigned kMaxTests = 1500;

//===----------------------------------------------------------------------===//
// Tests, all by the rational simplex of MLIR's Presburger library
//===----------------------------------------------------------------------===//

static bool isRationallyEmpty(ArrayRef<const Constraint *> eqs,
                              ArrayRef<const Constraint *> ineqs,
                              ArrayRef<Division> divisions,
                              unsigned firstDivision) {
  // Divisions mean something only together with the bounds that define them.
  SmallVector<bool> isUsed(divisions.size(), false);
  unsigned numX = 0;
  auto scan = [&](ArrayRef<int64_t> p) {
    for (unsigned i = firstDivision, e = p.size(); i < e; ++i)
      isUsed[i - firstDivision] |= p[i] != 0;
  };
  for (const Constraint *constraint :
       concat<const Constraint *const>(eqs, ineqs)) {
    scan(constraint->p);
    numX = std::max<unsigned>(numX, constraint->x.size());
  }
  for (unsigned i = divisions.size(); i-- > 0;)
    if (isUsed[i])
      scan(divisions[i].num);

  unsigned numP = firstDivision - 1 + divisions.size();
  SmallVector<llvm::DynamicAPInt> buffer;
  auto fill = [&](ArrayRef<int64_t> p, ArrayRef<int64_t> x) {
    buffer.assign(numP + numX + 1, llvm::DynamicAPInt(0));
    for (unsigned i = 1, e = p.size(); i < e; ++i)
      buffer[i - 1] = p[i];
    for (unsigned i = 0, e = x.size(); i < e; ++i)
      buffer[numP + i] = x[i];
    if (!p.empty())
      buffer.back() = p[0];
  };
  Simplex simplex(numP + numX);
  for (unsigned i = 0, e = divisions.size(); i != e; ++i) {
    if (!isUsed[i])
      continue;
    fill(divisions[i].num, {});
    buffer[firstDivision - 1 + i] -= divisions[i].den;
    simplex.addInequality(buffer);
    for (llvm::DynamicAPInt &value : buffer)
      value = -value;
    buffer.back() += divisions[i].den - 1;
    simplex.addInequality(buffer);
  }
  for (const Constraint *constraint : eqs) {
    fill(constraint->p, constraint->x);
    simplex.addEquality(buffer);
  }
  for (const Constraint *constraint : ineqs) {
    if (simplex.isEmpty())
      return true;
    fill(constraint->p, constraint->x);
    simplex.addInequality(buffer);
  }
  return simplex.isEmpty();
}

bool Projector::mayTest() {
  bool isOver = failed || ++numTests > kMaxTests;
  failed = isOver && method == Method::Exact;
  return numTests <= kMaxTests && !failed;
}

bool Projector::isEmpty(const System &system) {
  if (!mayTest())
    return false;
  SmallVector<Constraint> facts;
  for (const Row &row : context)
    facts.push_back({row, {}});
  SmallVector<const Constraint *> eqs, ineqs;
  for (const Constraint &constraint : facts)
    ineqs.push_back(&constraint);
  for (const Constraint &constraint : system.eqs)
    eqs.push_back(&constraint);
  for (const Constraint &constraint : system.ineqs)
    ineqs.push_back(&constraint);
  return isRationallyEmpty(eqs, ineqs, divisions, firstDivision);
}

bool Projector::isImplied(const Row &row, ArrayRef<Row> given,
                          bool useContext) {
  if (!mayTest())
    return false;
  Constraint opposite{negate(row), {}};
  if (!normalize(opposite, /*isEquality=*/false))
    return true;
  SmallVector<Constraint> facts;
  if (useContext)
    for (const Row &fact : context)
      facts.push_back({fact, {}});
  for (const Row &fact : given)
    facts.push_back({fact, {}});
  facts.push_back(opposite);
  SmallVector<const Constraint *> ineqs;
  for (const Constraint &constraint : facts)
    ineqs.push_back(&constraint);
  return isRationallyEmpty({}, ineqs, divisions, firstDivision);
}

//===----------------------------------------------------------------------===//
// Simplification
//===----------------------------------------------------------------------===//

/// Rewrites a * floor(n / d) + e >= 0 without the quotient of `column`:
/// n >= -d * floor(e / a) for a > 0 and n <= d * floor(e / -a) + d - 1 for
/// a < 0. Returns false if the row does not have this form.
bool Projector::isolate(Row &row, unsigned column) {
  while (hasDivisionOf(row, column)) {
    int found = -1;
    for (unsigned i = firstDivision, e = row.size(); i < e; ++i) {
      Row single(i + 1);
      single[i] = row[i];
      if (!hasDivisionOf(single, column))
        continue;
      if (found >= 0)
        return false;
      found = i;
    }
    if (at(row, column) != 0)
      return false;
    int64_t a = row[found];
    Division division = divisions[found - firstDivision];
    Row rest = row;
    rest[found] = 0;
    Row quotient = floorDivide(rest, AbsoluteValue(a));
    if (a > 0) {
      row = combine(1, division.num, division.den, quotient);
    } else {
      row = combine(-1, division.num, division.den, quotient);
      row = combine(1, row, division.den - 1, Row{1});
    }
    Constraint constraint{row, {}};
    normalize(constraint, /*isEquality=*/false);
    row = constraint.p;
    if (failed)
      return false;
  }
  return true;
}

void Projector::simplifyConjunct(Conjunct &conjunct, unsigned solveFor) {
  // Drop what the context and the other rows imply, the least readable first.
  auto cost = [&](const Row &row) {
    int64_t result = at(row, solveFor) == 0 ? 1000 : 0;
    for (unsigned i = 1, e = row.size(); i != e; ++i)
      if (row[i] != 0)
        result += i >= firstDivision ? 30 : 10;
    return result;
  };
  sort(conjunct, [&](const Row &lhs, const Row &rhs) {
    return std::pair(cost(lhs), lhs) > std::pair(cost(rhs), rhs);
  });
  for (unsigned i = 0; i < conjunct.size();) {
    Conjunct others;
    for (unsigned j = 0, e = conjunct.size(); j != e; ++j)
      if (j != i)
        others.push_back(conjunct[j]);
    if (isImplied(conjunct[i], others))
      conjunct = std::move(others);
    else
      ++i;
  }
  std::reverse(conjunct.begin(), conjunct.end());
}

bool Projector::isSubset(const Conjunct &lhs, const Conjunct &rhs) {
  return all_of(rhs, [&](const Row &row) { return isImplied(row, lhs); });
}

/// Merges two disjuncts if their union is convex: let H be the constraints of
/// either that the other satisfies too; H contains the union, and equals it if
/// what H has beyond the one lies in the other.
bool Projector::merge(const Conjunct &lhs, const Conjunct &rhs,
                      Conjunct &merged) {
  merged.clear();
  SmallVector<Row> cuts;
  for (const Row &row : lhs)
    (isImplied(row, rhs) ? merged : static_cast<SmallVectorImpl<Row> &>(cuts))
        .push_back(row);
  for (const Row &row : rhs)
    if (isImplied(row, lhs))
      merged.push_back(row);
  for (const Row &cut : cuts) {
    Conjunct beyond = merged;
    beyond.push_back(negate(cut));
    if (!isSubset(beyond, rhs))
      return false;
  }
  return true;
}

/// What is true in all of the disjuncts.
static Conjunct getHull(ArrayRef<Conjunct> conjuncts) {
  Conjunct hull = conjuncts.front();
  for (const Conjunct &conjunct : conjuncts.drop_front())
    erase_if(hull, [&](Row &row) {
      auto *it = find_if(conjunct, [&](const Row &other) {
        return ArrayRef(other).drop_front() == ArrayRef(row).drop_front();
      });
      if (it != conjunct.end())
        row[0] = std::max(row[0], (*it)[0]);
      return it == conjunct.end();
    });
  return hull;
}

void Projector::simplify(SmallVectorImpl<Conjunct> &conjuncts,
                         unsigned solveFor) {
  SmallVector<Conjunct> kept;
  for (Conjunct &conjunct : conjuncts) {
    System system;
    for (Row &row : conjunct) {
      isolate(row, solveFor);
      system.ineqs.push_back({row, {}});
    }
    if (failed)
      return;
    if (!tidy(system) || isEmpty(system))
      continue;
    Conjunct tidied;
    for (Constraint &constraint : system.ineqs)
      tidied.push_back(std::move(constraint.p));
    simplifyConjunct(tidied, solveFor);
    if (is_contained(kept, tidied))
      continue;
    if (tidied.empty()) {
      kept.assign(1, tidied);
      break;
    }
    kept.push_back(std::move(tidied));
  }
  if (kept.size() > kMaxDisjuncts && method == Method::Exact)
    failed = true;
  if (failed)
    return;
  for (unsigned i = 0; i < kept.size();) {
    bool isCovered = false;
    for (unsigned j = 0; j < kept.size() && !isCovered; ++j)
      isCovered = j != i && isSubset(kept[i], kept[j]);
    if (isCovered)
      kept.erase(kept.begin() + i);
    else
      ++i;
  }
  for (unsigned i = 0; i < kept.size();) {
    bool hasMerged = false;
    for (unsigned j = i + 1; j < kept.size() && !hasMerged; ++j) {
      Conjunct merged;
      if (!merge(kept[i], kept[j], merged))
        continue;
      simplifyConjunct(merged, solveFor);
      kept.erase(kept.begin() + j);
      kept[i] = std::move(merged);
      hasMerged = true;
    }
    i = hasMerged ? 0 : i + 1;
  }
  if (kept.size() > kMaxDisjuncts) {
    Conjunct hull = getHull(ArrayRef(kept).drop_front(kMaxDisjuncts - 1));
    kept.resize(kMaxDisjuncts - 1);
    kept.push_back(std::move(hull));
  }
  conjuncts.assign(kept.begin(), kept.end());
}
