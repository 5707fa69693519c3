//===- ScoreDependence.h - What score regions' values depend on -*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_ANALYSIS_SCOREDEPENDENCE_H
#define FLASH_ANALYSIS_SCOREDEPENDENCE_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Region.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace flash {

/// What a value of a score region depends on.
struct ScoreDependence {
  bool onScore = false, onBatch = false, onHead = false;
  /// On these other than by their difference.
  bool onQuery = false, onKey = false;
  bool onDistance = false;
  /// Beside all that, multiples of the query and of the key, to be added,
  int64_t queries = 0, keys = 0;
  /// and this number, where all of it is known.
  std::optional<int64_t> rest;

  /// What a value that is computed from this one in any way depends on.
  ScoreDependence ofFunction() const;
  void add(const ScoreDependence &other);
  /// Whether it is the distance from key to query, plus a value that depends on
  /// the batch and the head alone.
  bool isDistance() const;
  /// The number that is added to the distance, if it is the distance and a
  /// number.
  std::optional<int64_t> getDistance() const;
  /// Whether the value of a function depends on the query and the key, and not
  /// on their distance alone.
  bool isOnPairs() const {
    return (onQuery && onKey) || (onDistance && (onQuery || onKey));
  }
};

/// What the values of a score region depend on.
class ScoreDependences {
public:
  explicit ScoreDependences(mlir::Region &score);
  /// That of a value, also from outside, which depends on nothing.
  ScoreDependence get(mlir::Value value) const;
  /// That of all values together, as of a function of them.
  ScoreDependence ofFunction(mlir::ValueRange values) const;

private:
  ScoreDependence compute(mlir::Operation &op);
  llvm::DenseMap<mlir::Value, ScoreDependence> known;
};

/// Whether a score region reads a captured tensor at the query and the key,
/// other than at their distance.
bool readsPairs(mlir::Region &score);

/// Whether the gradient of what `read` reads is the sum of the gradients of
/// scores at the same distances: it is added to the score, in the region's own
/// way to the result, and where it is read depends on the batch, the head and
/// the distance alone.
bool isSumByDistance(mlir::tensor::ExtractOp read,
                     const ScoreDependences &dependences);

/// Whether that holds for any read of one of the captured tensors.
bool hasSumByDistance(mlir::Region &score, mlir::ValueRange captured);

/// Whether what a score region gives is linear in the score, so that its
/// derivative is the same for all scores.
bool isLinearInScore(mlir::Region &score);

} // namespace flash

#endif // FLASH_ANALYSIS_SCOREDEPENDENCE_H
