//===- InitSizes.h - Sizes of what results start from -----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_FLASH_IR_INITSIZES_H
#define FLASH_DIALECT_FLASH_IR_INITSIZES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"

namespace flash {

/// The fill that a tensor is, also with other static sizes; null if it is none.
mlir::linalg::FillOp getFill(mlir::Value tensor);

/// The sizes of a tensor. Of a tensor.empty, or what fills one, they are what
/// it was made of: a tensor.dim in a kernel would have memory allocated for it.
llvm::SmallVector<mlir::OpFoldResult>
getInitSizes(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor);

} // namespace flash

#endif // FLASH_DIALECT_FLASH_IR_INITSIZES_H
