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

/// A host program without machine code, and the function in the host dialect
/// from which the code is made (Target/Host/HostCode.h).
struct BuiltHostProgram {
  runtime::HostProgram program;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// Makes the host program of a function after bufferization. The function may
/// compute with sizes, make views of memrefs, allocate memory, assert and
/// launch kernels, also in `scf.if` and `scf.for`. Reports an error at the
/// first operation, argument or result that a host program cannot have.
mlir::FailureOr<BuiltHostProgram> buildHostProgram(mlir::func::FuncOp function);

} // namespace flash

#endif // FLASH_TARGET_NVPTX_BUILDHOSTPROGRAM_H
