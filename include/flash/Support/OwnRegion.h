//===- OwnRegion.h - Regions in the text of operations ----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SUPPORT_OWNREGION_H
#define FLASH_SUPPORT_OWNREGION_H

#include "mlir/IR/OpImplementation.h"

namespace flash {

/// Parses a region whose values nothing outside of it uses: a name that stood
/// before it already is refused. Operations that were parsed before would
/// refer to values that are deleted when the rest of the operation is
/// malformed.
mlir::ParseResult parseOwnRegion(mlir::OpAsmParser &parser,
                                 mlir::Region &region);
void printOwnRegion(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                    mlir::Region &region);

} // namespace flash

#endif // FLASH_SUPPORT_OWNREGION_H
