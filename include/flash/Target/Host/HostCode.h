//===- HostCode.h - Host programs as machine code and C ---------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TARGET_HOST_HOSTCODE_H
#define FLASH_TARGET_HOST_HOSTCODE_H

#include "flash/Runtime/HostProgram.h"
#include "mlir/IR/BuiltinOps.h"

namespace flash {

/// Compiles a module of the host dialect for the processor of this process, and
/// returns the bytes of the object file. The module does not change.
llvm::Expected<std::string> compileHostCode(mlir::ModuleOp module);

/// Loads the bytes of an object file that `compileHostCode` has returned, and
/// sets `HostProgram::function` and `HostProgram::code`.
llvm::Error linkHostCode(runtime::HostProgram &program, llvm::StringRef object);

/// The C code of a module of the host dialect. `module` is the text of the
/// module. The result is the parameter `code` of `runtime::printCHeader`, which
/// must have the same prefix.
llvm::Expected<std::string> printHostCode(llvm::StringRef module,
                                          llvm::StringRef prefix);

} // namespace flash

#endif // FLASH_TARGET_HOST_HOSTCODE_H
