//===- Module.h - Loaded programs and their kernels -------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One checked run, without the handling of errors:
//
//   Device device = *Device::open();
//   Function kernel = *Module::load(device, ptx, "f.ptx")->getFunction("f");
//   DeviceBuffer out = *DeviceBuffer::allocate(
//       device, "out", bytes, {checkedRedZoneBytes, /*poison=*/true});
//   kernel.launch({grid, block, sharedBytes}, {&out.getAddress(), &count});
//   device.synchronize(); // Faults and time-outs come out here.
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

/// What the driver says about a kernel.
struct FunctionInfo {
  std::string name;
  /// Registers of a thread.
  int registers = 0;
  /// Bytes of local memory of a thread: spilled registers and arrays.
  int localBytes = 0;
  int staticSharedBytes = 0;
  int constantBytes = 0;
  /// Most threads of a block with this kernel.
  int maxThreads = 0;
  /// 10 * major + minor of the architecture and of the PTX it was made from.
  int binaryVersion = 0, ptxVersion = 0;
  /// Number of parameters, from the text of PTX, and the bytes they fill, which
  /// drivers before 12.4 do not report.
  std::optional<int> parameters;
  std::optional<int64_t> parameterBytes;
};

/// The size of one launch, and when it may start.
struct LaunchShape {
  /// Blocks and threads of a block along x, y and z.
  std::array<int64_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  int64_t dynamicSharedBytes = 0;
  /// Whether the kernel may start before the one before it on the stream has
  /// ended. It then waits itself (griddepcontrol.wait).
  bool isDependent = false;
};

/// A kernel. Copies refer to the same kernel of the same module, which they
/// keep loaded.
class Function {
public:
  const FunctionInfo &getInfo() const { return info; }

  /// Allows launches with that much dynamic shared memory; needed above what
  /// the device gives without this call (48 KiB with the static part).
  llvm::Error setDynamicSharedLimit(int64_t bytes);

  /// Blocks of this shape that one multiprocessor runs at a time. 0 means that
  /// the kernel cannot be launched.
  llvm::Expected<int> getOccupancy(const LaunchShape &shape) const;

  /// Queues a launch. Each argument points to the value of one parameter and
  /// is read before the call returns. Faults of the kernel come out of later
  /// calls that wait.
  llvm::Error launch(const LaunchShape &shape,
                     llvm::ArrayRef<const void *> arguments,
                     const Stream &stream = {}) const;

  /// The same with the values of all parameters in one buffer, each at its
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
  /// The module's, which all objects of the kernel share.
  std::atomic<int> *sharedLimit = nullptr;
};

/// A program on a device.
class Module {
public:
  /// Loads PTX text or the bytes of a cubin. `name` is for messages.
  static llvm::Expected<Module>
  load(const Device &device, llvm::StringRef image, llvm::StringRef name);

  llvm::Expected<Function> getFunction(llvm::StringRef name) const;

  /// What the driver's ptxas said: registers and spills of each kernel,
  /// warnings. Empty for a cubin.
  const std::string &getLog() const { return log; }

private:
  Module() = default;

  std::shared_ptr<Function::Loaded> loaded;
  std::string log;
};

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_MODULE_H
