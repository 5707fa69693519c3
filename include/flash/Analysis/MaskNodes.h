//===- MaskNodes.h - A mask as a list of its parts --------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_ANALYSIS_MASKNODES_H
#define FLASH_ANALYSIS_MASKNODES_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include <vector>

namespace flash {

/// A part of a mask: an affine set, or a union or intersection of other parts.
struct MaskNode {
  MaskForm::Kind kind;
  /// Of a set.
  mlir::IntegerSet set;
  /// Positions of the parts of a union or an intersection in the list.
  llvm::SmallVector<unsigned, 4> parts;
};

/// The distinct parts of a mask, each after its own parts; the last is the mask
/// itself. Unions in unions and intersections in intersections are parts of
/// their own only where several others share them. Linear in the size of the
/// mask, however often it mentions a part and however deep it is.
std::vector<MaskNode> getMaskNodes(MaskAttrInterface mask);

/// Whether the mask depends on a dimension of (b, h, i, j).
bool dependsOn(MaskAttrInterface mask, unsigned dim);

/// The mask that keeps (j, i) where `mask` keeps (i, j), for as many queries as
/// there are keys and the other way round.
MaskAttrInterface transposeMask(MaskAttrInterface mask);

} // namespace flash

#endif // FLASH_ANALYSIS_MASKNODES_H
