//===- CpuProgram.h - A program compiled for this machine -------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_COMPILE_CPUPROGRAM_H
#define FLASH_COMPILE_CPUPROGRAM_H

#include "flash/Compile/Program.h"
#include "flash/Target/Cpu/Jit.h"

namespace flash::compile {

/// A function that runs on this machine's CPU.
struct CpuProgram {
  /// `Cpu`, or `Emulate` for the block programs of a GPU.
  Target target = Target::Cpu;
  std::unique_ptr<CpuExecutable> executable;
  llvm::SmallVector<DType> resultTypes;
  StageTimes times;
  /// The program at level 0; null for the reference.
  mlir::OwningOpRef<mlir::ModuleOp> level0;

  /// Compiles a copy of the program. `Options` says which stages to print. A
  /// program that is at level 2 already can only be emulated. Behind the
  /// results, a reference has the log-sum-exp of every attention that could be
  /// given that result, and more (`addReferenceResults`), unless
  /// `options` have the reference as the target.
  static llvm::Expected<CpuProgram> compile(mlir::ModuleOp program,
                                            llvm::StringRef entry,
                                            Variant variant,
                                            const CompileOptions &options);
};

} // namespace flash::compile

#endif // FLASH_COMPILE_CPUPROGRAM_H
