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
  /// If it is not null, all benchmarks have the same inputs. The first
  /// benchmark copies them to these buffers, and later ones use them again.
  std::shared_ptr<std::vector<cuda::DeviceBuffer>> residentArguments = nullptr;

  /// Opens the first GPU. Prints a note if flash-mlir was never tried on it.
  /// Fails if it has no description and `options.isStrict` is set.
  static llvm::Expected<std::unique_ptr<Gpu>> open(const Options &options);
};

/// Loads the kernels of a program, and adds the seconds that this takes to
/// `program.times`. Moves the host program out of `program`. With
/// `options.ptxas` the kernels are assembled first. `gpu` must outlive the
/// executor.
llvm::Expected<std::unique_ptr<Executor>>
loadOnGpu(GpuProgram &program, Gpu &gpu, const Options &options);

} // namespace flash::run

#endif // FLASH_RUN_GPU_H
