//===- NvxDialect.cpp - The nvx dialect -----------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Nvx/IR/Nvx.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;

#include "flash/Dialect/Nvx/IR/NvxDialect.cpp.inc"

#define GET_OP_CLASSES
#include "flash/Dialect/Nvx/IR/NvxOps.cpp.inc"

void flash::nvx::NvxDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "flash/Dialect/Nvx/IR/NvxOps.cpp.inc"
      >();
}
