//===- Kernel.h - A compiled function ---------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_KERNEL_H
#define FLASH_RUN_KERNEL_H

#include "flash/Run/Gpu.h"
#include "flash/Run/Options.h"

namespace flash::run {

/// A function of a program, compiled for this machine or loaded on its GPU.
class Kernel {
public:
  /// Compiles a copy of the program for the CPU, or for emulation there
  /// (CpuProgram::compile).
  static llvm::Expected<Kernel> compile(mlir::ModuleOp program,
                                        llvm::StringRef entry, Variant variant,
                                        const Options &options);

  /// Loads a program on the GPU, which outlives the kernel.
  static llvm::Expected<Kernel> load(GpuProgram program, Gpu &gpu,
                                     const Options &options);

  Executor &getExecutor() { return *executor; }
  /// Not `Auto`.
  Target getTarget() const { return target; }
  const StageTimes &getTimes() const { return times; }
  /// The program at level 0, from which its work can be counted.
  mlir::ModuleOp getLevel0() { return *level0; }

  /// Compiles and loads a program on the GPU, in an MLIR context of its own, so
  /// that several threads can. What is wrong is for another compilation to say.
  static llvm::Expected<Kernel>
  compileApart(const mlir::DialectRegistry &registry, llvm::StringRef text,
               Variant variant, Gpu &gpu, const Options &options);

private:
  /// Of the program below, if the kernel has one for itself.
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> level0;
  std::unique_ptr<Executor> executor;
  Target target = Target::Cpu;
  StageTimes times;
};

} // namespace flash::run

#endif // FLASH_RUN_KERNEL_H
