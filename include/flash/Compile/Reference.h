//===- Reference.h - What the reference adds --------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_COMPILE_REFERENCE_H
#define FLASH_COMPILE_REFERENCE_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace flash::compile {

/// Gives the function the log-sum-exp of every attention in its body (not in
/// nested regions) as additional results. They tell the magnitude of the
/// scores, on which the tolerance of f32 depends.
void returnLogSumExp(mlir::func::FuncOp func);

} // namespace flash::compile

#endif // FLASH_COMPILE_REFERENCE_H
