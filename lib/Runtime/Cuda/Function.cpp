//===- Function.cpp - Kernels and their launches --------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoadedModule.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace flash::cuda;
using llvm::formatv;

llvm::Error Function::setDynamicSharedLimit(int64_t bytes) {
  Context &context = *module->context;
  const DeviceInfo &device = context.getInfo();
  int64_t needed = info.staticSharedBytes + std::max<int64_t>(bytes, 0);
  if (bytes < 0)
    return fail(ErrorKind::InvalidRequest,
                formatv("kernel '{0}': {1} bytes of shared memory are no size",
                        info.name, bytes));
  if (bytes > device.sharedBytesPerBlockOptIn - info.staticSharedBytes)
    return fail(
        ErrorKind::InvalidRequest,
        formatv("kernel '{0}' needs {1} bytes of shared memory ({2} static, "
                "{3} dynamic), but {4} has {5} for a block; use smaller tiles "
                "or fewer stages",
                info.name, needed, info.staticSharedBytes, bytes, device.name,
                device.sharedBytesPerBlockOptIn));
  if (llvm::Error error = context.enter())
    return error;
  if (llvm::Error error = context.call(
          "cannot set the shared memory of kernel '" + info.name + "'",
          context.getApi().cuFuncSetAttribute, handle,
          CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, int(bytes)))
    return error;
  *sharedLimit = int(bytes);
  return llvm::Error::success();
}

llvm::Error Function::checkShape(const LaunchShape &shape) const {
  Context &context = *module->context;
  const DeviceInfo &device = context.getInfo();
  auto refuse = [&](const llvm::Twine &why) {
    return fail(ErrorKind::InvalidRequest,
                "cannot launch kernel '" + info.name + "': " + why);
  };
  int64_t threads = 1;
  for (unsigned d = 0; d < 3; ++d) {
    if (shape.grid[d] < 1 || shape.grid[d] > device.maxGrid[d])
      return refuse(formatv("its grid has {0} blocks along {1}; {2} takes 1 to "
                            "{3}",
                            shape.grid[d], "xyz"[d], device.name,
                            device.maxGrid[d]));
    if (shape.block[d] < 1 || shape.block[d] > device.maxBlock[d])
      return refuse(formatv("its blocks have {0} threads along {1}; {2} takes "
                            "1 to {3}",
                            shape.block[d], "xyz"[d], device.name,
                            device.maxBlock[d]));
    threads *= shape.block[d];
  }
  if (threads > info.maxThreads)
    return refuse(formatv("its blocks have {0} threads; with {1} registers per "
                          "thread and its declared bounds it takes up to {2}",
                          threads, info.registers, info.maxThreads));
  int limit = *sharedLimit;
  if (shape.dynamicSharedBytes < 0 ||
      (shape.dynamicSharedBytes > 0 && shape.dynamicSharedBytes > limit))
    return refuse(formatv("it has {0} bytes of dynamic shared memory; 0 to {1} "
                          "are allowed (setDynamicSharedLimit)",
                          shape.dynamicSharedBytes, limit));
  return llvm::Error::success();
}

llvm::Expected<int> Function::getOccupancy(const LaunchShape &shape) const {
  Context &context = *module->context;
  if (llvm::Error error = context.enter())
    return error;
  if (llvm::Error error = checkShape(shape))
    return error;
  int blocks = 0;
  if (llvm::Error error = context.call(
          "cannot query the occupancy of kernel '" + info.name + "'",
          context.getApi().cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks,
          handle, int(shape.block[0] * shape.block[1] * shape.block[2]),
          size_t(shape.dynamicSharedBytes)))
    return error;
  return blocks;
}

llvm::Error Function::launch(const LaunchShape &shape,
                             llvm::ArrayRef<const void *> arguments,
                             const Stream &stream) const {
  Context &context = *module->context;
  if (llvm::Error error = context.enter())
    return error;
  if (llvm::Error error = checkShape(shape))
    return error;
  // The driver would read past the array, or from null.
  if (info.parameters && size_t(*info.parameters) != arguments.size())
    return fail(
        ErrorKind::InvalidRequest,
        formatv("cannot launch kernel '{0}': it has {1} parameters, {2} "
                "arguments are given",
                info.name, *info.parameters, arguments.size()));
  if (const auto *null = llvm::find(arguments, nullptr);
      null != arguments.end())
    return fail(ErrorKind::InvalidRequest,
                formatv("cannot launch kernel '{0}': the pointer to argument "
                        "{1} is null",
                        info.name, null - arguments.begin()));
  return enqueue(shape, const_cast<void **>(arguments.data()), nullptr, stream);
}

llvm::Error Function::launchPacked(const LaunchShape &shape,
                                   llvm::ArrayRef<char> parameters,
                                   const Stream &stream) const {
  if (llvm::Error error = module->context->enter())
    return error;
  if (llvm::Error error = checkShape(shape))
    return error;
  if (info.parameterBytes && size_t(*info.parameterBytes) > parameters.size())
    return fail(ErrorKind::InvalidRequest,
                formatv("cannot launch kernel '{0}': its parameters fill {1} "
                        "bytes, {2} are given",
                        info.name, *info.parameterBytes, parameters.size()));
  size_t size = parameters.size();
  void *extra[] = {reinterpret_cast<void *>(launchParameterBuffer),
                   const_cast<char *>(parameters.data()),
                   reinterpret_cast<void *>(launchParameterSize), &size,
                   reinterpret_cast<void *>(launchParameterEnd)};
  return enqueue(shape, nullptr, extra, stream);
}

/// Before CUDA 12.3 no dependent launch can be captured in a graph. An ordinary
/// one does as well: what the kernel waits for has ended when it starts.
static bool takesDependentLaunches(Context &context) {
  return context.getInfo().driverVersion >= 12030 &&
         context.getApi().cuLaunchKernelEx.function;
}

llvm::Error Function::enqueue(const LaunchShape &shape, void **arguments,
                              void **extra, const Stream &stream) const {
  Context &context = *module->context;
  std::array<unsigned, 3> grid, block;
  llvm::copy(shape.grid, grid.begin());
  llvm::copy(shape.block, block.begin());
  unsigned sharedBytes = shape.dynamicSharedBytes;
  auto launch = [&]() -> llvm::Error {
    if (!shape.isDependent || !takesDependentLaunches(context))
      return context.call("cannot launch kernel '" + info.name + "'",
                          context.getApi().cuLaunchKernel, handle, grid[0],
                          grid[1], grid[2], block[0], block[1], block[2],
                          sharedBytes, stream.getHandle(), arguments, extra);
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config = {
        grid[0],    grid[1],       grid[2],     block[0],
        block[1],   block[2],      sharedBytes, stream.getHandle(),
        &attribute, /*numAttrs=*/1};
    return context.call("cannot launch kernel '" + info.name + "'",
                        context.getApi().cuLaunchKernelEx, &config, handle,
                        arguments, extra);
  };
  if (llvm::Error error = launch())
    return error;
  context.addLaunch(info.name, stream);
  return llvm::Error::success();
}
