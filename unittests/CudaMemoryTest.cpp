//===- CudaMemoryTest.cpp - Buffers of the device -------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaRuntimeTest.h"

using namespace cudatest;
using namespace flash::cuda;
using llvm::StringRef;

void cudatest::testBuffer() {
  Device device = openDevice();
  DeviceBuffer buffer = get(DeviceBuffer::allocate(
      device, "q", 100, {/*redZoneBytes=*/0, /*poison=*/true}));
  check(buffer.getName() == "q" && buffer.getNumBytes() == 100 &&
            buffer.getAddress() % 256 == 0,
        "a buffer");
  std::vector<char> bytes(100), other(99);
  checkSuccess(buffer.copyToHost(bytes), "copy");
  check(bytes == std::vector<char>(100, char(0xFF)), "poison");
  std::vector<char> pattern(100);
  for (int i = 0; i < 100; ++i)
    pattern[i] = i;
  checkSuccess(buffer.copyFromHost(pattern), "copy");
  checkSuccess(buffer.copyToHost(bytes), "copy");
  check(bytes == pattern, "copies");
  checkSuccess(buffer.fill(3), "fill");
  checkSuccess(buffer.copyToHost(bytes), "copy");
  check(bytes == std::vector<char>(100, 3), "fill");

  StringRef size = "cannot copy 99 bytes of host memory to or from buffer 'q' "
                   "of 100 bytes";
  checkError(buffer.copyFromHost(other), ErrorKind::InvalidRequest, {size});
  checkError(buffer.copyToHost(other), ErrorKind::InvalidRequest, {size});
  for (int64_t bad : {int64_t(-1), INT64_MAX})
    checkError(DeviceBuffer::allocate(device, "q", bad),
               ErrorKind::InvalidRequest, {"buffer 'q' cannot have"});
  checkError(DeviceBuffer::allocate(device, "q", 1, {-256}),
             ErrorKind::InvalidRequest, {"red zones of -256 bytes"});
  {
    Failing failing("cuMemsetD8Async", 999);
    checkError(buffer.fill(3), ErrorKind::DriverFailure,
               {"cannot fill buffer 'q': cuMemsetD8Async failed"});
    checkError(DeviceBuffer::allocate(device, "p", 8, {0, /*poison=*/true}),
               ErrorKind::DriverFailure, {"cannot fill buffer 'p'"});
  }
  {
    Failing to("cuMemcpyHtoD_v2", 999), from("cuMemcpyDtoH_v2", 999);
    checkError(buffer.copyFromHost(pattern), ErrorKind::DriverFailure,
               {"cannot copy to buffer 'q': cuMemcpyHtoD failed"});
    checkError(buffer.copyToHost(bytes), ErrorKind::DriverFailure,
               {"cannot copy from buffer 'q': cuMemcpyDtoH failed"});
  }
  Failing failing("cuMemAlloc_v2", 999);
  checkError(DeviceBuffer::allocate(device, "k", 1), ErrorKind::DriverFailure,
             {"cannot allocate buffer 'k': cuMemAlloc failed"});
}

void cudatest::testAccounting() {
  Device device = openDevice();
  DeviceBuffer a = get(DeviceBuffer::allocate(device, "a", 1000, {4096}));
  DeviceBuffer empty = get(DeviceBuffer::allocate(device, "empty", 0));
  check(empty.getAddress() != 0, "an empty buffer has an address");
  checkSuccess(empty.copyToHost({}), "copy of nothing");
  {
    DeviceBuffer b = get(DeviceBuffer::allocate(device, "b", 500));
    DeviceBuffer uncounted =
        get(DeviceBuffer::allocate(device, "c", 50, {0, false, false}));
    check(device.getMemoryUse().current == 1500, "current");
    a = std::move(b);
  }
  check(device.getMemoryUse().current == 500, "after a move");
  check(device.getMemoryUse().peak == 1500, "peak");
  device.resetPeakMemory();
  check(device.getMemoryUse().peak == 500, "peak after its reset");
  checkError(
      DeviceBuffer::allocate(device, "scores", 1 << 25), ErrorKind::OutOfMemory,
      {"out of memory on Fake GPU: buffer 'scores' needs 33554432 bytes, "
       "16776715 of 16777216 bytes are free",
       "cuMemAlloc failed with CUDA_ERROR_OUT_OF_MEMORY (out of memory)"});
  check(device.getMemoryUse().peak == 500, "peak after a failure");
  Failing failing("cuMemGetInfo_v2", 999);
  checkError(DeviceBuffer::allocate(device, "scores", 1 << 25),
             ErrorKind::DriverFailure, {"cannot query the free memory"});
}

