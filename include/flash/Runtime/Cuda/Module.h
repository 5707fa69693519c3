//===- Module.h - Loaded programs and their kernels -------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An example of a checked run, without the handling of errors:
//
//   Device device = *Device::open();
//   Function kernel = *Module::load(device, ptx, "f.ptx")->getFunction("f");
//   DeviceBuffer out = *DeviceBuffer::allocate(
//       device, "out", bytes, {checkedRedZoneBytes, /*poison=*/true});
//   kernel.launch({grid, block, sharedBytes}, {&out.getAddress(), &count});
//   device.synchronize(); // Reports faults and time-outs.
//   out.checkRedZones();
//   out.copyToHost(host);
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_CUDA_MODULE_H
#define FLASH_RUNTIME_CUDA_MODULE_H

#include "flash/Runtime/Cuda/Stream.h"
#include "llvm/ADT/ArrayRef.h"
#include <atomic>

namespace flash::cuda {

struct CUmod_st;
struct CUfunc_st;

/// Properties of a kernel that the driver reports.
struct FunctionInfo {
  std::string name;
  /// The registers of a thread.
  int registers = 0;
  /// The bytes of local memory of a thread, which has spilled registers and
  /// arrays.
  int localBytes = 0;
  int staticSharedBytes = 0;
  int constantBytes = 0;
  /// The largest number of threads of a block.
  int maxThreads = 0;
  /// The version of the architecture of the machine code, and the version of
  /// the PTX from which it was made: 10 * major + minor.
  int binaryVersion = 0, ptxVersion = 0;
  /// The number of parameters, which is known for PTX only, and the bytes that
  /// they fill. Drivers before 12.4 do not report these.
  std::optional<int> parameters;
  std::optional<int64_t> parameterBytes;
};

/// The sizes of a launch, and when the kernel may start.
struct LaunchShape {
  /// The number of blocks of the grid, and the number of threads of a block,
  /// along x, y and z.
  std::array<int64_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  int64_t dynamicSharedBytes = 0;
  /// Whether the kernel may start before the previous kernel on the stream has
  /// ended (programmatic dependent launch). It then waits for that kernel
  /// itself (griddepcontrol.wait). Ignored before CUDA 12.3.
  bool isDependent = false;
};

/// A kernel. Copies refer to the same kernel of the same module, which they
/// keep loaded.
class Function {
public:
  const FunctionInfo &getInfo() const { return info; }

  /// Allows launches with up to `bytes` bytes of dynamic shared memory. Needed
  /// if static and dynamic shared memory exceed 48 KiB. The limit holds for all
  /// objects of this kernel. Fails if a block of the device cannot have so
  /// much.
  llvm::Error setDynamicSharedLimit(int64_t bytes);

  /// The number of blocks of this shape that one multiprocessor runs at the
  /// same time. If it is 0, the kernel cannot be launched. Fails as `launch`
  /// does if the shape breaks a limit.
  llvm::Expected<int> getOccupancy(const LaunchShape &shape) const;

  /// Queues a launch. Each argument points to the value of one parameter, which
  /// is read before the call returns. Fails if the shape breaks a limit of the
  /// device or the kernel, if an argument is null, or if the number of
  /// arguments is known to be wrong. If the kernel faults, calls that wait for
  /// it later report the error.
  llvm::Error launch(const LaunchShape &shape,
                     llvm::ArrayRef<const void *> arguments,
                     const Stream &stream = {}) const;

  /// As `launch`, with the values of all parameters in one buffer, each at its
  /// offset.
  llvm::Error launchPacked(const LaunchShape &shape,
                           llvm::ArrayRef<char> parameters,
                           const Stream &stream = {}) const;

private:
  friend class Module;
  struct Loaded;

  Function() = default;
  llvm::Error checkShape(const LaunchShape &shape) const;
  /// Queues a launch with one of the driver's two ways to pass parameters.
  llvm::Error enqueue(const LaunchShape &shape, void **arguments, void **extra,
                      const Stream &stream) const;

  std::shared_ptr<Loaded> module;
  CUfunc_st *handle = nullptr;
  FunctionInfo info;
  /// The limit of dynamic shared memory in bytes. The module owns it, and all
  /// objects of the kernel share it.
  std::atomic<int> *sharedLimit = nullptr;
};

/// A program that is loaded on a device.
class Module {
public:
  /// Loads the text of PTX, or the bytes of a cubin. `name` is for messages.
  /// Fails if the driver refuses the program or is too old for its PTX version.
  static llvm::Expected<Module>
  load(const Device &device, llvm::StringRef image, llvm::StringRef name);

  /// The kernel of this name. Waits for running kernels first.
  llvm::Expected<Function> getFunction(llvm::StringRef name) const;

  /// The messages of the driver's ptxas: registers and spills of each kernel,
  /// and warnings. Empty for a cubin.
  const std::string &getLog() const { return log; }

private:
  Module() = default;

  std::shared_ptr<Function::Loaded> loaded;
  std::string log;
};

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_MODULE_H
