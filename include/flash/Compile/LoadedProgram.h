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

/// The kernels of a program, loaded on a device.
class LoadedProgram {
public:
  /// Loads all kernels of a program. Fails if the device cannot run kernels for
  /// the GPU of the program. The host program is not kept; methods that need it
  /// take it as an argument.
  static llvm::Expected<LoadedProgram> load(const GpuProgram &program,
                                            const cuda::Device &device);

  const cuda::Device &getDevice() const { return device; }
  /// The kernel of a launch. `index` is the index in `HostProgram::launches`.
  const cuda::Function &getFunction(unsigned index) const {
    return functions[index];
  }

  /// Writes addresses into the parameters of a prepared call, and encodes its
  /// tensor maps (`HostProgram::bind`).
  llvm::Error bind(const runtime::HostProgram &host,
                   llvm::ArrayRef<runtime::TensorArgument> arguments,
                   llvm::ArrayRef<uint64_t> results,
                   llvm::ArrayRef<uint64_t> scratch,
                   runtime::Invocation &call) const;

  /// Allows the kernels of a prepared call the dynamic shared memory that its
  /// launches have. Calls the driver only if that is more than in all previous
  /// calls. Fails if a block of the device cannot have so much.
  llvm::Error allowShared(const runtime::Invocation &call);

  /// Queues the launches of a call on a stream. `bind` and `allowShared` must
  /// have been called for it. Does not wait, and does not allocate device
  /// memory.
  llvm::Error launch(const runtime::HostProgram &host,
                     const runtime::Invocation &call,
                     const cuda::Stream &stream) const;

private:
  explicit LoadedProgram(const cuda::Device &device) : device(device) {}

  cuda::Device device;
  /// The kernel of each launch of the program, and the bytes of dynamic shared
  /// memory that it is allowed.
  std::vector<cuda::Function> functions;
  std::vector<int64_t> sharedBytes;
};

/// The sizes of a launch. `isDependent` is not set.
cuda::LaunchShape getShape(const runtime::Invocation::Launch &launch);

} // namespace flash::compile

#endif // FLASH_COMPILE_LOADEDPROGRAM_H
