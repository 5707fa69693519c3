//===- VerifyCounts.cpp - Roles go through a ring in the same steps -------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How often a role does a step is a sum of terms: the loops and choices around
// each op that does one. The terms of two roles are compared after a few
// rewrites, which take back what passes do to the loops of one role: the first
// or last iteration of a loop stands beside it, or is chosen inside of it.
//
//===----------------------------------------------------------------------===//

#include "VerifyRoles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"
#include <map>

using namespace mlir;
using namespace flash::tile;

namespace {
/// Numbers values such that those with the same number are equal, also where
/// each role computes its own.
class Numbering {
public:
  unsigned get(Value value);
  unsigned getConstant(int64_t value);
  /// The number of the truth of `lhs < rhs`, as signed numbers.
  unsigned getLess(unsigned lhs, unsigned rhs);
  /// The number of the condition that `value` is, or is the negation of; the
  /// flag says which.
  std::pair<unsigned, bool> getCondition(Value value);
  void setInductionVar(Value iv, unsigned lower, unsigned upper, unsigned step);
  /// How much greater `to` is than `from`, if that is a known constant.
  std::optional<int64_t> getDistance(unsigned from, unsigned to);
  /// The number to which `amount` must be added for `number`, if it is known.
  std::optional<unsigned> subtract(unsigned number, unsigned amount);
  std::optional<int64_t> getConstantValue(unsigned number) const;
  /// Whether the condition of that number is `lhs == rhs`: for an induction
  /// variable and its lower bound, whether the loop is in its first iteration.
  bool isEqual(unsigned condition, unsigned lhs, unsigned rhs) const;
  unsigned getInductionVar(unsigned lower, unsigned upper, unsigned step);

private:
  /// What is computed, the attributes, and from which numbers.
  using Key = std::tuple<StringRef, const void *, SmallVector<int64_t>>;
  unsigned number(Key key);
  /// The number of a result of a loop that computes scalars.
  unsigned getOfLoop(scf::ForOp loop, unsigned result);

  DenseMap<Value, unsigned> known;
  std::map<Key, unsigned> numbers;
  SmallVector<Key> keys;
};

/// A loop around an op, or a choice.
struct Factor {
  enum Kind { Loop, Choice } kind;
  /// The bounds and the step of a loop; of a choice the condition and whether
  /// it holds.
  unsigned a, b, c;

  bool operator==(const Factor &o) const {
    return std::tie(kind, a, b, c) == std::tie(o.kind, o.a, o.b, o.c);
  }
  bool operator<(const Factor &o) const {
    return std::tie(kind, a, b, c) < std::tie(o.kind, o.a, o.b, o.c);
  }
};

/// An op that does one step, and what is around it, from outside to inside.
struct Term {
  SmallVector<Factor> factors;
  Operation *op;
  /// How often more it is reached, by loops that are no factors.
  int64_t times = 1;
};

using Terms = SmallVector<Term>;
} // namespace

//===----------------------------------------------------------------------===//
// Numbers of values
//===----------------------------------------------------------------------===//

unsigned Numbering::number(Key key) {
  auto [at, isNew] = numbers.try_emplace(key, keys.size());
  if (isNew)
    keys.push_back(std::move(key));
  return at->second;
}

unsigned Numbering::getConstant(int64_t value) {
  return number({"constant", nullptr, {value}});
}

std::optional<int64_t> Numbering::getConstantValue(unsigned n) const {
  auto &[name, attributes, operands] = keys[n];
  return name == "constant" ? std::optional(operands[0]) : std::nullopt;
}

unsigned Numbering::getLess(unsigned lhs, unsigned rhs) {
  if (std::optional<int64_t> distance = getDistance(lhs, rhs))
    return getConstant(*distance > 0);
  return number({"slt", nullptr, {lhs, rhs}});
}

unsigned Numbering::getInductionVar(unsigned lower, unsigned upper,
                                    unsigned step) {
  return number({"iteration", nullptr, {lower, upper, step}});
}

