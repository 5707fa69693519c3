//===- Projection.cpp - Exact integer projection --------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Projection.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>
#include <utility>

using namespace llvm;
using namespace flash::detail;

/// Limits beyond which a mask is too complicated to be worth exact bounds. The
/// usual masks stay an order of magnitude below.
static constexpr unsigned kMaxConstraints = 80;
static constexpr unsigned kMaxDivisions = 24;
static constexpr int64_t kMaxSplinters = 16;
static constexpr int64_t kMaxCoefficient = int64_t(1) << 53;

Projector::Projector(unsigned numParams, ArrayRef<Row> context, Method method)
    : firstDivision(numParams + 1), method(method), context(context) {
  for (Row &row : this->context) {
    Constraint constraint{row, {}};
    normalize(constraint, /*isEquality=*/false);
    row = constraint.p;
  }
}

void Projector::addContext(ArrayRef<Row> rows) {
  context.append(rows.begin(), rows.end());
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

bool Projector::isConstant(ArrayRef<int64_t> row) {
  return all_of(row.drop_front(), [](int64_t value) { return value == 0; });
}

Row Projector::combine(int64_t a, const Row &x, int64_t b, const Row &y) {
  Row result(std::max(x.size(), y.size()));
  for (unsigned i = 0, e = result.size(); i != e; ++i) {
    int64_t lhs, rhs;
    if (MulOverflow(a, at(x, i), lhs) || MulOverflow(b, at(y, i), rhs) ||
        AddOverflow(lhs, rhs, result[i]) ||
        AbsoluteValue(result[i]) > uint64_t(kMaxCoefficient)) {
      failed = true;
      result[i] = 0;
    }
  }
  return result;
}

Constraint Projector::combine(int64_t a, const Constraint &x, int64_t b,
                              const Constraint &y) {
  return {combine(a, x.p, b, y.p), combine(a, x.x, b, y.x)};
}

Row Projector::negate(const Row &row) { return combine(-1, row, -1, Row{1}); }

bool Projector::normalize(Constraint &constraint, bool isEquality) {
  Row &p = constraint.p;
  if (p.empty())
    p.push_back(0);
  int64_t gcd = 0;
  for (int64_t value : drop_begin(p))
    gcd = std::gcd(gcd, value);
  for (int64_t value : constraint.x)
    gcd = std::gcd(gcd, value);
  if (gcd == 0)
    return isEquality ? p[0] == 0 : p[0] >= 0;
  if (gcd == 1)
    return true;
  if (isEquality && p[0] % gcd != 0)
    return false;
  p[0] = divideFloorSigned(p[0], gcd);
  for (int64_t &value : drop_begin(p))
    value /= gcd;
  for (int64_t &value : constraint.x)
    value /= gcd;
  return true;
}

bool Projector::hasDivisionOf(ArrayRef<int64_t> row, unsigned column) const {
  for (unsigned i = firstDivision, e = row.size(); i < e; ++i) {
    if (row[i] == 0)
      continue;
    const Row &num = divisions[i - firstDivision].num;
    if (at(num, column) != 0 || hasDivisionOf(num, column))
      return true;
  }
  return false;
}

Row Projector::floorDivide(Row num, int64_t den) {
  int64_t gcd = den;
  for (int64_t value : drop_begin(num))
    gcd = std::gcd(gcd, value);
  num[0] = divideFloorSigned(num[0], gcd);
  for (int64_t &value : drop_begin(num))
    value /= gcd;
  den /= gcd;
  if (den == 1)
    return num;

  // Move whole multiples out of the quotient, unless the coefficient is short
  // already: floor((x + 1) / 2) is easier to read than x - floor(x / 2).
  Row whole(num.size());
  whole[0] = divideFloorSigned(num[0], den);
  for (unsigned i = 1, e = num.size(); i != e; ++i)
    if (2 * AbsoluteValue(num[i]) > uint64_t(den))
      whole[i] = divideFloorSigned(num[i] + (den - 1) / 2, den);
  Row rest = combine(1, num, -den, whole);
  if (isConstant(rest))
    return whole;

  // floor(n / d) = -floor((d - 1 - n) / d): keep one of the two.
  int64_t sign = *find_if(drop_begin(rest), [](int64_t v) { return v != 0; });
  sign = sign < 0 ? -1 : 1;
  if (sign < 0) {
    rest = combine(-1, rest, den - 1, Row{1});
    int64_t carry = divideFloorSigned(rest[0], den);
    rest[0] -= carry * den;
    whole[0] -= carry;
  }
  while (rest.back() == 0)
    rest.pop_back();
  auto *it = find_if(divisions, [&](const Division &division) {
    return division.den == den && division.num == rest;
  });
  unsigned column = firstDivision + (it - divisions.begin());
  if (it == divisions.end()) {
    if (divisions.size() == kMaxDivisions) {
      failed = true;
      return whole;
    }
    divisions.push_back({rest, den});
  }
  Row quotient(column + 1);
  quotient[column] = sign;
  return combine(1, whole, 1, quotient);
}

//===----------------------------------------------------------------------===//
// Elimination
//===----------------------------------------------------------------------===//

/// Normalizes every constraint and keeps the tightest of parallel ones. Returns
/// false if the system is seen to be empty.
bool Projector::tidy(System &system) {
  auto hasNoVariable = [](const Constraint &constraint) {
    return isConstant(constraint.p) &&
           all_of(constraint.x, [](int64_t value) { return value == 0; });
  };
  auto trim = [](Row &row, size_t keep) {
    while (row.size() > keep && row.back() == 0)
      row.pop_back();
  };
  for (bool isEquality : {true, false}) {
    for (Constraint &constraint : isEquality ? system.eqs : system.ineqs) {
      if (!normalize(constraint, isEquality))
        return false;
      trim(constraint.p, 1);
      trim(constraint.x, 0);
    }
  }
  erase_if(system.eqs, hasNoVariable);
  erase_if(system.ineqs, hasNoVariable);

  std::vector<Constraint> kept;
  for (Constraint &constraint : system.ineqs) {
    ArrayRef<int64_t> p(constraint.p);
    auto it = find_if(kept, [&](const Constraint &other) {
      return other.x == constraint.x &&
             ArrayRef<int64_t>(other.p).drop_front() == p.drop_front();
    });
    if (it == kept.end())
      kept.push_back(std::move(constraint));
    else
      it->p[0] = std::min(it->p[0], constraint.p[0]);
  }
  system.ineqs = std::move(kept);
  if (system.ineqs.size() + system.eqs.size() > kMaxConstraints)
    failed = true;
  return !failed;
}

/// Uses the first equality that has an existential to remove one existential,
/// or to make the equality's coefficients smaller (Euclid's algorithm, by a
/// unimodular change of variables).
void Projector::solveEquality(System &system) {
  auto eq =
      find_if(system.eqs, [](const Constraint &eq) { return !eq.x.empty(); });
  unsigned var = 0;
  for (unsigned i = 0, e = eq->x.size(); i != e; ++i)
    if (eq->x[i] != 0 && (eq->x[var] == 0 ||
                          AbsoluteValue(eq->x[i]) < AbsoluteValue(eq->x[var])))
      var = i;
  Constraint pivot = *eq;
  if (pivot.x[var] < 0)
    pivot = combine(-1, pivot, 0, pivot);
  int64_t a = pivot.x[var];
  auto forEach = [&](function_ref<void(Constraint &)> fn) {
    for (Constraint &constraint : system.eqs)
      fn(constraint);
    for (Constraint &constraint : system.ineqs)
      fn(constraint);
  };

  if (a == 1) {
    system.eqs.erase(eq);
    forEach([&](Constraint &constraint) {
      constraint = combine(1, constraint, -at(constraint.x, var), pivot);
    });
    return;
  }
  bool isAlone = true;
  for (unsigned i = 0, e = pivot.x.size(); i != e; ++i) {
    if (i == var || pivot.x[i] == 0)
      continue;
    isAlone = false;
    int64_t quotient = divideFloorSigned(pivot.x[i], a);
    forEach([&](Constraint &constraint) {
      int64_t scale = at(constraint.x, var);
      Row delta(i + 1);
      delta[i] = 1;
      int64_t amount;
      if (MulOverflow(scale, quotient, amount) || amount == INT64_MIN) {
        failed = true;
        return;
      }
      constraint.x = combine(1, constraint.x, -amount, delta);
    });
  }
  if (!isAlone)
    return;
  // a * var + p == 0: var = floor(-p / a), which must divide.
  Row value = floorDivide(combine(-1, pivot.p, 0, pivot.p), a);
  system.eqs.erase(eq);
  forEach([&](Constraint &constraint) {
    int64_t scale = at(constraint.x, var);
    if (scale == 0)
      return;
    constraint.p = combine(1, constraint.p, scale, value);
    constraint.x[var] = 0;
  });
  system.eqs.push_back({combine(1, pivot.p, a, value), {}});
}

/// True if the constraint has no existential but `var`.
static bool isAlone(const Constraint &constraint, unsigned var) {
  for (unsigned i = 0, e = constraint.x.size(); i != e; ++i)
    if (i != var && constraint.x[i] != 0)
      return false;
  return true;
}

/// The variable to eliminate next: exactly if possible, without a quotient if
/// possible, then with the least growth.
unsigned Projector::chooseVariable(const System &system, unsigned numX) {
  unsigned best = numX;
  int64_t bestCost = INT64_MAX;
  for (unsigned var = 0; var != numX; ++var) {
    SmallVector<const Constraint *> lowers, uppers;
    for (const Constraint &ineq : system.ineqs) {
      if (at(ineq.x, var) > 0)
        lowers.push_back(&ineq);
      else if (at(ineq.x, var) < 0)
        uppers.push_back(&ineq);
    }
    if (lowers.empty() && uppers.empty())
      continue;
    int64_t cost =
        int64_t(lowers.size() * uppers.size()) - lowers.size() - uppers.size();
    for (const Constraint *lower : lowers) {
      for (const Constraint *upper : uppers) {
        int64_t least = std::min(lower->x[var], -upper->x[var]);
        if (least == 1)
          continue;
        cost += 100;
        if (!isAlone(*lower, var) && !isAlone(*upper, var))
          cost += 10000 + std::min<int64_t>(least, 10000);
      }
    }
    if (cost < bestCost) {
      bestCost = cost;
      best = var;
    }
  }
  return best;
}

/// What a lower bound a * x + l >= 0 and an upper bound -b * x + u >= 0 say
/// without x. With a or b equal to one the real shadow b * l + a * u >= 0 is
/// exact; if l or u has no other existential, its quotient may be formed.
/// Otherwise only the dark shadow b * l + a * u >= (a - 1) * (b - 1) is sure to
/// leave an integer between the bounds.
Constraint Projector::combineBounds(const System &system,
                                    const Constraint &lower,
                                    const Constraint &upper, unsigned var,
                                    bool &isExact) {
  isExact = true;
  int64_t a = lower.x[var], b = -upper.x[var];
  Constraint shadow = combine(b, lower, a, upper);
  if (a == 1 || b == 1)
    return shadow;
  int64_t gap;
  if (MulOverflow(a - 1, b - 1, gap)) {
    failed = true;
    return shadow;
  }
  Constraint dark = shadow;
  dark.p = combine(1, dark.p, -gap, Row{1});
  System opposite = system;
  opposite.ineqs.push_back(combine(-1, dark, 0, dark));
  opposite.ineqs.back().p[0] -= 1;
  if (isEmpty(opposite))
    return shadow;

  bool lowerAlone = isAlone(lower, var), upperAlone = isAlone(upper, var);
  if (!lowerAlone && !upperAlone) {
    isExact = false;
    return dark;
  }
  // If both quotients are possible, take the simpler one.
  auto numVariables = [](const Row &row) {
    return count_if(drop_begin(row), [](int64_t v) { return v != 0; });
  };
  bool useUpper = upperAlone && (!lowerAlone || numVariables(upper.p) <=
                                                    numVariables(lower.p));
  Constraint result = useUpper ? lower : upper;
  result.x[var] = 0;
  Row quotient = useUpper ? floorDivide(upper.p, b) : floorDivide(lower.p, a);
  result.p = combine(1, result.p, useUpper ? a : b, quotient);
  return result;
}

bool Projector::takeOverflow() { return std::exchange(failed, false); }

/// Drops inequalities that the others imply.
void Projector::dropImplied(System &system) {
  for (unsigned i = system.ineqs.size(); i-- > 0;) {
    Constraint constraint = std::move(system.ineqs[i]);
    system.ineqs[i] = combine(-1, constraint, 0, constraint);
    system.ineqs[i].p[0] -= 1;
    if (isEmpty(system))
      system.ineqs.erase(system.ineqs.begin() + i);
    else
      system.ineqs[i] = std::move(constraint);
  }
}

void Projector::appendConjunct(const System &system,
                               SmallVectorImpl<Conjunct> &out) {
  Conjunct &conjunct = out.emplace_back();
  for (const Constraint &eq : system.eqs) {
    conjunct.push_back(eq.p);
    conjunct.push_back(combine(-1, eq.p, 0, eq.p));
  }
  for (const Constraint &ineq : system.ineqs)
    conjunct.push_back(ineq.p);
}

/// Leaves out what overflows and, of too many constraints, those that depend on
/// most variables.
void Projector::eliminateByShadow(System system,
                                  SmallVectorImpl<Conjunct> &out) {
  auto numVariables = [](const Constraint &constraint) {
    return count_if(constraint.x, [](int64_t v) { return v != 0; });
  };
  while (true) {
    bool mayHold = tidy(system);
    if (takeOverflow()) {
      sort(system.ineqs, [&](const Constraint &x, const Constraint &y) {
        return numVariables(x) < numVariables(y);
      });
      system.ineqs.resize(
          std::min<size_t>(system.ineqs.size(), kMaxConstraints / 2));
      continue;
    }
    if (!mayHold)
      return;
    if (system.ineqs.size() > kMaxConstraints / 4)
      dropImplied(system);

    System next;
    unsigned numX = 0;
    for (const Constraint &ineq : system.ineqs)
      numX = std::max<unsigned>(numX, ineq.x.size());
    auto eq =
        find_if(system.eqs, [](const Constraint &eq) { return !eq.x.empty(); });
    if (eq == system.eqs.end() && numX == 0)
      break;
    auto append = [&](std::vector<Constraint> &to, Constraint constraint) {
      if (!takeOverflow())
        to.push_back(std::move(constraint));
    };
    if (eq != system.eqs.end()) {
      // Solves for the variable with the least coefficient.
      unsigned var = eq->x.size() - 1;
      for (unsigned i = 0, e = eq->x.size(); i != e; ++i)
        if (eq->x[i] != 0 &&
            AbsoluteValue(eq->x[i]) < AbsoluteValue(eq->x[var]))
          var = i;
      int64_t sign = eq->x[var] < 0 ? -1 : 1, scale = sign * eq->x[var];
      auto solve = [&](const Constraint &constraint) {
        return combine(scale, constraint, -sign * at(constraint.x, var), *eq);
      };
      for (auto it = system.eqs.begin(), e = system.eqs.end(); it != e; ++it)
        if (it != eq)
          append(next.eqs, solve(*it));
      for (const Constraint &ineq : system.ineqs)
        append(next.ineqs, solve(ineq));
      system = std::move(next);
      continue;
    }

    unsigned var = chooseVariable(system, numX);
    next.eqs = system.eqs;
    for (const Constraint &lower : system.ineqs) {
      if (at(lower.x, var) == 0)
        next.ineqs.push_back(lower);
      for (const Constraint &upper : system.ineqs)
        if (at(lower.x, var) > 0 && at(upper.x, var) < 0)
          append(next.ineqs,
                 combine(-upper.x[var], lower, lower.x[var], upper));
    }
    system = std::move(next);
  }
  appendConjunct(system, out);
}

void Projector::eliminate(System system, SmallVectorImpl<Conjunct> &out) {
  if (method == Method::Shadow)
    return eliminateByShadow(std::move(system), out);
  if (--budget < 0)
    failed = true;
  bool isFirst = true;
  while (true) {
    if (failed || !tidy(system))
      return;
    if (any_of(system.eqs,
               [](const Constraint &eq) { return !eq.x.empty(); })) {
      solveEquality(system);
      continue;
    }
    if (isFirst && isEmpty(system))
      return;
    isFirst = false;

    unsigned numX = 0;
    for (const Constraint &constraint : system.ineqs)
      numX = std::max<unsigned>(numX, constraint.x.size());
    if (numX == 0) {
      appendConjunct(system, out);
      if (out.size() > 4 * kMaxDisjuncts)
        failed = true;
      return;
    }

    unsigned best = chooseVariable(system, numX);
    System next;
    next.eqs = system.eqs;
    SmallVector<Constraint> lowers, uppers;
    for (Constraint &ineq : system.ineqs) {
      if (at(ineq.x, best) > 0)
        lowers.push_back(ineq);
      else if (at(ineq.x, best) < 0)
        uppers.push_back(ineq);
      else
        next.ineqs.push_back(ineq);
    }
    SmallVector<std::pair<unsigned, int64_t>> splinters;
    for (auto [index, lower] : enumerate(lowers)) {
      int64_t maxB = 0;
      for (const Constraint &upper : uppers) {
        bool isExact = true;
        next.ineqs.push_back(
            combineBounds(system, lower, upper, best, isExact));
        if (failed)
          return;
        if (!isExact)
          maxB = std::max(maxB, -upper.x[best]);
      }
      int64_t a = lower.x[best];
      if (maxB == 0)
        continue;
      int64_t product;
      if (MulOverflow(a, maxB, product) ||
          (product - a - maxB) / maxB >= kMaxSplinters) {
        failed = true;
        return;
      }
      for (int64_t k = 0; k <= (product - a - maxB) / maxB; ++k)
        splinters.push_back({index, k});
    }
    if (splinters.empty()) {
      system = std::move(next);
      continue;
    }
    // The dark shadow, and the solutions within its reach of a lower bound.
    eliminate(std::move(next), out);
    for (auto [index, k] : splinters) {
      System splinter = system;
      splinter.eqs.push_back(lowers[index]);
      splinter.eqs.back().p[0] -= k;
      eliminate(std::move(splinter), out);
    }
    return;
  }
}
