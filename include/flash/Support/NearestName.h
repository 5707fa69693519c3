//===- NearestName.h - What a name was meant to be --------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SUPPORT_NEARESTNAME_H
#define FLASH_SUPPORT_NEARESTNAME_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

namespace flash {

/// The name of `known` that is most like `name`; empty if none is known.
inline llvm::StringRef getNearestName(llvm::StringRef name,
                                      llvm::ArrayRef<llvm::StringRef> known) {
  auto isLess = [&](llvm::StringRef lhs, llvm::StringRef rhs) {
    return name.edit_distance(lhs) < name.edit_distance(rhs);
  };
  const auto *nearest = llvm::min_element(known, isLess);
  return nearest == known.end() ? llvm::StringRef() : *nearest;
}

} // namespace flash

#endif // FLASH_SUPPORT_NEARESTNAME_H
