//===- Session.h - What the runs of a process share -------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_SESSION_H
#define FLASH_RUN_SESSION_H

#include "flash/Compile/Program.h"
#include "flash/Run/Gpu.h"
#include "flash/Run/Kernel.h"
#include "flash/Run/Options.h"
#include <map>

namespace flash::run {

/// The GPU and the kernels that were compiled, for one or many programs.
class Session {
public:
  /// What programs report goes to `os`.
  Session(mlir::MLIRContext &context, llvm::raw_ostream &os)
      : context(context), os(&os) {}

  mlir::MLIRContext &getContext() { return context; }
  llvm::raw_ostream &getOutput() { return *os; }
  void setOutput(llvm::raw_ostream &stream) { os = &stream; }

  /// Compiles the entry of a program and loads it where it shall run. Equal
  /// texts and options give the same kernel. `--target=auto` is for `Flash`
  /// only: the others go where that went.
  llvm::Expected<std::shared_ptr<Kernel>>
  compile(const Program &program, Variant variant, const Options &options);

  /// Compiles what a GPU will run, in threads, for calls of `compile` that
  /// follow. What cannot be compiled is left to them.
  void compileAhead(llvm::ArrayRef<Options> runs);

  /// Opens the GPU at the first call; it stays as it was then.
  llvm::Expected<Gpu *> getGpu(const Options &options);

private:
  llvm::Expected<Kernel> compileForGpu(const Program &program, Variant variant,
                                       const Options &options);
  llvm::Expected<Kernel> compileForCpu(const Program &program, Variant variant,
                                       const Options &options);
  /// As `Flash`, wherever the program can run.
  llvm::Expected<Kernel> compileForAny(const Program &program,
                                       const Options &options);

  mlir::MLIRContext &context;
  llvm::raw_ostream *os;
  /// Before the kernels, which refer to it.
  std::unique_ptr<Gpu> gpu;
  std::string gpuFailure;
  /// Of the last programs, by all that they were made from.
  std::map<std::string, std::shared_ptr<Kernel>> kernels;
};

} // namespace flash::run

#endif // FLASH_RUN_SESSION_H
