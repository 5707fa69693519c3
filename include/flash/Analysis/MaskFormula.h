//===- MaskFormula.h - Boolean formulas of affine constraints ---*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_ANALYSIS_MASKFORMULA_H
#define FLASH_ANALYSIS_MASKFORMULA_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <optional>

namespace flash {

/// `expr >= 0`, or `expr == 0`.
struct MaskConstraint {
  mlir::AffineExpr expr;
  bool isEquality;
  bool operator==(const MaskConstraint &other) const {
    return expr == other.expr && isEquality == other.isEquality;
  }
};

/// A union of intersections of affine constraints over the dimensions
/// (b, h, i, j) of a mask. Operations that would need too many sets give none.
class MaskFormula {
public:
  /// The formula that always holds.
  static MaskFormula always() { return MaskFormula({Conjunction()}); }
  /// The formula that never holds.
  static MaskFormula never() { return MaskFormula({}); }
  /// `lhs predicate rhs`; none where a comparison of unsigned values may not be
  /// one of signed values.
  static std::optional<MaskFormula>
  compare(mlir::arith::CmpIPredicate predicate, mlir::AffineExpr lhs,
          mlir::AffineExpr rhs);

  std::optional<MaskFormula> conjoin(const MaskFormula &other) const;
  std::optional<MaskFormula> disjoin(const MaskFormula &other) const;
  std::optional<MaskFormula> negate() const;

  /// Whether no constraint is left.
  bool isAlways() const { return llvm::is_contained(sets, Conjunction()); }

  /// The mask that keeps the elements for which the formula holds, or null
  /// where it always does. `queries` and `keys` are the lengths, if static.
  MaskAttrInterface toMask(mlir::MLIRContext *context, int64_t queries,
                           int64_t keys) const;

  bool operator==(const MaskFormula &other) const { return sets == other.sets; }

private:
  using Conjunction = llvm::SmallVector<MaskConstraint>;

  explicit MaskFormula(llvm::SmallVector<Conjunction> sets)
      : sets(std::move(sets)) {}
  static MaskFormula constraint(mlir::AffineExpr expr, bool isEquality = false);

  llvm::SmallVector<Conjunction> sets;
};

/// Whether `expr` is not negative when its dimensions are not.
bool isKnownNonNegative(mlir::AffineExpr expr);

} // namespace flash

#endif // FLASH_ANALYSIS_MASKFORMULA_H
