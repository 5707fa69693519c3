//===- Telemetry.cpp - Clocks and power of a device -----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/Cuda/Telemetry.h"

#include "llvm/Support/DynamicLibrary.h"

using namespace flash::cuda;

namespace {
/// Types and values of NVML's reference manual.
using nvmlDevice_t = struct nvmlDevice_st *;
constexpr int nvmlSuccess = 0;
constexpr int nvmlClockSm = 1, nvmlClockMem = 2;
} // namespace

/// NVML's functions; null where the library lacks them.
struct Telemetry::Library {
  int (*shutdown)() = nullptr;
  int (*getDriverVersion)(char *, unsigned) = nullptr;
  int (*getClock)(nvmlDevice_t, int, unsigned *) = nullptr;
  int (*getPower)(nvmlDevice_t, unsigned *) = nullptr;
  nvmlDevice_t device = nullptr;

  ~Library() {
    if (shutdown)
      shutdown();
  }
};

Telemetry::Telemetry(std::unique_ptr<Library> library)
    : library(std::move(library)) {}
Telemetry::Telemetry(Telemetry &&) = default;
Telemetry &Telemetry::operator=(Telemetry &&) = default;
Telemetry::~Telemetry() = default;

Telemetry Telemetry::open(llvm::StringRef pciBusId, llvm::StringRef path) {
  auto handle =
      llvm::sys::DynamicLibrary::getPermanentLibrary(path.str().c_str());
  auto library = std::make_unique<Library>();
  if (!handle.isValid())
    return Telemetry(std::move(library));
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(
        handle.getAddressOfSymbol(name));
    return function != nullptr;
  };
  int (*init)() = nullptr;
  if (!find(init, "nvmlInit_v2") || init() != nvmlSuccess)
    return Telemetry(std::move(library));
  find(library->shutdown, "nvmlShutdown");
  find(library->getDriverVersion, "nvmlSystemGetDriverVersion");

  int (*getDevice)(const char *, nvmlDevice_t *) = nullptr;
  if (find(getDevice, "nvmlDeviceGetHandleByPciBusId_v2") &&
      getDevice(pciBusId.str().c_str(), &library->device) == nvmlSuccess) {
    find(library->getClock, "nvmlDeviceGetClockInfo");
    find(library->getPower, "nvmlDeviceGetPowerUsage");
  }
  return Telemetry(std::move(library));
}

Readings Telemetry::read() const {
  Readings readings;
  char version[80] = {};
  if (library->getDriverVersion &&
      library->getDriverVersion(version, sizeof(version) - 1) == nvmlSuccess)
    readings.driverVersion = version;
  auto readClock = [&](int kind) -> std::optional<int> {
    unsigned megahertz = 0;
    if (!library->getClock ||
        library->getClock(library->device, kind, &megahertz) != nvmlSuccess)
      return std::nullopt;
    return megahertz;
  };
  readings.clockMHz = readClock(nvmlClockSm);
  readings.memoryClockMHz = readClock(nvmlClockMem);
  unsigned milliwatts = 0;
  if (library->getPower &&
      library->getPower(library->device, &milliwatts) == nvmlSuccess)
    readings.powerWatts = milliwatts / 1000.0;
  return readings;
}
