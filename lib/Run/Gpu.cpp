//===- Gpu.cpp - The GPU of this process ----------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Gpu.h"

#include "GpuExecutor.h"
#include "NominalPeaks.h"
#include "flash/Compile/Stopwatch.h"
#include "flash/Run/Work.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/WithColor.h"

namespace cuda = flash::cuda;
using namespace flash::run;
using llvm::formatv;

llvm::Expected<std::unique_ptr<Gpu>> Gpu::open(const Options &options) {
  auto driver = cuda::Driver::load(options.cudaDriver);
  if (!driver)
    return driver.takeError();
  auto device = cuda::Device::open(std::move(*driver));
  if (!device)
    return device.takeError();
  const cuda::DeviceInfo &info = device->getInfo();
  std::string warning = info.getWarning(
      options.isGpu() ? &options.target.getMachine() : info.getTarget());
  if (options.isStrict && info.isUndescribed())
    return llvm::createStringError("--strict-target: " + warning);
  if (!warning.empty())
    llvm::WithColor::note(llvm::errs(), "flash-run") << warning << "\n";
  auto telemetry = cuda::Telemetry::open(device->getInfo().pciBusId);
  return std::unique_ptr<Gpu>(
      new Gpu{std::move(*device), std::move(telemetry)});
}

llvm::Error GpuExecutor::load(GpuProgram &program) {
  Stopwatch watch;
  auto result = LoadedProgram::load(program, gpu.device);
  if (!result)
    return result.takeError();
  loaded = std::move(*result);
  host = std::move(program.host);
  program.times.emplace_back("load", watch.lap());

  const cuda::DeviceInfo &info = gpu.device.getInfo();
  machine.name = info.name;
  machine.architecture = info.getArchitecture();
  machine.driver = formatv("CUDA {0}.{1}", info.driverVersion / 1000,
                           info.driverVersion % 1000 / 10);
  if (auto version = gpu.telemetry.read().driverVersion)
    machine.driver = *version + ", " + machine.driver;
  machine.peakFlops =
      getPeakFlops(info, resultTypes.front(), getPrecision(*program.level0),
                   machine.peakKind);
  machine.peakBandwidth = getPeakBandwidth(info);
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Executor>>
flash::run::loadOnGpu(GpuProgram &program, Gpu &gpu, const Options &options) {
  const cuda::DeviceInfo &info = gpu.device.getInfo();
  // A cubin is for the device at hand, unless its code runs on no other.
  if (options.ptxas)
    if (llvm::Error error = program.runPtxas(
            flash::findMachine(program.gpu)->isPortable ? info.getArchitecture()
                                                        : program.gpu))
      return std::move(error);
  auto executor = std::make_unique<GpuExecutor>(program, gpu, options.layout);
  if (llvm::Error error = executor->load(program))
    return std::move(error);
  return std::move(executor);
}
