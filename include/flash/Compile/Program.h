//===- Program.h - The program and its function -----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_COMPILE_PROGRAM_H
#define FLASH_COMPILE_PROGRAM_H

#include "flash/Compile/CompileOptions.h"
#include "flash/Compile/TensorSpec.h"
#include "flash/Pipelines/Pipelines.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/SourceMgr.h"

namespace flash::compile {

using flash::Variant;

/// Seconds spent in the stages of compilation, in their order.
using StageTimes = llvm::SmallVector<std::pair<llvm::StringRef, double>>;

/// A parsed program, and the function to run.
struct Program {
  /// Prints diagnostics, also of later passes, with the source line.
  std::unique_ptr<llvm::SourceMgr> sources;
  std::unique_ptr<mlir::SourceMgrDiagnosticHandler> diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp entry;
};

/// The same with the text of the program; diagnostics go to `os`, which
/// outlives the program.
llvm::Expected<Program> loadProgram(mlir::MLIRContext &context,
                                    std::unique_ptr<llvm::MemoryBuffer> file,
                                    const CompileOptions &options,
                                    llvm::raw_ostream &os,
                                    bool isForAll = false);

/// Replaces the calls in a function by the bodies of the functions that it
/// calls, so that it says itself what its arguments and results are.
void inlineCalls(mlir::func::FuncOp entry);

/// Whether the program launches block programs itself, so that no level above
/// says what it computes.
bool isBlockLevel(mlir::ModuleOp program);

/// The sizes of a value of the entry function, where they follow from the
/// arguments' without running it.
std::optional<llvm::SmallVector<int64_t, 4>>
getSizes(mlir::Value value, llvm::ArrayRef<TensorSpec> inputs);

/// A copy of a program at level 0 for arguments of these sizes alone: what
/// follows from them is constant, and choices between versions are made.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
assumeSizes(mlir::ModuleOp program, llvm::StringRef entry,
            llvm::ArrayRef<TensorSpec> inputs);

} // namespace flash::compile

#endif // FLASH_COMPILE_PROGRAM_H
