//===- Pages.h - Inputs of sequences that lie in pages ----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_PAGES_H
#define FLASH_RUN_PAGES_H

#include "flash/Run/HostTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace flash::run {

/// Whether the argument is a table of pages, or memory in which they lie.
bool areInPages(mlir::func::FuncOp entry, unsigned argument);

/// Gives the sequences of each table pages of a permutation, as many as they
/// have rows in, and -1 behind these. Rows of no sequence become NaN: who reads
/// them shows it.
void fillPages(mlir::func::FuncOp entry, uint64_t seed,
               llvm::MutableArrayRef<HostTensor> inputs);

/// Fails unless the pages in which sequences have rows exist.
llvm::Error verifyPages(mlir::func::FuncOp entry,
                        llvm::ArrayRef<HostTensor> inputs);

} // namespace flash::run

#endif // FLASH_RUN_PAGES_H