void cudatest::testRedZones() {
  Device device = openDevice();
  Function fill = getFunction(device, "fill");
  BufferOptions options;
  options.redZoneBytes = 100; // Becomes 256.
  auto allocate = [&] {
    return get(DeviceBuffer::allocate(device, "o", 1000, options));
  };
  DeviceBuffer good = allocate();
  check(good.getAddress() % 256 == 0, "alignment");
  checkSuccess(launchFill(fill, good.getAddress(), 1000, 1), "launch");
  checkSuccess(good.checkRedZones(), "all bytes of the buffer and no others");

  auto overwrite = [&](int64_t offset, int64_t count, StringRef message) {
    DeviceBuffer bad = allocate();
    checkSuccess(launchFill(fill, bad.getAddress() + offset, count, 1),
                 "launch");
    checkError(bad.checkRedZones(), ErrorKind::RedZone,
               {"a kernel wrote outside of buffer 'o' of 1000 bytes: first to "
                "byte " +
                message.str()});
  };
  overwrite(0, 1001, "1000 (past its end), 1 byte(s) in all");
  overwrite(1255, 1, "1255 (past its end), 1 byte(s) in all");
  overwrite(-1, 1, "-1 (before its start), 1 byte(s) in all");
  overwrite(-256, 1512, "-256 (before its start), 512 byte(s) in all");

  DeviceBuffer bare = get(DeviceBuffer::allocate(device, "bare", 8));
  checkError(bare.checkRedZones(), ErrorKind::InvalidRequest,
             {"buffer 'bare' has no red zones to check"});
  Failing failing("cuMemcpyDtoH_v2", 999);
  checkError(good.checkRedZones(), ErrorKind::DriverFailure,
             {"cannot read the red zones of buffer 'o'"});
}

