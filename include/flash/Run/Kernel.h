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

/// A function of a program that is compiled and can be executed on this machine
/// or its GPU.
class Kernel {
public:
  /// Compiles a function for the CPU, or for the emulation of a GPU
  /// (`CpuProgram::compile`).
  static llvm::Expected<Kernel> compile(mlir::ModuleOp program,
                                        llvm::StringRef entry, Variant variant,
                                        const Options &options);

  /// Loads a program on a GPU. `gpu` must outlive the kernel.
  static llvm::Expected<Kernel> load(GpuProgram program, Gpu &gpu,
                                     const Options &options);

  Executor &getExecutor() { return *executor; }
  /// The target for which the function was compiled, which is not `Auto`.
  Target getTarget() const { return target; }
  const StageTimes &getTimes() const { return times; }
  /// The program at level 0; null for a reference, and for a naive program on
  /// the CPU.
  mlir::ModuleOp getLevel0() { return *level0; }

  /// Compiles a program for the GPU, and loads it. It has an MLIR context of
  /// its own, so several threads may call this at the same time. Diagnostics
  /// are not printed; another compilation must report them.
  static llvm::Expected<Kernel>
  compileApart(const mlir::DialectRegistry &registry, llvm::StringRef text,
               Variant variant, Gpu &gpu, const Options &options);

private:
  /// The context of `level0`, if the kernel has its own.
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> level0;
  std::unique_ptr<Executor> executor;
  Target target = Target::Cpu;
  StageTimes times;
};

} // namespace flash::run

#endif // FLASH_RUN_KERNEL_H
