//===- NormalForm.h - A mask as a union of systems --------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes a mask, or its complement, as a union of systems of affine
// constraints. If an intersection of n unions is multiplied out, it has
// exponentially many pieces. Most are empty or part of another; those are
// dropped on the way. What is then still too much is replaced by less that
// holds at least what it should: an intersection leaves out what one of its
// parts demands, a union puts several pieces into one.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_ANALYSIS_NORMALFORM_H
#define FLASH_LIB_ANALYSIS_NORMALFORM_H

#include "Projection.h"
#include "flash/Analysis/MaskNodes.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace flash::detail {

/// The normal forms of one mask. Existential variables of a system are i, j, of
/// several heads h, and the quotients of these and the parameters that it uses.
class NormalForm {
public:
  /// A row over the parameters from the coefficients of b, h, nq, nk and the
  /// constant of an expression.
  using MakeRow = llvm::function_ref<Row(llvm::ArrayRef<int64_t>)>;

  /// `tile` holds what is known of i and j, and with `hasHeads` of h.
  NormalForm(llvm::ArrayRef<MaskNode> nodes, const System &tile, bool hasHeads,
             MakeRow makeRow);

  /// The pairs of the tile in the mask, or those not in it, as a union. The
  /// projector decides which systems are empty.
  std::vector<System> get(bool isComplement, Projector &projector);

  /// False if the last union may hold more than it should.
  bool isExact() const { return exact; }

private:
  /// Inequalities (>= 0) over the parameters, i, j and all quotients.
  using Piece = std::vector<Constraint>;
  using Pieces = std::vector<Piece>;

  void flatten(llvm::ArrayRef<MaskNode> nodes, MakeRow makeRow);
  System getSystem(const Piece &piece);
  bool add(Piece &piece, Constraint constraint);
  bool isPart(const Piece &lhs, const Piece &rhs);
  void insert(Pieces &pieces, Piece piece);
  Piece getHull(llvm::ArrayRef<Piece> pieces) const;
  bool isFew(Pieces &pieces, Projector &projector);
  void limit(Pieces &pieces, Projector &projector);
  Pieces intersect(const Pieces &lhs, const Pieces &rhs, Projector &projector);
  Pieces getSet(unsigned node, bool isComplement, Projector &projector);

  llvm::ArrayRef<MaskNode> nodes;
  const System &tile;
  unsigned firstQuotient; ///< The number of existentials before the quotients.
  /// The inequalities and equalities of each node that is a set; none for what
  /// is beyond the limits.
  struct FlatConstraint {
    std::optional<Constraint> constraint;
    bool isEquality;
  };
  std::vector<std::vector<FlatConstraint>> sets;
  /// The two bounds of each quotient's remainder.
  std::vector<Piece> definitions;
  bool exact = true;
  int64_t budget = 0;
};

} // namespace flash::detail

#endif // FLASH_LIB_ANALYSIS_NORMALFORM_H
