//===- Session.h - State that the runs of a process share -------*- C++ -*-===//
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

struct Expectation;

/// The GPU, and the kernels that were compiled, for the runs of one or many
/// programs.
class Session {
public:
  /// Reports of runs are printed to `os`.
  Session(mlir::MLIRContext &context, llvm::raw_ostream &os)
      : context(context), os(&os) {}

  mlir::MLIRContext &getContext() { return context; }
  llvm::raw_ostream &getOutput() { return *os; }
  void setOutput(llvm::raw_ostream &stream) { os = &stream; }

  /// Compiles the entry of a program, and loads it on the device on which it
  /// will run. Equal texts and options give the same kernel, which is compiled
  /// again only if it is dumped, or if many others were compiled in between.
  /// The target `Auto` is for `Flash` only; the naive program is compiled for
  /// the target of that kernel. A reference always runs on the CPU.
  llvm::Expected<std::shared_ptr<Kernel>>
  compile(const Program &program, Variant variant, const Options &options);

  /// Compiles the programs of these runs that are for a GPU, several at a time
  /// in threads. Later calls of `compile` then find the kernels. Programs that
  /// cannot be compiled are skipped, so that `compile` reports the error.
  void compileAhead(llvm::ArrayRef<Options> runs);

  /// What the reference of a program gives for these options, null until the
  /// caller sets it. It is kept until another one is looked up, but not if
  /// inputs are from files, which may change.
  std::shared_ptr<Expectation> &lookUpReference(const Program &program,
                                                const Options &options);

  /// Opens the GPU when it is called first. Later calls return the same GPU, or
  /// the same error. The device gets the time-out of `options`.
  llvm::Expected<Gpu *> getGpu(const Options &options);

private:
  llvm::Expected<Kernel> compileForGpu(const Program &program, Variant variant,
                                       const Options &options);
  llvm::Expected<Kernel> compileForCpu(const Program &program, Variant variant,
                                       const Options &options);
  /// Compiles the program as `Flash` for the GPU if it can run there, else for
  /// the CPU.
  llvm::Expected<Kernel> compileForAny(const Program &program,
                                       const Options &options);

  mlir::MLIRContext &context;
  llvm::raw_ostream *os;
  /// Declared before the kernels, which refer to it, so that it is destroyed
  /// after them.
  std::unique_ptr<Gpu> gpu;
  std::string gpuFailure;
  /// The kernels of the last programs, by the variant, the options and the text
  /// from which they were made.
  std::map<std::string, std::shared_ptr<Kernel>> kernels;
  std::string referenceKey;
  std::shared_ptr<Expectation> reference;
};

} // namespace flash::run

#endif // FLASH_RUN_SESSION_H
