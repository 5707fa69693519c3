//===- GpuExecutor.h - Running kernels on a GPU -----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_RUN_GPUEXECUTOR_H
#define FLASH_LIB_RUN_GPUEXECUTOR_H

#include "flash/Compile/LoadedProgram.h"
#include "flash/Run/Gpu.h"
#include "flash/Runtime/Cuda/DeviceBuffer.h"

namespace flash::run {

/// The device memory of one call, and the parameters that point to it.
struct GpuCall {
  std::shared_ptr<std::vector<cuda::DeviceBuffer>> arguments;
  std::vector<cuda::DeviceBuffer> results, scratch;
  llvm::SmallVector<llvm::SmallVector<int64_t, 4>> strides;
  runtime::Invocation invocation;
};

class GpuExecutor : public Executor {
public:
  GpuExecutor(const GpuProgram &program, Gpu &gpu, Layout layout)
      : resultTypes(program.resultTypes), gpu(gpu), layout(layout) {}

  /// Takes the host side of the program.
  llvm::Error load(GpuProgram &program);

  llvm::Expected<std::vector<HostTensor>>
  run(llvm::ArrayRef<HostTensor> inputs) override;
  void setChecked(bool value) override {
    checked = value;
    checkedRuns = 0;
  }
  llvm::Expected<Timing> benchmark(llvm::ArrayRef<HostTensor> inputs,
                                   const Effort &effort) override;
  Machine getMachine() const override { return machine; }

private:
  llvm::Expected<GpuCall> prepare(llvm::ArrayRef<HostTensor> inputs);
  llvm::Error allocate(llvm::ArrayRef<HostTensor> inputs, GpuCall &call);
  llvm::Error allowLaunches(const GpuCall &call);
  llvm::Error checkMemory(llvm::ArrayRef<HostTensor> inputs,
                          const GpuCall &call);
  llvm::Expected<HostTensor> takeResult(const GpuCall &call, size_t index);
  /// The bytes of an argument as they lie in memory; gaps are 0xFF.
  std::vector<char> lay(const HostTensor &input, const GpuCall &call,
                        size_t index) const;

  runtime::HostProgram host;
  llvm::SmallVector<DType> resultTypes;
  Gpu &gpu;
  Layout layout;
  bool checked = false;
  unsigned checkedRuns = 0;
  std::optional<LoadedProgram> loaded;
  Machine machine;
};

} // namespace flash::run

#endif // FLASH_LIB_RUN_GPUEXECUTOR_H
