//===- ExtractLaunchPlan.h - From host functions to data --------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TARGET_NVPTX_EXTRACTLAUNCHPLAN_H
#define FLASH_TARGET_NVPTX_EXTRACTLAUNCHPLAN_H

#include "flash/Runtime/LaunchPlan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace flash {

/// The plan of a host function after bufferization: one block that computes
/// with sizes, makes views of memrefs, allocates, asserts and launches.
/// Reports an error at the first operation, argument or result for which a plan
/// has no form.
mlir::FailureOr<runtime::LaunchPlan>
extractLaunchPlan(mlir::func::FuncOp function);

} // namespace flash

#endif // FLASH_TARGET_NVPTX_EXTRACTLAUNCHPLAN_H
