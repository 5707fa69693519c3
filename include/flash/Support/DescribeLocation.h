//===- DescribeLocation.h - Where an operation is in its file ---*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SUPPORT_DESCRIBELOCATION_H
#define FLASH_SUPPORT_DESCRIBELOCATION_H

#include "mlir/IR/Location.h"
#include "llvm/Support/raw_ostream.h"

namespace flash {

/// " at file:line:column" for the first of these within `loc`, or nothing; for
/// messages of programs that run, behind the name of an operation.
inline std::string describeLocation(mlir::LocationAttr loc) {
  auto inFile = loc.findInstanceOf<mlir::FileLineColLoc>();
  if (!inFile)
    return "";
  std::string text;
  llvm::raw_string_ostream(text)
      << " at " << inFile.getFilename().getValue() << ':' << inFile.getLine()
      << ':' << inFile.getColumn();
  return text;
}

} // namespace flash

#endif // FLASH_SUPPORT_DESCRIBELOCATION_H