void Numbering::setInductionVar(Value iv, unsigned lower, unsigned upper,
                                unsigned step) {
  known[iv] = getInductionVar(lower, upper, step);
}

unsigned Numbering::get(Value value) {
  if (auto at = known.find(value); at != known.end())
    return at->second;
  auto remember = [&](unsigned n) { return known[value] = n; };
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return remember(getConstant(*constant));
  Operation *op = value.getDefiningOp();
  // What a role reads does not change while the kernel runs.
  bool isComputed =
      op && op->getNumRegions() == 0 && getRole(op) &&
      (isMemoryEffectFree(op) || hasSingleEffect<MemoryEffects::Read>(op)) &&
      !isa<TileDialect>(op->getDialect());
  if (auto loop = llvm::dyn_cast_or_null<scf::ForOp>(op);
      loop && getRole(op) && computesScalars(op))
    return remember(getOfLoop(loop, cast<OpResult>(value).getResultNumber()));
  // Nor does a claim differ between roles.
  isComputed |= op && isa<ClaimOp>(op);
  if (!isComputed)
    return remember(number({"value", value.getAsOpaquePointer(), {}}));
  SmallVector<int64_t> operands{cast<OpResult>(value).getResultNumber()};
  for (Value operand : op->getOperands())
    operands.push_back(get(operand));
  if (isa<arith::AddIOp>(op)) {
    std::optional<int64_t> a = getConstantValue(operands[1]),
                           b = getConstantValue(operands[2]);
    if (a && b)
      return remember(getConstant(*a + *b));
  }
  return remember(number({op->getName().getStringRef(),
                          op->getAttrDictionary().getAsOpaquePointer(),
                          std::move(operands)}));
}

unsigned Numbering::getOfLoop(scf::ForOp loop, unsigned result) {
  SmallVector<int64_t> operands;
  for (Value operand : loop->getOperands())
    operands.push_back(get(operand));
  setInductionVar(loop.getInductionVar(), operands[0], operands[1],
                  operands[2]);
  // In loops with equal bounds and initial values, bodies that compute equal
  // values from what is carried do so in each iteration.
  for (auto [i, carried] : llvm::enumerate(loop.getRegionIterArgs())) {
    SmallVector<int64_t> ofCarried(operands);
    ofCarried.push_back(i);
    known[carried] = number({"carried", nullptr, std::move(ofCarried)});
  }
  for (Value yielded : loop.getYieldedValues())
    operands.push_back(get(yielded));
  operands.push_back(result);
  return number({"loop", nullptr, std::move(operands)});
}

std::optional<int64_t> Numbering::getDistance(unsigned from, unsigned to) {
  if (from == to)
    return 0;
  std::optional<int64_t> a = getConstantValue(from), b = getConstantValue(to);
  if (a && b)
    return *b - *a;
  std::optional<unsigned> added = subtract(to, from);
  return added ? getConstantValue(*added) : std::nullopt;
}

std::optional<unsigned> Numbering::subtract(unsigned n, unsigned amount) {
  std::optional<int64_t> a = getConstantValue(n), b = getConstantValue(amount);
  if (a && b)
    return getConstant(*a - *b);
  auto &[name, attributes, operands] = keys[n];
  if (name != arith::AddIOp::getOperationName())
    return std::nullopt;
  if (operands[2] == amount)
    return operands[1];
  if (operands[1] == amount)
    return operands[2];
  return std::nullopt;
}

std::pair<unsigned, bool> Numbering::getCondition(Value value) {
  using arith::CmpIPredicate;
  if (auto negation = value.getDefiningOp<arith::XOrIOp>();
      negation && isOneInteger(getAsOpFoldResult(negation.getRhs()))) {
    auto [condition, holds] = getCondition(negation.getLhs());
    return {condition, !holds};
  }
  auto compare = value.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return {get(value), true};
  unsigned lhs = get(compare.getLhs()), rhs = get(compare.getRhs());
  switch (compare.getPredicate()) {
  case CmpIPredicate::slt:
    return {getLess(lhs, rhs), true};
  case CmpIPredicate::sge:
    return {getLess(lhs, rhs), false};
  case CmpIPredicate::sgt:
    return {getLess(rhs, lhs), true};
  case CmpIPredicate::sle:
    return {getLess(rhs, lhs), false};
  case CmpIPredicate::eq:
    return {number({"eq", nullptr, {lhs, rhs}}), true};
  case CmpIPredicate::ne:
    return {number({"eq", nullptr, {lhs, rhs}}), false};
  default:
    return {get(value), true};
  }
}

