//===- LoadedProgram.h - Kernels on a device --------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_COMPILE_LOADEDPROGRAM_H
#define FLASH_COMPILE_LOADEDPROGRAM_H

#include "flash/Compile/GpuProgram.h"
#include "flash/Runtime/Cuda/Module.h"

namespace flash::compile {

/// The kernels of a program on a device, and how its plan launches them.
class LoadedProgram {
public:
  /// Fails on a device that the program's target is not for. The program's
  /// plan is not kept: every call of the methods gets it.
  static llvm::Expected<LoadedProgram> load(const GpuProgram &program,
                                            const cuda::Device &device);

  const cuda::Device &getDevice() const { return device; }
  /// The kernel of a launch, by its number in the plan.
  const cuda::Function &getFunction(unsigned index) const {
    return functions[index];
  }

  /// Puts addresses into the parameters of a prepared call (LaunchPlan::bind).
  llvm::Error bind(const runtime::LaunchPlan &plan,
                   llvm::ArrayRef<runtime::TensorArgument> arguments,
                   llvm::ArrayRef<uint64_t> buffers,
                   runtime::Invocation &call) const;

  /// Lets the kernels of a call have the shared memory they ask for. Asks the
  /// driver only for more than in all calls before.
  llvm::Error allowShared(const runtime::Invocation &call);

  /// Queues the launches of a bound call, whose shared memory is allowed.
  /// Neither waits nor allocates device memory.
  llvm::Error launch(const runtime::LaunchPlan &plan,
                     const runtime::Invocation &call,
                     const cuda::Stream &stream) const;

private:
  explicit LoadedProgram(const cuda::Device &device) : device(device) {}

  cuda::Device device;
  /// One for each launch of the plan, and the shared memory it may have.
  std::vector<cuda::Function> functions;
  std::vector<int64_t> sharedBytes;
};

/// The sizes of a launch as the driver takes them.
cuda::LaunchShape getShape(const runtime::Invocation::Launch &launch);

} // namespace flash::compile

#endif // FLASH_COMPILE_LOADEDPROGRAM_H
