//===- RowCombine.h - Attention from splits of the keys ---------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_LINALGTOTILE_ROWCOMBINE_H
#define FLASH_LIB_CONVERSION_LINALGTOTILE_ROWCOMBINE_H

#include "RowSoftmax.h"

namespace flash {

/// A flash.combine as values of the kernel; the first index of its inputs is
/// the split.
struct RowCombine {
  MemoryPlace outs, lses, output;
  MemoryPlace lse;    ///< Of the row, or nothing.
  mlir::Value rows;   ///< How many rows exist.
  mlir::Value splits; ///< How many splits there are.
  int64_t valueDim;
};

/// Emits the combination of up to `rows` rows by a block of `warps` warps.
void emitRowCombine(mlir::OpBuilder &b, mlir::Location loc, int64_t rows,
                    int64_t warps, const RowCombine &combine);

} // namespace flash

#endif // FLASH_LIB_CONVERSION_LINALGTOTILE_ROWCOMBINE_H