bool Numbering::isEqual(unsigned condition, unsigned lhs, unsigned rhs) const {
  return keys[condition] == Key{"eq", nullptr, {lhs, rhs}};
}

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

namespace {
/// What one role does to each ring.
class RoleSteps {
public:
  RoleSteps(Numbering &numbers, std::function<Value(Operation *)> getRing)
      : numbers(numbers), getRing(std::move(getRing)) {}

  void collect(Block &block);

  llvm::MapVector<Value, Terms> terms;

private:
  Numbering &numbers;
  /// The ring that the op does a step of, or null.
  std::function<Value(Operation *)> getRing;
  SmallVector<Factor> around;
};
} // namespace

void RoleSteps::collect(Block &block) {
  for (Operation &op : block) {
    if (Value ring = getRing(&op)) {
      terms[ring].push_back({around, &op});
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      unsigned lower = numbers.get(loop.getLowerBound()),
               upper = numbers.get(loop.getUpperBound()),
               step = numbers.get(loop.getStep());
      numbers.setInductionVar(loop.getInductionVar(), lower, upper, step);
      around.push_back({Factor::Loop, lower, upper, step});
      collect(*loop.getBody());
      around.pop_back();
    } else if (auto choice = dyn_cast<scf::IfOp>(op)) {
      auto [condition, holds] = numbers.getCondition(choice.getCondition());
      for (Region &branch : choice->getRegions()) {
        bool isThen = &branch == &choice.getThenRegion();
        around.push_back({Factor::Choice, condition, isThen == holds, 0});
        for (Block &inner : branch)
          collect(inner);
        around.pop_back();
      }
    }
  }
}

/// Leaves out of the choices around an op those that are known; returns false
/// if the op is known to be never reached.
static bool simplify(Term &term, Numbering &numbers) {
  SmallVector<Factor> factors;
  for (Factor factor : term.factors) {
    if (factor.kind == Factor::Choice) {
      // The first iteration of a loop is one, wherever there is any.
      if (!factors.empty() && factors.back().kind == Factor::Loop && factor.b) {
        Factor loop = factors.back();
        if (numbers.isEqual(factor.a,
                            numbers.getInductionVar(loop.a, loop.b, loop.c),
                            loop.a)) {
          factors.pop_back();
          factor.a = numbers.getLess(loop.a, loop.b);
        }
      }
      if (std::optional<int64_t> known = numbers.getConstantValue(factor.a)) {
        if (bool(*known) != bool(factor.b))
          return false;
        continue;
      }
      Factor opposite = factor;
      opposite.b = !factor.b;
      if (llvm::is_contained(factors, opposite))
        return false;
      if (llvm::is_contained(factors, factor))
        continue;
    }
    factors.push_back(factor);
  }
  term.factors = std::move(factors);
  return true;
}

