//===- Nvx.h - The nvx dialect ----------------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_NVX_IR_NVX_H
#define FLASH_DIALECT_NVX_IR_NVX_H

#include "flash/Support/DeclaredAttributes.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "flash/Dialect/Nvx/IR/NvxDialect.h.inc"

#define GET_OP_CLASSES
#include "flash/Dialect/Nvx/IR/NvxOps.h.inc"

#endif // FLASH_DIALECT_NVX_IR_NVX_H
