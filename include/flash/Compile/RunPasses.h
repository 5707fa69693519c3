//===- RunPasses.h - Passes with messages -----------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_COMPILE_RUNPASSES_H
#define FLASH_COMPILE_RUNPASSES_H

#include "flash/Compile/CompileOptions.h"
#include "flash/Pipelines/Pipelines.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

namespace flash::compile {

/// A compilation that somebody has stopped.
class InterruptedError : public llvm::ErrorInfo<InterruptedError> {
public:
  static char ID;
  void log(llvm::raw_ostream &os) const override {
    os << "the compilation was interrupted";
  }
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }
};

/// While it lives, passes of this thread on a context do nothing once
/// `isInterrupted`, which is called a few times in a second, returns true;
/// runPasses then fails.
class InterruptionScope {
public:
  InterruptionScope(mlir::MLIRContext &context, int (*isInterrupted)());
  ~InterruptionScope();
  InterruptionScope(const InterruptionScope &) = delete;
};

/// Runs the passes that `build` adds. The error names the pass that failed; why
/// it did, its diagnostic has said.
llvm::Error runPasses(mlir::ModuleOp module,
                      llvm::function_ref<void(mlir::OpPassManager &)> build);

/// Runs stages that build on each other, and prints the programs that
/// `options.dumps` names. Calls `after` with the name of each that has run.
llvm::Error runStages(mlir::ModuleOp module, llvm::ArrayRef<Stage> stages,
                      const CompileOptions &options,
                      llvm::function_ref<void(llvm::StringRef)> after);

/// Prints the program at a stage, or gives it to `options.takeDump`, if
/// `options` have it dumped.
void dump(Dump stage, mlir::ModuleOp module, const CompileOptions &options);
void dump(Dump stage, llvm::StringRef text, const CompileOptions &options);

/// A copy of the program in which nothing but the entry is public, so that
/// functions it does not use are not compiled.
mlir::OwningOpRef<mlir::ModuleOp> copyProgram(mlir::ModuleOp program,
                                              llvm::StringRef entry);

/// Sets whose schedules to propose, and what the user says instead of that and
/// of what the program has written.
void setSchedule(FrontOptions &front, llvm::StringRef target,
                 mlir::ModuleOp module, const CompileOptions &options);

} // namespace flash::compile

#endif // FLASH_COMPILE_RUNPASSES_H
