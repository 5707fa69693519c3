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

/// Kernels and what the host does to launch them. Made without a GPU.
struct GpuProgram {
  /// A gpu.module of the program.
  struct Module {
    std::string name, ptx;
    std::optional<Cubin> cubin;

    /// What a driver loads: the cubin if there is one, else the PTX.
    llvm::StringRef getImage() const;
  };

  /// Its name, such as "sm_90a".
  std::string gpu;
  /// The host side, the module that it was made of, as text, and the object
  /// file with its code.
  runtime::HostProgram host;
  std::string hostText, hostObject;
  std::vector<Module> modules;
  llvm::SmallVector<DType> resultTypes;
  /// As the options have it.
  std::string versions;
  /// Of the attentions, where there are any, in their order: what the schedule
  /// attribute says.
  std::vector<std::string> schedules;
  StageTimes times;
  /// The program at level 0.
  mlir::OwningOpRef<mlir::ModuleOp> level0;

  /// Compiles a copy of the program, as `Flash` or `Naive`. `Options` says
  /// which stages to print.
  static llvm::Expected<GpuProgram> compile(mlir::ModuleOp program,
                                            llvm::StringRef entry,
                                            Variant variant,
                                            const CompileOptions &options);

  /// Adds cubins for a chip, made by the first `ptxas` in the PATH.
  llvm::Error runPtxas(llvm::StringRef chip);
};

} // namespace flash::compile

#endif // FLASH_COMPILE_GPUPROGRAM_H
