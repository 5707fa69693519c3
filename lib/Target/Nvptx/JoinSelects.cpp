//===- JoinSelects.cpp - One selection by several conditions --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JoinSelects.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace PatternMatch;

namespace {
/// `chosen` where all of some conditions hold, a constant otherwise.
struct Selection {
  /// None unless `select` is of two values and one of them is constant.
  static std::optional<Selection> get(SelectInst *select);

  SelectInst *select;
  Value *chosen;
  Constant *otherwise;
  /// Whether the condition of `select` must not hold.
  bool isInverse;
};
} // namespace

std::optional<Selection> Selection::get(SelectInst *select) {
  if (!select->getType()->isFloatTy() ||
      !select->getCondition()->getType()->isIntegerTy(1))
    return std::nullopt;
  Value *held = select->getTrueValue(), *other = select->getFalseValue();
  if (auto *constant = dyn_cast<Constant>(other))
    return Selection{select, held, constant, /*isInverse=*/false};
  if (auto *constant = dyn_cast<Constant>(held))
    return Selection{select, other, constant, /*isInverse=*/true};
  return std::nullopt;
}

/// What a selection takes if its conditions hold, if that is a selection with
/// the same constant and without another use. What is in front of a loop stays
/// there.
static std::optional<Selection> getInner(const Selection &outer) {
  auto *select = dyn_cast<SelectInst>(outer.chosen);
  if (!select || !select->hasOneUse() ||
      select->getParent() != outer.select->getParent())
    return std::nullopt;
  std::optional<Selection> inner = Selection::get(select);
  return inner && inner->otherwise == outer.otherwise ? inner : std::nullopt;
}

namespace {
/// A condition that must hold, or must not.
struct Condition {
  Value *value;
  bool isInverse;
};
} // namespace

/// What must hold, or not, for a condition without another use to do so.
static void collectConditions(Value *condition, bool isInverse,
                              SmallVectorImpl<Condition> &all) {
  Value *first, *second;
  if (isInverse ? match(condition,
                        m_OneUse(m_LogicalOr(m_Value(first), m_Value(second))))
                : match(condition, m_OneUse(m_LogicalAnd(m_Value(first),
                                                         m_Value(second))))) {
    collectConditions(first, isInverse, all);
    collectConditions(second, isInverse, all);
    return;
  }
  all.push_back({condition, isInverse});
}

static Value *emit(IRBuilder<> &b, Condition condition) {
  if (!condition.isInverse)
    return condition.value;
  if (auto *compare = dyn_cast<CmpInst>(condition.value))
    return b.CreateCmp(compare->getInversePredicate(), compare->getOperand(0),
                       compare->getOperand(1));
  return b.CreateNot(condition.value);
}

/// Whether a comparison waits for memory.
static bool readsMemory(Condition condition) {
  auto *compare = dyn_cast<CmpInst>(condition.value);
  return compare && any_of(compare->operands(), [](Value *operand) {
           while (auto *cast = dyn_cast<CastInst>(operand))
             operand = cast->getOperand(0);
           return isa<LoadInst>(operand);
         });
}

static Value *join(IRBuilder<> &b, ArrayRef<Condition> conditions) {
  Type *type = b.getInt1Ty();
  auto *assembly = InlineAsm::get(
      FunctionType::get(type, {type, type}, /*isVarArg=*/false),
      "and.pred $0, $1, $2;", "=b,b,b", /*hasSideEffects=*/false);
  // The innermost condition first, which held before the others did.
  Value *all = emit(b, conditions.back());
  for (Condition condition : reverse(conditions.drop_back())) {
    CallInst *both = b.CreateCall(assembly, {all, emit(b, condition)});
    both->setDoesNotAccessMemory();
    both->setDoesNotThrow();
    all = both;
  }
  return all;
}

PreservedAnalyses flash::JoinSelectsPass::run(Function &function,
                                              FunctionAnalysisManager &) {
  SmallVector<SelectInst *> selects;
  SmallPtrSet<SelectInst *, 16> inner;
  for (Instruction &instruction : instructions(function)) {
    auto *select = dyn_cast<SelectInst>(&instruction);
    std::optional<Selection> selection =
        select ? Selection::get(select) : std::nullopt;
    if (!selection)
      continue;
    selects.push_back(select);
    if (std::optional<Selection> in = getInner(*selection))
      inner.insert(in->select);
  }
  for (SelectInst *select : selects) {
    if (inner.contains(select))
      continue;
    SmallVector<Condition> conditions;
    Value *chosen = nullptr;
    Constant *otherwise = nullptr;
    for (std::optional<Selection> each = Selection::get(select); each;
         each = getInner(*each)) {
      collectConditions(each->select->getCondition(), each->isInverse,
                        conditions);
      chosen = each->chosen;
      otherwise = each->otherwise;
    }
    // Where 0 is the other value, in gradients, what waits for memory has
    // selections of its own, or the others would hold registers until it is
    // there. Scores become -inf before anything else is in registers.
    SmallVector<Condition> ofRegisters, ofMemory;
    for (Condition condition : conditions)
      (otherwise->isZeroValue() && readsMemory(condition) ? ofMemory
                                                          : ofRegisters)
          .push_back(condition);
    if (ofRegisters.size() < 2)
      continue;
    IRBuilder<> b(select);
    Value *joined = b.CreateSelect(join(b, ofRegisters), chosen, otherwise);
    for (Condition condition : ofMemory)
      joined = b.CreateSelect(emit(b, condition), joined, otherwise);
    select->replaceAllUsesWith(joined);
    RecursivelyDeleteTriviallyDeadInstructions(select);
  }
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
