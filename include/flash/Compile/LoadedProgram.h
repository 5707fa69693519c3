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

/// The kernels of a program on a device, and how the program launches them.
class LoadedProgram {
public:
  /// Fails on a device that the program's target is not for. The program's
  /// host side is not kept: the methods that need it get it.
  static llvm::Expected<LoadedProgram> load(const GpuProgram &program,
                                            const cuda::Device &device);

  const cuda::Device &getDevice() const { return device; }
  /// The kernel of a launch, by its number in the program.
  const cuda::Function &getFunction(unsigned index) const {
    return functions[index];
  }

  /// Puts addresses into the parameters of a prepared call (HostProgram::bind).
  llvm::Error bind(const runtime::HostProgram &host,
                   llvm::ArrayRef<runtime::TensorArgument> arguments,
                   llvm::ArrayRef<uint64_t> results,
                   llvm::ArrayRef<uint64_t> scratch,
                   runtime::Invocation &call) const;

  /// Lets the kernels of a call have the shared memory they need. Calls the
  /// driver only where that is more than in all calls before.
  llvm::Error allowShared(const runtime::Invocation &call);

  /// Queues the launches of a bound call, whose shared memory is allowed.
  /// Neither waits nor allocates device memory.
  llvm::Error launch(const runtime::HostProgram &host,
                     const runtime::Invocation &call,
                     const cuda::Stream &stream) const;

private:
  explicit LoadedProgram(const cuda::Device &device) : device(device) {}

  cuda::Device device;
  /// One for each launch of the program, and the shared memory it may have.
  std::vector<cuda::Function> functions;
  std::vector<int64_t> sharedBytes;
};

/// The sizes of a launch as the driver takes them.
cuda::LaunchShape getShape(const runtime::Invocation::Launch &launch);

} // namespace flash::compile

#endif // FLASH_COMPILE_LOADEDPROGRAM_H
