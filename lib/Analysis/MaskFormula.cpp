//===- MaskFormula.cpp - Boolean formulas of affine constraints -----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/MaskFormula.h"

using namespace mlir;
using namespace flash;

/// More sets than this cost more to test than the mask can save.
static constexpr size_t largestUnion = 16;

bool flash::isKnownNonNegative(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue() >= 0;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return true;
  if (expr.getKind() == AffineExprKind::Mod)
    return true;
  return isKnownNonNegative(binary.getLHS()) &&
         isKnownNonNegative(binary.getRHS());
}

MaskFormula MaskFormula::constraint(AffineExpr expr, bool isEquality) {
  expr = simplifyAffineExpr(expr, /*numDims=*/4, /*numSymbols=*/0);
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    int64_t value = constant.getValue();
    return (isEquality ? value == 0 : value >= 0) ? always() : never();
  }
  if (!isEquality && isKnownNonNegative(expr))
    return always();
  return MaskFormula({Conjunction{{expr, isEquality}}});
}

std::optional<MaskFormula> MaskFormula::compare(arith::CmpIPredicate predicate,
                                                AffineExpr lhs,
                                                AffineExpr rhs) {
  using Predicate = arith::CmpIPredicate;
  if (predicate >= Predicate::ult &&
      !(isKnownNonNegative(lhs) && isKnownNonNegative(rhs)))
    return std::nullopt;
  switch (predicate) {
  case Predicate::eq:
    return constraint(lhs - rhs, /*isEquality=*/true);
  case Predicate::ne:
    return constraint(lhs - rhs, /*isEquality=*/true).negate();
  case Predicate::slt:
  case Predicate::ult:
    return constraint(rhs - lhs - 1);
  case Predicate::sle:
  case Predicate::ule:
    return constraint(rhs - lhs);
  case Predicate::sgt:
  case Predicate::ugt:
    return constraint(lhs - rhs - 1);
  case Predicate::sge:
  case Predicate::uge:
    return constraint(lhs - rhs);
  }
  return std::nullopt;
}

std::optional<MaskFormula>
MaskFormula::conjoin(const MaskFormula &other) const {
  MaskFormula product = never();
  for (const Conjunction &lhs : sets)
    for (const Conjunction &rhs : other.sets) {
      Conjunction both = lhs;
      for (const MaskConstraint &constraint : rhs)
        if (!llvm::is_contained(both, constraint))
          both.push_back(constraint);
      product.sets.push_back(std::move(both));
    }
  if (product.sets.size() > largestUnion)
    return std::nullopt;
  return product;
}

std::optional<MaskFormula>
MaskFormula::disjoin(const MaskFormula &other) const {
  if (isAlways() || other.isAlways())
    return always();
  MaskFormula both = *this;
  llvm::append_range(both.sets, other.sets);
  if (both.sets.size() > largestUnion)
    return std::nullopt;
  return both;
}

std::optional<MaskFormula> MaskFormula::negate() const {
  // not (a or b) = not a and not b; within a set, not (x and y) = not x or
  // not y, where not (e >= 0) is -e - 1 >= 0.
  std::optional<MaskFormula> result = always();
  for (const Conjunction &set : sets) {
    std::optional<MaskFormula> opposite = never();
    for (const MaskConstraint &element : set) {
      opposite = opposite->disjoin(constraint(-element.expr - 1));
      if (opposite && element.isEquality)
        opposite = opposite->disjoin(constraint(element.expr - 1));
      if (!opposite)
        return std::nullopt;
    }
    result = result->conjoin(*opposite);
    if (!result)
      return std::nullopt;
  }
  return result;
}

MaskAttrInterface MaskFormula::toMask(MLIRContext *context, int64_t queries,
                                      int64_t keys) const {
  if (isAlways())
    return {};
  AffineExpr query = getAffineDimExpr(2, context),
             key = getAffineDimExpr(3, context);
  bool haveLengths =
      !ShapedType::isDynamic(queries) && !ShapedType::isDynamic(keys);
  auto diagonal = [&](int64_t shift) {
    AffineExpr distance = simplifyAffineExpr(query - key + shift, 4, 0);
    return Conjunction{{distance, /*isEquality=*/false}};
  };
  auto affine = [&](ArrayRef<AffineExpr> exprs, ArrayRef<bool> equalities) {
    return AffineMaskAttr::get(
        context, IntegerSetAttr::get(IntegerSet::get(4, 2, exprs, equalities)));
  };
  SmallVector<MaskAttrInterface> masks;
  for (const Conjunction &set : sets) {
    if (haveLengths && set == diagonal(keys - queries)) {
      masks.push_back(CausalAttr::get(context, Alignment::BottomRight));
      continue;
    }
    if (set == diagonal(0)) {
      masks.push_back(CausalAttr::get(context, Alignment::TopLeft));
      continue;
    }
    SmallVector<AffineExpr> exprs;
    SmallVector<bool> equalities;
    for (const MaskConstraint &constraint : set) {
      exprs.push_back(constraint.expr);
      equalities.push_back(constraint.isEquality);
    }
    masks.push_back(affine(exprs, equalities));
  }
  if (masks.empty())
    return affine(getAffineConstantExpr(-1, context), false);
  if (masks.size() == 1)
    return masks.front();
  return AnyOfAttr::get(context, masks);
}
