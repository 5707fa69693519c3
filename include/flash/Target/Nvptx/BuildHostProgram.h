//===- BuildHostProgram.h - From host functions to programs -----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TARGET_NVPTX_BUILDHOSTPROGRAM_H
#define FLASH_TARGET_NVPTX_BUILDHOSTPROGRAM_H

#include "flash/Runtime/HostProgram.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace flash {

/// A program without machine code yet, and the function in the host dialect
/// that the code is made of (Target/Host/HostCode.h).
struct BuiltHostProgram {
  runtime::HostProgram program;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// The program of a host function after bufferization, which computes with
/// sizes, makes views of memrefs, allocates, asserts and launches, also in
/// `scf.if` and `scf.for`. Reports an error at the first operation, argument or
/// result for which a program has no form.
mlir::FailureOr<BuiltHostProgram> buildHostProgram(mlir::func::FuncOp function);

} // namespace flash

#endif // FLASH_TARGET_NVPTX_BUILDHOSTPROGRAM_H
