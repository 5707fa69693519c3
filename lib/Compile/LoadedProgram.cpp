//===- LoadedProgram.cpp - Kernels on a device ----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Compile/LoadedProgram.h"

#include "flash/Compile/CompileOptions.h"
#include "flash/Runtime/Cuda/TensorMap.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

namespace cuda = flash::cuda;
using flash::Machine;
using namespace flash::compile;
using flash::runtime::HostProgram;
using flash::runtime::Invocation;
using flash::runtime::TensorArgument;
using llvm::createStringError;
using llvm::formatv;

llvm::Expected<LoadedProgram> LoadedProgram::load(const GpuProgram &program,
                                                  const cuda::Device &device) {
  const cuda::DeviceInfo &info = device.getInfo();
  const Machine *machine = flash::findMachine(program.gpu);
  int64_t own = info.getComputeCapability();
  if (own != machine->computeCapability &&
      !(machine->isPortable && own > machine->computeCapability)) {
    const Machine *target = info.getTarget();
    return createStringError(
        formatv("kernels for {0} do not run on {1} ({2}); use --target={3}",
                program.gpu, info.name, info.getArchitecture(),
                target ? target->name : flash::getCpu().name));
  }
  std::map<std::string, cuda::Module> modules;
  for (const GpuProgram::Module &module : program.modules) {
    auto loaded = cuda::Module::load(device, module.getImage(), module.name);
    if (!loaded)
      return loaded.takeError();
    modules.emplace(module.name, std::move(*loaded));
  }
  LoadedProgram result(device);
  for (const HostProgram::Launch &launch : program.host.launches) {
    auto function = modules.at(launch.module).getFunction(launch.kernel);
    if (!function)
      return function.takeError();
    result.functions.push_back(std::move(*function));
  }
  result.sharedBytes.assign(result.functions.size(), 0);
  return result;
}

llvm::Error LoadedProgram::bind(const HostProgram &host,
                                llvm::ArrayRef<TensorArgument> arguments,
                                llvm::ArrayRef<uint64_t> results,
                                llvm::ArrayRef<uint64_t> scratch,
                                Invocation &call) const {
  auto encode = [&](const llvm::Twine &name,
                    const cuda::TensorMapOptions &options) {
    return cuda::encodeTensorMap(device, name, options);
  };
  return host.bind(arguments, results, scratch, call, encode);
}

llvm::Error LoadedProgram::allowShared(const Invocation &call) {
  for (const Invocation::Launch &launch : call.launches) {
    int64_t &allowed = sharedBytes[launch.index];
    if (launch.sharedBytes <= allowed)
      continue;
    if (llvm::Error error =
            functions[launch.index].setDynamicSharedLimit(launch.sharedBytes))
      return error;
    allowed = launch.sharedBytes;
  }
  return llvm::Error::success();
}

cuda::LaunchShape flash::compile::getShape(const Invocation::Launch &launch) {
  return {{launch.grid[0], launch.grid[1], launch.grid[2]},
          {launch.block[0], launch.block[1], launch.block[2]},
          launch.sharedBytes};
}

llvm::Error LoadedProgram::launch(const HostProgram &host,
                                  const Invocation &call,
                                  const cuda::Stream &stream) const {
  llvm::ArrayRef<char> parameters = call.parameters;
  for (auto [i, launch] : llvm::enumerate(call.launches)) {
    const HostProgram::Launch &listed = host.launches[launch.index];
    const cuda::Function &function = functions[launch.index];
    cuda::LaunchShape shape = getShape(launch);
    shape.isDependent = listed.isDependent;
    if (llvm::Error error =
            listed.hasTensorMaps()
                ? function.launch(shape, host.getPointers(call, i), stream)
                : function.launchPacked(
                      shape,
                      parameters.slice(launch.firstByte, listed.parameterBytes),
                      stream))
      return error;
  }
  return llvm::Error::success();
}
