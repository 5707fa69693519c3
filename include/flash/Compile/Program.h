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

/// The names of the stages of a compilation, in their order, and the seconds
/// that each took.
using StageTimes = llvm::SmallVector<std::pair<llvm::StringRef, double>>;

/// A parsed program, and the function that is compiled.
struct Program {
  /// Print diagnostics of the parser and of later passes, with the line of the
  /// source.
  std::unique_ptr<llvm::SourceMgr> sources;
  std::unique_ptr<mlir::SourceMgrDiagnosticHandler> diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp entry;
};

/// Parses and verifies the text of a program, and finds the function
/// `options.function`. Diagnostics go to `os`. `context` and `os` must outlive
/// the program. It is an error if a function has no body, or if the arguments
/// and results of the function are not ranked tensors with element types of
/// `DType`. If `isForAll` is set, all public functions are checked, and without
/// `options.function` there may be several; the first one is then the entry.
llvm::Expected<Program> loadProgram(mlir::MLIRContext &context,
                                    std::unique_ptr<llvm::MemoryBuffer> file,
                                    const CompileOptions &options,
                                    llvm::raw_ostream &os,
                                    bool isForAll = false);

/// Replaces calls in a function by the bodies of the functions that are called,
/// so that all uses of arguments and results are in the function itself. Calls
/// of functions with several blocks, and calls after the first 1000, remain.
void inlineCalls(mlir::func::FuncOp entry);

/// Whether the program is at level 2: it launches block programs itself, and
/// there is no form of it at level 0 or 1.
bool isBlockLevel(mlir::ModuleOp program);

/// Whether the program has kernels at level 1 itself.
bool isTileLevel(mlir::ModuleOp program);

/// The sizes of a tensor in the entry function for arguments of these sizes.
/// Nothing if they do not follow from the sizes of the arguments.
std::optional<llvm::SmallVector<int64_t, 4>>
getSizes(mlir::Value value, llvm::ArrayRef<TensorSpec> inputs);

/// A copy of a program at level 0 that is for arguments of these sizes only.
/// Sizes that follow from the arguments are constants, and if there are
/// versions, the version for these sizes is chosen.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
assumeSizes(mlir::ModuleOp program, llvm::StringRef entry,
            llvm::ArrayRef<TensorSpec> inputs);

} // namespace flash::compile

#endif // FLASH_COMPILE_PROGRAM_H
