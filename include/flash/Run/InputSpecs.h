//===- InputSpecs.h - The program and the sizes of its inputs ---*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_INPUTSPECS_H
#define FLASH_RUN_INPUTSPECS_H

#include "flash/Compile/Program.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Run/Options.h"

namespace flash::run {

/// Parses and verifies a file, and finds the function. Diagnostics of the
/// parser and of later passes go to stderr with file, line and column.
llvm::Expected<Program> loadProgram(mlir::MLIRContext &context,
                                    const Options &options);

/// The shape and element type of each argument, from its type, `--shape`,
/// and where neither says, the file of `--inputs`.
llvm::Expected<std::vector<TensorSpec>> getInputSpecs(mlir::func::FuncOp entry,
                                                      const Options &options);

/// A copy of a program whose function calls no other one (`inlineCalls`). It
/// says what arguments and results are for.
struct InlinedProgram {
  explicit InlinedProgram(const Program &program);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp entry;
};

/// The addresses whose rows follow each other from offsets in the argument on.
llvm::SmallVector<AddressOpInterface> getPackedBy(mlir::BlockArgument argument);

} // namespace flash::run

#endif // FLASH_RUN_INPUTSPECS_H
