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

/// The object file of a module of the host dialect, for this processor.
llvm::Expected<std::string> compileHostCode(mlir::ModuleOp module);

/// Loads the object file of a program, which sets its function.
llvm::Error linkHostCode(runtime::HostProgram &program, llvm::StringRef object);

/// A module of the host dialect, which is given as text, as C: what
/// `runtime::printCHeader` takes, with the same prefix.
llvm::Expected<std::string> printHostCode(llvm::StringRef module,
                                          llvm::StringRef prefix);

} // namespace flash

#endif // FLASH_TARGET_HOST_HOSTCODE_H
