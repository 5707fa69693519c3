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

/// Whether the score region has guards (`flash.guard`), which depend on whether
/// an element takes part.
bool hasGuards(mlir::Region &region);

/// Whether the score region changes scores, apart from masking elements.
bool changesScore(mlir::Region &region);

/// The value that a score region, or the region of a block map, yields to say
/// whether an element takes part. Null if all elements take part.
mlir::Value getKeep(mlir::Region &region);

/// Whether the score region masks elements.
bool masksElements(mlir::Region &region);

/// A selection between the score and -inf by a condition that does not depend
/// on the score.
struct MaskingChoice {
  mlir::Value condition;
  bool keepsIfFalse;
};

/// The nested selections in the score that a score region yields, and the score
/// that remains if none of them selects -inf.
struct MaskingChoices {
  llvm::SmallVector<MaskingChoice> outermostFirst;
  mlir::Value score;
};
MaskingChoices getMaskingChoices(mlir::Block &region);

/// Whether a score region reads captured tensors for each element to decide
/// whether the element is masked.
bool readsToMask(mlir::Region &region);

} // namespace flash

#endif // FLASH_ANALYSIS_SCOREREGION_H
