//===- Program.h - The program and its function -----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_PROGRAM_H
#define FLASH_RUN_PROGRAM_H

#include "flash/Run/HostTensor.h"
#include "flash/Run/Options.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/SourceMgr.h"

namespace flash::run {

/// Which of the three translations of a program.
enum class Variant {
  /// The compiler's: tiles and the online softmax.
  Flash,
  /// All scores in memory: the baseline.
  Naive,
  /// The naive one in f64, on f64 copies of the floating-point inputs. Its
  /// results are those of the program and then the log-sum-exp of every
  /// attention that could be given that result.
  Reference,
};

/// Seconds spent in the stages of compilation, in their order.
using StageTimes = llvm::SmallVector<std::pair<llvm::StringRef, double>>;

/// A parsed program, and the function to run.
struct Program {
  /// Prints diagnostics, also those of later passes, with the source line.
  std::unique_ptr<llvm::SourceMgr> sources;
  std::unique_ptr<mlir::SourceMgrDiagnosticHandler> diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp entry;
};

/// Parses and verifies a file, and finds the function. Diagnostics of the
/// parser and of later passes go to stderr with file, line and column.
llvm::Expected<Program> loadProgram(mlir::MLIRContext &context,
                                    const Options &options);

/// The same with the text of the program; diagnostics go to `os`, which
/// outlives the program.
llvm::Expected<Program> loadProgram(mlir::MLIRContext &context,
                                    std::unique_ptr<llvm::MemoryBuffer> file,
                                    const Options &options,
                                    llvm::raw_ostream &os);

/// The shape and element type of each argument, from its type, `--shape`,
/// and where neither says, the file of `--inputs`.
llvm::Expected<std::vector<TensorSpec>> getInputSpecs(mlir::func::FuncOp entry,
                                                      const Options &options);

/// The sizes of a value of the entry function, where they follow from the
/// arguments' without running it.
std::optional<llvm::SmallVector<int64_t, 4>>
getSizes(mlir::Value value, llvm::ArrayRef<TensorSpec> inputs);

} // namespace flash::run

#endif // FLASH_RUN_PROGRAM_H
