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

/// Parses and verifies the file `options.file`, and finds the function.
/// Diagnostics of the parser and of later passes are printed to stderr with
/// file, line and column.
llvm::Expected<Program> loadProgram(mlir::MLIRContext &context,
                                    const Options &options);

/// The shape and the element type of each argument. Sizes are known from its
/// type, else from `--shape` or, without that, from the file of `--inputs`. It
/// is an error if they contradict each other, or if a size is not known.
llvm::Expected<std::vector<TensorSpec>> getInputSpecs(mlir::func::FuncOp entry,
                                                      const Options &options);

/// A copy of a program in which the entry calls no other function
/// (`inlineCalls`). So all uses of arguments and results are in the entry.
struct InlinedProgram {
  explicit InlinedProgram(const Program &program);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp entry;
};

/// The ops that find packed rows by the offsets in this argument
/// (`flash.unpack` and `flash.pack`).
llvm::SmallVector<AddressOpInterface> getPackedBy(mlir::BlockArgument argument);

} // namespace flash::run

#endif // FLASH_RUN_INPUTSPECS_H
