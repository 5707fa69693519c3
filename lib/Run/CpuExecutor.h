//===- CpuExecutor.h - Running compiled code on the CPU ---------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_RUN_CPUEXECUTOR_H
#define FLASH_LIB_RUN_CPUEXECUTOR_H

#include "flash/Run/Executor.h"
#include "flash/Target/Cpu/Jit.h"

namespace flash::run {

class CpuExecutor : public Executor {
public:
  CpuExecutor(std::unique_ptr<CpuExecutable> executable,
              llvm::ArrayRef<DType> resultTypes)
      : executable(std::move(executable)), resultTypes(resultTypes) {}

  llvm::Expected<std::vector<HostTensor>>
  run(llvm::ArrayRef<HostTensor> inputs) override;
  void setChecked(bool checked) override;
  /// Runs once to warm up and then for the time of `effort` or 100 runs. A
  /// function that takes seconds gets two runs, or one.
  llvm::Expected<Timing> benchmark(llvm::ArrayRef<HostTensor> inputs,
                                   const Effort &effort) override;
  Machine getMachine() const override;

private:
  std::unique_ptr<CpuExecutable> executable;
  llvm::SmallVector<DType> resultTypes;
};

} // namespace flash::run

#endif // FLASH_LIB_RUN_CPUEXECUTOR_H
