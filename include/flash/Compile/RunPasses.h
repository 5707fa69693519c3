//===- RunPasses.h - Passes, with errors and dumps --------------*- C++ -*-===//
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

/// The error of a compilation that was interrupted.
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

/// Makes compilations interruptible. While the object lives, `isInterrupted` is
/// called at most every 50 ms when passes of this thread on `context` start.
/// Once it has returned a value other than 0, no further pass starts, and
/// `runPasses` fails with an `InterruptedError`. A pass that runs is not
/// stopped. `isInterrupted` may be null.
class InterruptionScope {
public:
  InterruptionScope(mlir::MLIRContext &context, int (*isInterrupted)());
  ~InterruptionScope();
  InterruptionScope(const InterruptionScope &) = delete;
};

/// Runs the passes that `build` adds, and verifies the module afterwards. The
/// error names the pass that failed; the reason was reported as a diagnostic.
llvm::Error runPasses(mlir::ModuleOp module,
                      llvm::function_ref<void(mlir::OpPassManager &)> build);

/// Runs stages, one after the other, on a module from which functions that the
/// entry does not use are removed first. Prints the program after each stage
/// that `options.dumps` has, and calls `after` with the name of each stage that
/// has run. Stops at the first error.
llvm::Error runStages(mlir::ModuleOp module, llvm::ArrayRef<Stage> stages,
                      const CompileOptions &options,
                      llvm::function_ref<void(llvm::StringRef)> after);

/// Prints the program at a stage, or passes it to `options.takeDump`. Does
/// nothing if `options.dumps` does not have the stage.
void dump(Dump stage, mlir::ModuleOp module, const CompileOptions &options);
void dump(Dump stage, llvm::StringRef text, const CompileOptions &options);

/// A copy of the program in which only the entry is public, so that functions
/// that it does not use are not compiled.
mlir::OwningOpRef<mlir::ModuleOp> copyProgram(mlir::ModuleOp program,
                                              llvm::StringRef entry);

/// Sets the options of the front end that concern schedules, for the target
/// with this name. If `options.tune` is set, measured schedules are not used,
/// and the schedule attributes in `module` are removed.
void setSchedule(FrontOptions &front, llvm::StringRef target,
                 mlir::ModuleOp module, const CompileOptions &options);

} // namespace flash::compile

#endif // FLASH_COMPILE_RUNPASSES_H
