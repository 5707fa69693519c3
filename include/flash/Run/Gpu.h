//===- Gpu.h - The GPU of this process --------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_GPU_H
#define FLASH_RUN_GPU_H

#include "flash/Compile/GpuProgram.h"
#include "flash/Run/Executor.h"
#include "flash/Run/Options.h"
#include "flash/Runtime/Cuda/Device.h"
#include "flash/Runtime/Cuda/DeviceBuffer.h"
#include "flash/Runtime/Cuda/Telemetry.h"

namespace flash::run {

/// A device and its sensors.
struct Gpu {
  cuda::Device device;
  cuda::Telemetry telemetry;
  /// While all benchmarks have the same inputs: those, once one has run.
  std::shared_ptr<std::vector<cuda::DeviceBuffer>> residentArguments = nullptr;

  static llvm::Expected<std::unique_ptr<Gpu>> open(const Options &options);
};

/// Loads the kernels of a program; adds what that takes to its times. `gpu`
/// outlives the executor.
llvm::Expected<std::unique_ptr<Executor>>
loadOnGpu(GpuProgram &program, Gpu &gpu, const Options &options);

} // namespace flash::run

#endif // FLASH_RUN_GPU_H
