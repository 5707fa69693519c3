//===- ScoreRanges.h - Integers of score regions ----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_ANALYSIS_SCORERANGES_H
#define FLASH_ANALYSIS_SCORERANGES_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace flash {

/// Upper bounds that are assumed of sizes that are not known.
struct MostSizes {
  /// The numbers of batches and heads.
  int64_t heads;
  /// The numbers of queries and keys.
  int64_t length;
  /// All other sizes. An index that is computed outside of the score region is
  /// assumed to be from -ofOthers - 1 to ofOthers.
  int64_t ofOthers;
};

/// The ranges of the integers and indices that a score region computes. Indices
/// count as integers of 64 bits.
class ScoreRanges {
public:
  /// Analyses a region whose last four arguments are batch, head, query and
  /// key. `extents` has the numbers of batches, heads, queries and keys; each
  /// may be `ShapedType::kDynamic`. Sizes of the tensors `lengthsOf`
  /// that are not known are bounded by `most.length`.
  ScoreRanges(mlir::Block &score, llvm::ArrayRef<int64_t> extents,
              MostSizes most, llvm::ArrayRef<mlir::Value> lengthsOf = {});

  /// The range of an integer or an index that the region computes or reads; all
  /// numbers of its type if nothing is known of it.
  mlir::ConstantIntRanges get(mlir::Value value) const;

private:
  mlir::Block *block;
  MostSizes most;
  llvm::DenseSet<mlir::Value> lengthsOf;
  llvm::DenseMap<mlir::Value, mlir::ConstantIntRanges> ranges;
};

/// The numbers of batches, heads, queries and keys of an attention; each may be
/// `ShapedType::kDynamic`. Dimensions that the operands do not have count as 1.
std::array<int64_t, 4> getExtents(AttentionOpInterface op);

} // namespace flash

#endif // FLASH_ANALYSIS_SCORERANGES_H