/// Whether `a` and `b` together are as often as the one term that `a` becomes.
static bool unite(Term &a, const Term &b, Numbering &numbers) {
  // A choice taken either way.
  if (a.factors.size() == b.factors.size()) {
    std::optional<size_t> differs;
    for (size_t i = 0; i < a.factors.size(); ++i) {
      if (a.factors[i] == b.factors[i])
        continue;
      Factor opposite = a.factors[i];
      opposite.b = !opposite.b;
      if (differs || a.factors[i].kind != Factor::Choice ||
          !(opposite == b.factors[i]))
        return false;
      differs = i;
    }
    if (!differs)
      return false;
    a.factors.erase(a.factors.begin() + *differs);
    return true;
  }
  // One iteration beside a loop over the others.
  if (a.factors.size() != b.factors.size() + 1 ||
      a.factors.back().kind != Factor::Loop ||
      !llvm::equal(ArrayRef(a.factors).drop_back(), b.factors))
    return false;
  Factor &loop = a.factors.back();
  std::optional<unsigned> first = numbers.subtract(loop.a, loop.c);
  if (!first)
    return false;
  Factor isEntered{Factor::Choice, numbers.getLess(*first, loop.b), 1, 0};
  std::optional<int64_t> known = numbers.getConstantValue(isEntered.a);
  if (known ? !*known : !llvm::is_contained(b.factors, isEntered))
    return false;
  loop.a = *first;
  return true;
}

/// Leaves out choices by whether the loop in them has an iteration, which
/// change nothing, and counts the iterations of loops where they are known,
/// unless choices in them may differ from one to the next; returns false if the
/// op is in a loop that is known to have none.
static bool dropLoops(Term &term, Numbering &numbers) {
  SmallVector<Factor> factors;
  for (auto [i, factor] : llvm::enumerate(term.factors)) {
    if (factor.kind == Factor::Loop) {
      unsigned isEntered = numbers.getLess(factor.a, factor.b);
      if (!factors.empty() &&
          factors.back() == Factor{Factor::Choice, isEntered, 1, 0})
        factors.pop_back();
      std::optional<int64_t> distance = numbers.getDistance(factor.a, factor.b),
                             step = numbers.getConstantValue(factor.c);
      if (distance && *distance <= 0)
        return false;
      bool isOnce = distance && step && *distance <= *step;
      bool hasChoices = llvm::any_of(
          ArrayRef(term.factors).drop_front(i + 1),
          [](const Factor &inner) { return inner.kind == Factor::Choice; });
      if (distance && step && (isOnce || !hasChoices)) {
        term.times *= llvm::divideCeil(*distance, *step);
        continue;
      }
    }
    factors.push_back(factor);
  }
  term.factors = std::move(factors);
  return true;
}

static void simplify(Terms &terms, Numbering &numbers) {
  llvm::erase_if(terms, [&](Term &term) { return !simplify(term, numbers); });
  auto uniteTwo = [&] {
    for (size_t i = 0; i < terms.size(); ++i)
      for (size_t j = 0; j < terms.size(); ++j)
        if (i != j && unite(terms[i], terms[j], numbers)) {
          terms.erase(terms.begin() + j);
          return true;
        }
    return false;
  };
  while (uniteTwo())
    ;
  llvm::erase_if(terms, [&](Term &term) { return !dropLoops(term, numbers); });
  llvm::sort(terms, [](const Term &a, const Term &b) {
    return a.factors < b.factors;
  });
  Terms summed;
  for (Term &term : terms)
    if (!summed.empty() && summed.back().factors == term.factors)
      summed.back().times += term.times;
    else
      summed.push_back(std::move(term));
  terms = std::move(summed);
}

/// The op of the first of `terms` that `others` lack, or null.
static Operation *findMissing(ArrayRef<Term> terms, ArrayRef<Term> others) {
  size_t i = 0;
  for (const Term &term : terms) {
    while (i < others.size() && others[i].factors < term.factors)
      ++i;
    if (i == others.size() || !(others[i].factors == term.factors) ||
        others[i].times < term.times)
      return term.op;
    ++i;
  }
  return nullptr;
}

/// The first op that fills the stage which `acquire` takes.
static Operation *getFill(Operation *acquire) {
  Operation *fill = acquire;
  for (Operation *op = acquire->getNextNode(); op && fill == acquire;
       op = op->getNextNode())
    op->walk([&](RingOpInterface other) {
      if (!other.hasRingEffect(RingEffect::Fill) ||
          other.getRing() != cast<RingOpInterface>(acquire).getRing())
        return WalkResult::advance();
      fill = other;
      return WalkResult::interrupt();
    });
  return fill;
}

