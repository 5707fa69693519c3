//===- Pages.h - Inputs with paged sequences --------------------*- C++ -*-===//
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

/// Whether an argument of the function is a page table, or the memory of the
/// pages (`flash.unpage`).
bool areInPages(mlir::func::FuncOp entry, unsigned argument);

/// Fills page tables. Each sequence gets as many pages as its length needs, in
/// random order, and -1 behind them; no page has two owners if there are
/// enough. Rows of the pages' memory that belong to no sequence become NaN, so
/// that a read of them shows in the results. Lengths must have been filled.
void fillPages(mlir::func::FuncOp entry, uint64_t seed,
               llvm::MutableArrayRef<HostTensor> inputs);

/// Fails if a page table has an entry for rows of a sequence that is no page,
/// or if there is not one length for each sequence.
llvm::Error verifyPages(mlir::func::FuncOp entry,
                        llvm::ArrayRef<HostTensor> inputs);

} // namespace flash::run

#endif // FLASH_RUN_PAGES_H
