//===- Projection.h - Exact integer projection ------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Eliminates integer variables from systems of affine constraints, exactly:
// the result holds for the parameters iff some integer values of the eliminated
// variables satisfy the system. This is the Omega test (W. Pugh, 1991) with one
// addition: a result may contain floor divisions of parameters, so a variable
// bounded on one side by parameters only needs no dark shadow and no splinters.
//
// Or eliminates them by rational shadows only: the result holds wherever the
// exact one does, and more than that where a quotient has few values or the
// bounds of a variable leave a gap. That takes little time for any system.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_ANALYSIS_PROJECTION_H
#define FLASH_LIB_ANALYSIS_PROJECTION_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <vector>

namespace flash::detail {

/// Coefficients of an affine expression. Element 0 is the constant, then come
/// the parameters, then the divisions in the order the projector made them.
/// Missing trailing elements are zero.
using Row = llvm::SmallVector<int64_t, 8>;

/// The affine expression `p . (1, parameters, divisions) + x . existentials`.
struct Constraint {
  Row p, x;
};

/// Equalities (== 0) and inequalities (>= 0) over existential variables.
struct System {
  std::vector<Constraint> eqs;
  std::vector<Constraint> ineqs;
};

/// A conjunction of inequalities (>= 0) over parameters and divisions.
using Conjunct = llvm::SmallVector<Row, 2>;

/// The quotient `floor(num / den)` of an expression over the parameters and
/// earlier divisions.
struct Division {
  Row num;
  int64_t den;
};

/// Projects systems that share parameters and a context of facts about them.
/// Work is bounded: an exact projector that meets a system beyond the limits
/// has failed, and every result since construction is then meaningless. One
/// with shadows never fails; its results hold at least what they should.
class Projector {
public:
  enum class Method { Exact, Shadow };
  static constexpr unsigned kMaxDisjuncts = 24;

  Projector(unsigned numParams, llvm::ArrayRef<Row> context, Method method);

  Method getMethod() const { return method; }
  bool hasFailed() const { return failed; }
  llvm::ArrayRef<Division> getDivisions() const { return divisions; }
  void addContext(llvm::ArrayRef<Row> rows);

  /// Appends the projection of `system`, a union, to `out`.
  void eliminate(System system, llvm::SmallVectorImpl<Conjunct> &out);

  /// Rewrites the union with fewer disjuncts and constraints, equal inside the
  /// context. Constraints without parameter `solveFor` are dropped first, and
  /// divisions of that parameter become bounds where possible.
  void simplify(llvm::SmallVectorImpl<Conjunct> &conjuncts, unsigned solveFor);

  /// True if it is known that no rational point of the context satisfies the
  /// system.
  bool isEmpty(const System &system);
  /// True if it is known that `row >= 0` wherever the context and `given` hold.
  bool isImplied(const Row &row, llvm::ArrayRef<Row> given,
                 bool useContext = true);

  /// The expression floor(num / den); den > 0.
  Row floorDivide(Row num, int64_t den);
  /// True if a division in the row depends on the parameter at `column`.
  bool hasDivisionOf(llvm::ArrayRef<int64_t> row, unsigned column) const;

  /// a * x + b * y, failing on overflow.
  Row combine(int64_t a, const Row &x, int64_t b, const Row &y);
  static int64_t at(llvm::ArrayRef<int64_t> row, unsigned column) {
    return column < row.size() ? row[column] : 0;
  }
  static bool isConstant(llvm::ArrayRef<int64_t> row);
  /// The integer complement of `row >= 0`.
  Row negate(const Row &row);

private:
  Constraint combine(int64_t a, const Constraint &x, int64_t b,
                     const Constraint &y);
  /// Divides by the common factor, rounding the constant of an inequality.
  /// Returns false if the constraint cannot hold.
  bool normalize(Constraint &constraint, bool isEquality);
  bool tidy(System &system);
  void solveEquality(System &system);
  void dropImplied(System &system);
  /// Adds what a system without variables to eliminate says of the others.
  void appendConjunct(const System &system,
                      llvm::SmallVectorImpl<Conjunct> &out);
  void eliminateByShadow(System system, llvm::SmallVectorImpl<Conjunct> &out);
  /// Whether the limit on tests leaves another one.
  bool mayTest();
  /// Whether the last combinations did overflow, which a shadow leaves out.
  bool takeOverflow();
  unsigned chooseVariable(const System &system, unsigned numX);
  Constraint combineBounds(const System &system, const Constraint &lower,
                           const Constraint &upper, unsigned var,
                           bool &isExact);
  bool isolate(Row &row, unsigned column);
  void simplifyConjunct(Conjunct &conjunct, unsigned solveFor);
  bool isSubset(const Conjunct &lhs, const Conjunct &rhs);
  bool merge(const Conjunct &lhs, const Conjunct &rhs, Conjunct &merged);

  unsigned firstDivision;
  Method method;
  llvm::SmallVector<Row> context;
  llvm::SmallVector<Division> divisions;
  int budget = 400;
  unsigned numTests = 0;
  bool failed = false;
};

} // namespace flash::detail

#endif // FLASH_LIB_ANALYSIS_PROJECTION_H
