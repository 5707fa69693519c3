//===- GpuProgram.h - A program compiled for GPUs ---------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_COMPILE_GPUPROGRAM_H
#define FLASH_COMPILE_GPUPROGRAM_H

#include "flash/Compile/Program.h"
#include "flash/Runtime/HostProgram.h"
#include "flash/Target/Nvptx/Ptxas.h"

namespace flash::compile {

/// A program for a GPU: its kernels, and the host program that launches them.
/// It can be made without a GPU.
struct GpuProgram {
  /// A gpu.module of the program.
  struct Module {
    std::string name, ptx;
    std::optional<Cubin> cubin;

    /// The cubin if there is one, else the PTX. Drivers can load both.
    llvm::StringRef getImage() const;
  };

  /// The name of the GPU, such as "sm_90a".
  std::string gpu;
  /// The host program; the text of the module in the host dialect from which it
  /// was made; and the bytes of the object file with its code.
  runtime::HostProgram host;
  std::string hostText, hostObject;
  std::vector<Module> modules;
  /// The element type of each result.
  llvm::SmallVector<DType> resultTypes;
  /// `CompileOptions::versions`; empty for `Naive`.
  std::string versions;
  /// The schedule attributes of the attentions, as text, in the order of the
  /// program; equal ones of the same attention are listed once.
  std::vector<std::string> schedules;
  StageTimes times;
  /// The program at level 0; if it was given at level 2, that program.
  mlir::OwningOpRef<mlir::ModuleOp> level0;

  /// Compiles the function `entry` of a copy of the program, as `Flash` or
  /// `Naive`. `options` have the GPU, and the stages to print. Fails if a pass
  /// fails, or if the host cannot launch the program.
  static llvm::Expected<GpuProgram> compile(mlir::ModuleOp program,
                                            llvm::StringRef entry,
                                            Variant variant,
                                            const CompileOptions &options);

  /// Adds cubins for a chip, which the first `ptxas` in the PATH makes.
  llvm::Error runPtxas(llvm::StringRef chip);
};

} // namespace flash::compile

#endif // FLASH_COMPILE_GPUPROGRAM_H
