//===- Place.h - Where an operation is in its file --------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SUPPORT_PLACE_H
#define FLASH_SUPPORT_PLACE_H

#include "mlir/IR/Location.h"
#include "llvm/Support/raw_ostream.h"

namespace flash {

/// " at file:line:column" for the first of these within `loc`, or nothing; for
/// messages of programs that run, behind the name of an operation.
inline std::string describePlace(mlir::LocationAttr loc) {
  auto place = loc.findInstanceOf<mlir::FileLineColLoc>();
  if (!place)
    return "";
  std::string text;
  llvm::raw_string_ostream(text)
      << " at " << place.getFilename().getValue() << ':' << place.getLine()
      << ':' << place.getColumn();
  return text;
}

} // namespace flash

#endif // FLASH_SUPPORT_PLACE_H
