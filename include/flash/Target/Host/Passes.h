//===- Passes.h - Passes on host programs -----------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TARGET_HOST_PASSES_H
#define FLASH_TARGET_HOST_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace flash {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "flash/Target/Host/Passes.h.inc"

} // namespace flash

#endif // FLASH_TARGET_HOST_PASSES_H
