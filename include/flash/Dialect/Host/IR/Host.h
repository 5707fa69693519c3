//===- Host.h - The host dialect --------------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_HOST_IR_HOST_H
#define FLASH_DIALECT_HOST_IR_HOST_H

#include "flash/Support/DeclaredAttributes.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "flash/Dialect/Host/IR/HostDialect.h.inc"
#include "flash/Dialect/Host/IR/HostEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "flash/Dialect/Host/IR/HostTypes.h.inc"

#define GET_OP_CLASSES
#include "flash/Dialect/Host/IR/HostOps.h.inc"

#endif // FLASH_DIALECT_HOST_IR_HOST_H