/// Warpgroups that do not have the rows wait for the others as often as those
/// that have them.
static LogicalResult verifyPingPongs(HasRowsOp has, Numbering &numbers) {
  Region *role = getRole(has);
  if (!role)
    return success();
  RoleSteps waits(numbers, [&](Operation *op) {
    return isa<PingPongWaitOp>(op) ? has.getResult() : Value();
  });
  waits.collect(role->front());
  Terms &terms = waits.terms[has];
  simplify(terms, numbers);
  unsigned condition = numbers.getCondition(has).first;
  for (const Term &term : terms)
    for (const Factor &factor : term.factors)
      if (factor.kind == Factor::Choice && factor.a == condition)
        return term.op
                   ->emitOpError("is in one branch of a choice by "
                                 "tile.has_rows, and all warpgroups wait "
                                 "equally often; the other branch needs it, "
                                 "too")
                   .attachNote(has.getLoc())
               << "the choice";
  return success();
}

LogicalResult flash::tile::verifyCounts(WarpSpecializeOp roles) {
  Numbering numbers;
  // Every stage that is taken is filled, by one op or several.
  auto having = [](RingEffect effect) {
    return [effect](Operation *op) {
      auto ringOp = dyn_cast<RingOpInterface>(op);
      return ringOp && ringOp.hasRingEffect(effect) ? ringOp.getRing()
                                                    : Value();
    };
  };
  auto ofAcquire = having(RingEffect::Acquire),
       ofRelease = having(RingEffect::Release),
       ofCheck = having(RingEffect::CheckFinite);
  // One role fills a ring; each that gives stages back does so for all of them.
  RoleSteps copied(numbers, ofAcquire);
  std::vector<RoleSteps> released(roles.getNumRoles(),
                                  RoleSteps(numbers, ofRelease)),
      checked(roles.getNumRoles(), RoleSteps(numbers, ofCheck));
  for (unsigned role = 0; role < roles.getNumRoles(); ++role)
    for (RoleSteps *steps : {&copied, &released[role], &checked[role]})
      steps->collect(roles.getRoles()[role].front());
  auto simplifyAll = [&](RoleSteps &steps) {
    for (auto &[ring, terms] : steps.terms)
      simplify(terms, numbers);
  };
  simplifyAll(copied);
  llvm::for_each(released, simplifyAll);
  llvm::for_each(checked, simplifyAll);

  WalkResult walk = roles.walk([&](HasRowsOp has) -> WalkResult {
    return verifyPingPongs(has, numbers);
  });
  if (walk.wasInterrupted())
    return failure();
  walk = roles->getParentOfType<gpu::GPUFuncOp>().walk(
      [&](RingOp ring) -> WalkResult {
        Terms &copies = copied.terms[ring];
        auto compare = [&](Terms &steps, StringRef what) -> LogicalResult {
          Operation *copy = findMissing(copies, steps),
                    *step = findMissing(steps, copies);
          if (!copy && !step)
            return success();
          InFlightDiagnostic error = ring.emitOpError("is copied to in steps "
                                                      "that are not those in "
                                                      "which it is ")
                                     << what;
          if (copy)
            error.attachNote(getFill(copy)->getLoc())
                << "copied, without a counterpart";
          if (step)
            error.attachNote(step->getLoc())
                << what << ", without a counterpart";
          return error;
        };
        auto compareAll = [&](MutableArrayRef<RoleSteps> steps,
                              StringRef what) -> LogicalResult {
          bool found = false;
          for (RoleSteps &ofRole : steps) {
            auto terms = ofRole.terms.find(ring);
            if (terms == ofRole.terms.end())
              continue;
            found = true;
            if (failed(compare(terms->second, what)))
              return failure();
          }
          Terms none;
          return found ? success() : compare(none, what);
        };
        if (failed(compareAll(released, "released")))
          return failure();
        return ring.getChecked() || ring.getFinite()
                   ? compareAll(checked, "checked")
                   : success();
      });
  return failure(walk.wasInterrupted());
}
