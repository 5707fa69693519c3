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

/// What sizes that are not known are at most; `ofOthers` also bounds the
/// indices that are computed outside.
struct MostSizes {
  int64_t heads, length, ofOthers;
};

/// Between which numbers the integers of a score region lie, an index as one of
/// 64 bits.
class ScoreRanges {
public:
  /// `extents` are how many batches, heads, queries and keys there are, and
  /// `lengthsOf` the tensors whose sizes are lengths.
  ScoreRanges(mlir::Block &score, llvm::ArrayRef<int64_t> extents,
              MostSizes most, llvm::ArrayRef<mlir::Value> lengthsOf = {});

  mlir::ConstantIntRanges get(mlir::Value value) const;

private:
  mlir::Block *block;
  MostSizes most;
  llvm::DenseSet<mlir::Value> lengthsOf;
  llvm::DenseMap<mlir::Value, mlir::ConstantIntRanges> ranges;
};

/// How many batches, heads, queries and keys an attention has.
std::array<int64_t, 4> getExtents(AttentionOpInterface op);

} // namespace flash

#endif // FLASH_ANALYSIS_SCORERANGES_H
