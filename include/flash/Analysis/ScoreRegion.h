//===- ScoreRegion.h - What a score region does to a score ------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_ANALYSIS_SCOREREGION_H
#define FLASH_ANALYSIS_SCOREREGION_H

#include "mlir/IR/Region.h"
#include "llvm/ADT/SmallVector.h"

namespace flash {

/// Whether the score region has guards, so that it must know which elements
/// take part.
bool hasGuards(mlir::Region &region);

/// Whether the score region changes scores, besides masking elements.
bool changesScore(mlir::Region &region);

/// What a score region, or the region of a block map, gives that says whether
/// an element takes part; null if all do.
mlir::Value getKeep(mlir::Region &region);

/// Whether it masks elements.
bool masksElements(mlir::Region &region);

/// A choice of -inf by a condition that does not depend on the score.
struct MaskingChoice {
  mlir::Value condition;
  bool keepsIfFalse;
};

/// Such choices of what a score region gives, one inside the other, and the
/// score that is left if none gives -inf.
struct MaskingChoices {
  llvm::SmallVector<MaskingChoice> outermostFirst;
  mlir::Value score;
};
MaskingChoices getMaskingChoices(mlir::Block &region);

/// Whether a score region reads captured tensors to mask elements, for each
/// one.
bool readsToMask(mlir::Region &region);

} // namespace flash

#endif // FLASH_ANALYSIS_SCOREREGION_H