void cudatest::testGuards() {
  FakeCuda &fake = getFake();
  {
    // Devices that map no memory have ordinary buffers.
    Device device = openDevice();
    DeviceBuffer buffer = get(DeviceBuffer::allocate(
        device, "b", 8, {256, false, true, Guard::Start}));
    check(fake.reservations.empty(), "an ordinary buffer");
    checkSuccess(buffer.checkRedZones(), "red zones");
  }
  fake.mapsMemory = true;
  Device device = openDevice();
  Function fill = getFunction(device, "fill");
  BufferOptions options;
  options.redZoneBytes = 256;
  options.poison = true;
  options.endAlignment = 16;
  auto allocate = [&](int64_t bytes) {
    return DeviceBuffer::allocate(device, "g", bytes, options);
  };
  auto expect = [&](Guard guard, int64_t bytes, int64_t pages, int64_t before) {
    options.guard = guard;
    DeviceBuffer buffer = get(allocate(bytes));
    auto [base, size] = *fake.allocations.begin();
    auto [start, reserved] = *fake.reservations.begin();
    check(fake.allocations.size() == 1 && fake.handles.empty() &&
              size == pages * fake.granularity,
          "memory of its own");
    check(start + (1 << 30) <= base &&
              base + size + (1 << 30) <= start + reserved,
          "unmapped addresses on both sides");
    check(int64_t(buffer.getAddress() - base) == before, "the guarded end");
    checkSuccess(launchFill(fill, buffer.getAddress(), bytes, 1), "launch");
    checkSuccess(buffer.checkRedZones(), "its own bytes");
    // The moved-to one is the one that is released.
    DeviceBuffer moved = std::move(buffer);
    bool atStart = guard == Guard::Start;
    uint64_t far = atStart ? base + size - 1 : base;
    checkSuccess(launchFill(fill, far, 1, 1), "launch");
    checkError(moved.checkRedZones(), ErrorKind::RedZone,
               {atStart ? "(past its end), 1 byte(s) in all"
                        : "(before its start), 1 byte(s) in all"});
  };
  int64_t page = fake.granularity;
  for (int64_t bytes : {int64_t(0), int64_t(1000), page - 256}) {
    expect(Guard::Start, bytes, 1, 0);
    expect(Guard::End, bytes, 1, page - llvm::alignTo(bytes, 16));
  }
  // Room for a red zone on the other side.
  expect(Guard::Start, page, 2, 0);
  expect(Guard::End, page, 2, page);
  check(fake.allocations.empty() && fake.reservations.empty(), "released");

  for (const char *call :
       {"cuMemGetAllocationGranularity", "cuMemAddressReserve", "cuMemCreate",
        "cuMemMap", "cuMemSetAccess"}) {
    std::string message = std::string(call) + " failed with CUDA_ERROR_";
    for (int result : {2, 999}) {
      Failing failing(call, result);
      if (result == 2)
        checkError(allocate(1), ErrorKind::OutOfMemory,
                   {"out of memory on Fake GPU: buffer 'g' needs", message});
      else
        checkError(allocate(1), ErrorKind::DriverFailure,
                   {"cannot allocate buffer 'g': " + message});
      check(fake.allocations.empty() && fake.reservations.empty() &&
                fake.handles.empty(),
            llvm::formatv("nothing is left when {0} fails", call));
    }
  }
  {
    Failing failing("cuMemsetD8Async", 999);
    checkError(allocate(1), ErrorKind::DriverFailure, {"cannot fill buffer"});
  }
  checkError(allocate(1 << 25), ErrorKind::OutOfMemory,
             {"buffer 'g' needs 33619968 bytes, 16777216 of 16777216 bytes are "
              "free; cuMemCreate failed with CUDA_ERROR_OUT_OF_MEMORY"});
  fake.mapsMemory = false;
}

void cudatest::readAround(Guard guard, int64_t offset) {
  Device device = get(Device::open());
  check(device.getInfo().mapsMemory, "the device maps memory");
  StringRef readPtx = ".version 8.0\n.target sm_80\n.address_size 64\n"
                      ".visible .entry read(.param .u64 a) {\n"
                      ".reg .b64 %a;\n.reg .b32 %v;\n"
                      "ld.param.u64 %a, [a];\n"
                      "ld.volatile.global.u8 %v, [%a];\nret;\n}\n";
  Module module = get(Module::load(device, readPtx, "read.ptx"));
  Function read = get(module.getFunction("read"));
  BufferOptions options;
  options.redZoneBytes = checkedRedZoneBytes;
  options.guard = guard;
  options.endAlignment = 16;
  DeviceBuffer buffer = get(DeviceBuffer::allocate(device, "b", 1000, options));
  auto readAt = [&](int64_t at) {
    uint64_t address = buffer.getAddress() + at;
    llvm::Error error = read.launch({}, {&address});
    return error ? std::move(error) : device.synchronize();
  };
  for (int64_t inside : {0, 999})
    checkSuccess(readAt(inside), "a read of the buffer");
  checkSuccess(buffer.checkRedZones(), "red zones");
  llvm::Error error = readAt(offset);
  llvm::outs() << (error ? "" : "no fault\n");
  llvm::outs() << llvm::toString(std::move(error)) << "\n";
}
