//===- CudaDriverTest.cpp - Finding the driver and the device -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaRuntimeTest.h"
#include "flash/Runtime/Cuda/Telemetry.h"

using namespace cudatest;
using namespace flash::cuda;
using llvm::StringRef;

void cudatest::testDriver() {
  using Kind = ErrorKind;
  checkError(Driver::load("libnowhere.so.1"), Kind::Unavailable,
             {"no NVIDIA driver: libnowhere.so.1 was not found; use "
              "--target=cpu or --target=emulate"});
  checkError(Driver::load("/dev/null"), Kind::Unavailable,
             {"the NVIDIA driver cannot be loaded: /dev/null", "--target=cpu"});
  checkError(Driver::load(FAKE_CUDA_OLD_PATH), Kind::DriverTooOld,
             {"too old", "has no cuStreamCreate;", "update the driver"});

  std::pair<int, const char *> advice[] = {{100, "CUDA_VISIBLE_DEVICES"},
                                           {34, "stub"},
                                           {46, "another process"},
                                           {802, "fabric manager"},
                                           {803, "different versions"},
                                           {804, "forward compatibility"},
                                           {999, "nvidia-smi"}};
  for (auto [result, text] : advice) {
    Failing failing("cuInit", result);
    checkError(Driver::load(FAKE_CUDA_PATH), Kind::Unavailable,
               {"does not start: cuInit failed with", text, "--target=cpu"});
  }
  {
    Failing failing("cuInit", 100);
    checkError(Driver::load(FAKE_CUDA_PATH), Kind::Unavailable,
               {"CUDA_ERROR_NO_DEVICE (some text)"});
  }
  {
    Failing failing("cuInit", 12345);
    checkError(Driver::load(FAKE_CUDA_PATH), Kind::Unavailable,
               {"the unknown error 12345"});
  }
  for (const char *call : {"cuDriverGetVersion", "cuDeviceGetCount"}) {
    Failing failing(call, 999);
    checkError(Driver::load(FAKE_CUDA_PATH), Kind::Unavailable, {call});
  }
  getFake().deviceCount = 0;
  checkError(Driver::load(FAKE_CUDA_PATH), Kind::Unavailable,
             {"sees no device", "CUDA_VISIBLE_DEVICES", "--target=cpu"});
  getFake().deviceCount = 2;

  auto driver = get(Driver::load(FAKE_CUDA_PATH));
  check(driver->getVersion() == 12080, "version");
  check(driver->getVersionString() == "12.8", "version string");
  check(driver->getDeviceCount() == 2, "device count");
}

void cudatest::testDevice() {
  auto driver = get(Driver::load(FAKE_CUDA_PATH));
  for (int ordinal : {-1, 2})
    checkError(Device::open(driver, ordinal), ErrorKind::InvalidRequest,
               {"there is no CUDA device", "sees 2 device(s)"});
  for (const char *call :
       {"cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent"}) {
    Failing failing(call, 999);
    checkError(Device::open(driver), ErrorKind::DriverFailure,
               {"cannot", call, "CUDA_ERROR_UNKNOWN"});
  }
  for (auto [call, what] :
       {std::pair("cuDeviceGetName", "cannot query the name"),
        {"cuDeviceGetPCIBusId", "cannot query the PCI bus id"},
        {"cuDeviceTotalMem_v2", "cannot query the memory"},
        {"cuDeviceGetAttribute", "cannot query the compute capability"}}) {
    Failing failing(call, 999);
    checkError(Device::open(driver), ErrorKind::DriverFailure,
               {what, "of CUDA device 0"});
  }

  Device device = get(Device::open(driver, 1));
  const DeviceInfo &info = device.getInfo();
  check(info.ordinal == 1 && info.name == "Fake GPU" &&
            info.pciBusId == "0000:18:00.0" && info.driverVersion == 12080,
        "names");
  check(info.getArchitecture() == "sm_90" && info.multiprocessors == 132 &&
            info.warpSize == 32,
        "architecture");
  check(info.l2Bytes == 1 << 16 && info.totalBytes == 1 << 24 &&
            info.memoryBusBits == 6144,
        "memory");
  check(!info.clockKHz && info.memoryClockKHz == 3201000, "clocks");
  check(info.sharedBytesPerBlock == 49152 &&
            info.sharedBytesPerBlockOptIn == 232448 &&
            info.sharedBytesPerMultiprocessor == 233472 &&
            info.sharedReservedBytes == 1024,
        "shared memory");
  check(info.registersPerBlock == 65536 &&
            info.registersPerMultiprocessor == 65536 &&
            info.threadsPerBlock == 1024 &&
            info.threadsPerMultiprocessor == 2048,
        "registers and threads");
  check(info.maxBlock[2] == 64 && info.maxGrid[0] == 2147483647 &&
            info.maxGrid[1] == 65535,
        "limits");
  DeviceMemory memory = get(device.getMemory());
  check(memory.free == 1 << 24 && memory.total == 1 << 24, "free memory");
  Failing failing("cuMemGetInfo_v2", 999);
  checkError(device.getMemory(), ErrorKind::DriverFailure,
             {"cannot query the free memory: cuMemGetInfo failed"});
}

void cudatest::testTelemetry() {
  Readings all = Telemetry::open("0000:18:00.0", FAKE_NVML_PATH).read();
  check(all.clockMHz == 1830 && all.memoryClockMHz == 3201 &&
            all.powerWatts == 412.5 && all.driverVersion == "570.86.15",
        "readings");
  Readings unknown = Telemetry::open("0000:99:00.0", FAKE_NVML_PATH).read();
  check(!unknown.clockMHz && !unknown.memoryClockMHz && !unknown.powerWatts &&
            unknown.driverVersion == "570.86.15",
        "readings of a device that NVML does not know");
  for (const char *path : {"libnowhere.so.1", FAKE_CUDA_PATH}) {
    Readings none = Telemetry::open("0000:18:00.0", path).read();
    check(!none.clockMHz && !none.memoryClockMHz && !none.powerWatts &&
              !none.driverVersion,
          "readings without NVML");
  }
}
