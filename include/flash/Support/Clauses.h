//===- Clauses.h - Errors for the clauses of operations ---------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SUPPORT_CLAUSES_H
#define FLASH_SUPPORT_CLAUSES_H

#include "mlir/IR/OpImplementation.h"

namespace flash {

/// Refuses a word where the clauses of an operation end. `order` has the words
/// that they begin with, in their order, and what has to follow the last one,
/// with a space between two. The error says whether the word is no clause, is
/// there twice, or stands behind one that it has to stand before.
mlir::ParseResult parseClausesEnd(mlir::OpAsmParser &parser,
                                  llvm::StringRef order);
inline void printClausesEnd(mlir::OpAsmPrinter &, mlir::Operation *,
                            llvm::StringRef) {}

} // namespace flash

#endif // FLASH_SUPPORT_CLAUSES_H
