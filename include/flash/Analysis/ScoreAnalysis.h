//===- ScoreAnalysis.h - What the elements of a tensor mean -----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Evaluates linalg, arith and tensor ops symbolically, one element at a time.
// The result says from which product and at which indices a value comes, its
// scale, and for which (b, h, i, j) it is not -inf. It does not depend on the
// form of the ops: they may be named or generic, fused or separate, and on
// tensors or on scalars.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_ANALYSIS_SCOREANALYSIS_H
#define FLASH_ANALYSIS_SCOREANALYSIS_H

#include "flash/Analysis/MaskFormula.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

namespace flash {

/// The positions of the query, the key and the value column among the variables
/// (b, h, i, j, e) of an attention.
enum : unsigned { queryVar = 2, keyVar = 3, columnVar = 4 };

/// One element of a tensor, or one scalar, as a function of (b, h, i, j). Which
/// fields have a meaning depends on `kind`.
struct Element {
  enum Kind {
    Number,    ///< `number`
    Index,     ///< the integer `index`
    Predicate, ///< whether `kept`
    Bias,      ///< 0 where `kept`, else -inf
    // From here on: functions of a score.
    Score,       ///< `scale * product[at]` where `kept`, else -inf
    RowMaximum,  ///< the maximum of the scores over j
    Shifted,     ///< a score less the maximum
    Exponential, ///< exp(shifted)
    RowSum,      ///< the sum of the exponentials over j
    Probability  ///< exponential / sum
  };

  explicit Element(Kind kind) : kind(kind) {}
  static Element ofNumber(double value) {
    Element element(Number);
    element.number = value;
    return element;
  }
  static Element ofIndex(mlir::AffineExpr expr) {
    Element element(Index);
    element.index = expr;
    return element;
  }

  Kind kind;
  double number = 0;
  mlir::AffineExpr index;
  MaskFormula kept = MaskFormula::always();
  double scale = 1;
  mlir::linalg::LinalgOp product;
  llvm::SmallVector<mlir::AffineExpr> at;

  bool isFunctionOfScore() const { return kind >= Score; }
  /// Whether both elements are functions of the same scores.
  bool hasScoresOf(const Element &other) const {
    return product == other.product && scale == other.scale && at == other.at &&
           kept == other.kept;
  }
};

/// Whether `op` sums the products of the elements of its two inputs over one
/// dimension, with at most widening casts in between.
bool isFloatProduct(mlir::linalg::LinalgOp op);

class ScoreAnalysis {
public:
  explicit ScoreAnalysis(mlir::MLIRContext *context) : context(context) {}

  /// The element of the tensor `value` at the indices `at`. If `value` is a
  /// scalar in the body of a linalg op, its value in the iteration whose loops
  /// have the indices `at`. Nothing if the analysis does not understand how the
  /// value is computed, or after 1024 steps of this object.
  std::optional<Element> evaluate(mlir::Value value,
                                  llvm::ArrayRef<mlir::AffineExpr> at);

  /// Whether the accumulator with which `op` starts is known to be zero.
  bool accumulatesFromZero(mlir::linalg::LinalgOp op);

  /// The tensors found to be functions of the scores.
  llvm::ArrayRef<mlir::Value> getScoreTensors() const {
    return scoreTensors.getArrayRef();
  }

private:
  using Result = std::optional<Element>;
  using Indices = llvm::ArrayRef<mlir::AffineExpr>;

  Result compute(mlir::Value value, Indices at);
  Result constant(mlir::Attribute attribute);
  Result linalgResult(mlir::linalg::LinalgOp op, mlir::OpResult result,
                      Indices at);
  Result reduction(mlir::linalg::LinalgOp op, Indices at, Indices loops);
  Result softmax(mlir::linalg::SoftmaxOp op, Indices at);
  Result collapsed(mlir::tensor::CollapseShapeOp op, Indices at);
  Result expanded(mlir::tensor::ExpandShapeOp op, Indices at);
  Result elementwise(mlir::Operation *op, Indices at);
  Result binaryFloat(mlir::Operation *op, const Element &lhs,
                     const Element &rhs);
  Result binaryInteger(mlir::Operation *op, const Element &lhs,
                       const Element &rhs);
  Result select(const Element &condition, const Element &then,
                const Element &otherwise);

  mlir::MLIRContext *context;
  llvm::SetVector<mlir::Value> scoreTensors;
  /// Bounds the work on graphs with much sharing, and the recursion.
  int64_t stepsLeft = 1024;
};

} // namespace flash

#endif // FLASH_ANALYSIS_SCOREANALYSIS_H
