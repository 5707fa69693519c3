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

/// A function that is compiled for the CPU of this machine.
struct CpuProgram {
  /// `Cpu`, or `Emulate` for the block programs of a GPU.
  Target target = Target::Cpu;
  std::unique_ptr<CpuExecutable> executable;
  /// The element type of each result.
  llvm::SmallVector<DType> resultTypes;
  StageTimes times;
  /// The program at level 0; if it was given at level 2, that program. Null for
  /// `Naive` on the CPU, and for the reference.
  mlir::OwningOpRef<mlir::ModuleOp> level0;

  /// Compiles the function `entry` of a copy of the program. `options` have the
  /// target, and the stages to print. A program that is at level 2 already can
  /// only be emulated. Unless `options.isReference` is set, a reference returns
  /// further results behind the results of the function
  /// (`addReferenceResults`).
  static llvm::Expected<CpuProgram> compile(mlir::ModuleOp program,
                                            llvm::StringRef entry,
                                            Variant variant,
                                            const CompileOptions &options);
};

} // namespace flash::compile

#endif // FLASH_COMPILE_CPUPROGRAM_H
