//===- CudaRuntimeTest.cpp - The CUDA runtime with a fake driver ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every call, and every message, against the driver of FakeCuda.cpp.
// `CudaRuntimeTest exit` loses the device and ends the process instead.
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"
#include "flash/Runtime/Cuda/Measure.h"
#include "flash/Runtime/Cuda/Module.h"
#include "flash/Runtime/Cuda/Telemetry.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <cstdlib>
#include <functional>
#include <thread>

using namespace flash::cuda;
using llvm::StringRef;

static int numChecks = 0, numFailures = 0;

static void check(bool ok, const llvm::Twine &what) {
  ++numChecks;
  if (ok)
    return;
  ++numFailures;
  llvm::errs() << "FAILED: " << what << "\n";
}

/// The value of something that must not fail here.
template <typename T> static T get(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  llvm::errs() << "FAILED: " << llvm::toString(value.takeError()) << "\n";
  std::exit(1);
}

static void checkSuccess(llvm::Error error, const llvm::Twine &what) {
  bool failed = bool(error);
  std::string message = llvm::toString(std::move(error));
  check(!failed, what + ": " + message);
}

/// The error must be of that kind and its message hold all of the parts.
static void checkError(llvm::Error error, ErrorKind kind,
                       llvm::ArrayRef<StringRef> parts) {
  if (!error)
    return check(false, "no error; expected: " + parts.front());
  llvm::handleAllErrors(std::move(error), [&](const CudaError &found) {
    check(
        found.getKind() == kind,
        llvm::formatv("kind {0}: {1}", int(found.getKind()), found.message()));
    for (StringRef part : parts)
      check(StringRef(found.message()).contains(part),
            "'" + part + "' is not in: " + found.message());
  });
}
template <typename T>
static void checkError(llvm::Expected<T> value, ErrorKind kind,
                       llvm::ArrayRef<StringRef> parts) {
  checkError(value.takeError(), kind, parts);
}

/// The fake behind a path.
static FakeCuda &getFake(const char *path = FAKE_CUDA_PATH) {
  auto library = llvm::sys::DynamicLibrary::getPermanentLibrary(path);
  auto function =
      reinterpret_cast<FakeCuda *(*)()>(library.getAddressOfSymbol("fakeCuda"));
  return *function();
}

/// Makes calls fail while it exists.
class Failing {
public:
  Failing(const char *call, int result) : call(call) {
    getFake().failures[call] = result;
  }
  ~Failing() { getFake().failures.erase(call); }

private:
  const char *call;
};

static Device openDevice() {
  return get(Device::open(get(Driver::load(FAKE_CUDA_PATH))));
}

static constexpr StringRef ptx = ".version 8.7\n.target sm_90a, debug\n"
                                 ".visible .entry fill(.param .u64 a)\n"
                                 ".visible .entry nop()\n";

static Function getFunction(const Device &device, StringRef name) {
  return get(get(Module::load(device, ptx, "test.ptx")).getFunction(name));
}

/// The arguments of `fill`.
static llvm::Error launchFill(const Function &function, uint64_t address,
                              int64_t count, uint8_t byte) {
  return function.launch({}, {&address, &count, &byte});
}

//===----------------------------------------------------------------------===//
// Driver and device
//===----------------------------------------------------------------------===//

static void testDriver() {
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

static void testDevice() {
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
       {std::pair("cuDeviceGetName", "for its name"),
        {"cuDeviceGetPCIBusId", "for its PCI bus id"},
        {"cuDeviceTotalMem_v2", "for its memory"},
        {"cuDeviceGetAttribute", "for its compute capability"}}) {
    Failing failing(call, 999);
    checkError(Device::open(driver), ErrorKind::DriverFailure,
               {"cannot ask CUDA device 0", what});
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
             {"cannot ask for the free memory: cuMemGetInfo failed"});
}

//===----------------------------------------------------------------------===//
// Modules and kernels
//===----------------------------------------------------------------------===//

/// A cubin's header with one section.
static std::string makeCubin() {
  llvm::ELF::Elf64_Ehdr header = {};
  std::copy_n(llvm::ELF::ElfMagic, 4, header.e_ident);
  header.e_ident[llvm::ELF::EI_CLASS] = llvm::ELF::ELFCLASS64;
  header.e_shoff = sizeof(header);
  header.e_shnum = 1;
  header.e_shentsize = sizeof(llvm::ELF::Elf64_Shdr);
  llvm::ELF::Elf64_Shdr section = {};
  section.sh_type = llvm::ELF::SHT_PROGBITS;
  section.sh_offset = sizeof(header) + sizeof(section);
  section.sh_size = 16;
  std::string cubin(reinterpret_cast<char *>(&header), sizeof(header));
  cubin.append(reinterpret_cast<char *>(&section), sizeof(section));
  return cubin + std::string(16, 'x');
}

static void testImages(const Device &device) {
  auto refuse = [&](StringRef image, StringRef why) {
    checkError(Module::load(device, image, "a"), ErrorKind::InvalidProgram,
               {"cannot load 'a': ", why});
  };
  refuse("", "it is empty");
  refuse("no program", "neither PTX text (there is no .version) nor a cubin");
  refuse(StringRef(".version\0", 9), "a zero byte, as this does at offset 8");
  std::string cubin = makeCubin();
  get(Module::load(device, cubin, "whole"));
  for (size_t size = 4; size < cubin.size(); ++size)
    refuse(StringRef(cubin).take_front(size), "truncated or damaged");
  for (size_t byte : {4, 40, 58, 60}) { // class, e_shoff, e_shentsize, e_shnum
    std::string damaged = cubin;
    damaged[byte] = 0x7f;
    refuse(damaged, "truncated or damaged");
  }
}

static void testModule() {
  Device device = openDevice();
  testImages(device);
  auto refuse = [&](int result, StringRef log, ErrorKind kind,
                    llvm::ArrayRef<StringRef> parts, StringRef image = ptx) {
    getFake().errorLog = log.str();
    Failing failing("cuModuleLoadDataEx", result);
    checkError(Module::load(device, image, "a.ptx"), kind, parts);
  };
  refuse(222, "", ErrorKind::DriverTooOld,
         {"cannot load 'a.ptx': the driver (CUDA 12.8) is too old for PTX 8.7; "
          "update it, or make a cubin with ptxas --gpu-name=sm_90a; "
          "cuModuleLoadDataEx failed with CUDA_ERROR_UNSUPPORTED_PTX_VERSION"});
  refuse(218, "fatal : Unsupported .version 8.7", ErrorKind::DriverTooOld,
         {"too old for PTX 8.7", "218:\nfatal : Unsupported"});
  refuse(218, "line 3; error\n\n", ErrorKind::InvalidProgram,
         {"finds errors in the PTX", ":\nline 3; error"});
  refuse(209, "", ErrorKind::InvalidProgram,
         {"PTX for sm_90a does not run on Fake GPU (sm_90)"});
  refuse(209, "", ErrorKind::InvalidProgram, {"this cubin does not run on"},
         makeCubin());
  refuse(200, "", ErrorKind::InvalidProgram, {"does not know this format"});
  for (int result : {221, 223})
    refuse(result, "", ErrorKind::DriverFailure,
           {"libnvidia-ptxjitcompiler.so.1", "ptxas --gpu-name=sm_90a"});
  refuse(2, "", ErrorKind::OutOfMemory, {"cannot load 'a.ptx'"});
  refuse(999, "", ErrorKind::DriverFailure, {"CUDA_ERROR_UNKNOWN"});
  refuse(222, "", ErrorKind::DriverTooOld, {"too old for PTX ;"}, ".version");

  Module module = get(Module::load(device, ptx, "a.ptx"));
  check(module.getLog() == "ptxas info    : Used 168 registers", "log");
  checkError(module.getFunction("no"), ErrorKind::InvalidRequest,
             {"'a.ptx' has no kernel 'no'"});
  for (const char *call : {"cuModuleGetFunction", "cuFuncGetAttribute"}) {
    Failing failing(call, 999);
    checkError(module.getFunction("fill"), ErrorKind::DriverFailure,
               {"cannot get kernel 'fill' of 'a.ptx'", call});
  }
}

static void testFunction() {
  Device device = openDevice();
  // The function outlives its module.
  Function function = getFunction(device, "fill");
  check(getFake().modules == 1, "the kernel keeps its module");
  const FunctionInfo &info = function.getInfo();
  check(info.name == "fill" && info.registers == 168 && info.localBytes == 8 &&
            info.staticSharedBytes == 1024 && info.constantBytes == 16 &&
            info.maxThreads == 384 && info.binaryVersion == 90 &&
            info.ptxVersion == 80 && info.parameters == 3,
        "attributes");

  LaunchShape shape;
  shape.block = {128, 1, 1};
  shape.dynamicSharedBytes = 100000;
  checkError(function.getOccupancy(shape), ErrorKind::InvalidRequest,
             {"kernel 'fill': 100000 bytes of dynamic shared memory",
              "0 to 48128 are allowed (setDynamicSharedLimit)"});
  checkError(function.setDynamicSharedLimit(231425), ErrorKind::InvalidRequest,
             {"kernel 'fill' needs 232449 bytes of shared memory (1024 static, "
              "231425 dynamic), but Fake GPU has 232448 for a block"});
  checkError(function.setDynamicSharedLimit(INT64_MAX - 2000),
             ErrorKind::InvalidRequest, {"smaller tiles"});
  checkError(function.setDynamicSharedLimit(-1), ErrorKind::InvalidRequest,
             {"-1 bytes"});
  {
    Failing failing("cuFuncSetAttribute", 999);
    checkError(function.setDynamicSharedLimit(1), ErrorKind::DriverFailure,
               {"cannot set the shared memory of kernel 'fill'"});
  }
  checkSuccess(function.setDynamicSharedLimit(231424), "the whole block");
  check(get(function.getOccupancy(shape)) == 2, "occupancy");
  {
    Failing failing("cuOccupancyMaxActiveBlocksPerMultiprocessor", 999);
    checkError(function.getOccupancy(shape), ErrorKind::DriverFailure,
               {"cannot ask for the occupancy of kernel 'fill'"});
  }
}

static void testLaunch() {
  Device device = openDevice();
  Function fill = getFunction(device, "fill");
  int64_t value = 0;
  auto refuse = [&](const LaunchShape &shape, StringRef why) {
    checkError(fill.launch(shape, {&value, &value, &value}),
               ErrorKind::InvalidRequest,
               {"cannot launch kernel 'fill': ", why});
  };
  refuse({{0, 1, 1}, {1, 1, 1}, 0},
         "its grid has 0 blocks along x; Fake GPU takes 1 to 2147483647");
  refuse({{1, 65536, 1}, {1, 1, 1}, 0}, "65536 blocks along y");
  refuse({{1, 1, INT64_MAX}, {1, 1, 1}, 0}, "9223372036854775807 blocks");
  refuse({{1, 1, 1}, {1, 1, 65}, 0},
         "its blocks have 65 threads along z; Fake GPU takes 1 to 64");
  refuse({{1, 1, 1}, {-1, 1, 1}, 0}, "-1 threads along x");
  refuse({{1, 1, 1}, {385, 1, 1}, 0},
         "385 threads; with 168 registers per thread and its declared bounds "
         "it takes up to 384");
  refuse({{1, 1, 1}, {1, 1, 1}, -1}, "-1 bytes of dynamic shared memory");
  checkError(fill.launch({}, {}), ErrorKind::InvalidRequest,
             {"it has 3 parameters, 0 arguments are given"});
  checkError(fill.launch({}, {&value, nullptr, &value}),
             ErrorKind::InvalidRequest, {"argument 1 is null"});
  {
    Failing failing("cuLaunchKernel", 999);
    checkError(launchFill(fill, 0, 0, 0), ErrorKind::DriverFailure,
               {"cannot launch kernel 'fill': cuLaunchKernel failed"});
  }

  DeviceBuffer buffer = get(DeviceBuffer::allocate(device, "b", 16));
  checkSuccess(launchFill(fill, buffer.getAddress(), 16, 7), "launch");
  std::vector<char> bytes(16);
  checkSuccess(buffer.copyToHost(bytes), "copy");
  check(bytes == std::vector<char>(16, 7), "the kernel's work");
  // Another thread has no current context until the runtime sets it.
  std::thread([&] {
    checkSuccess(launchFill(fill, buffer.getAddress(), 16, 8), "thread");
  }).join();
}

static void testDriverBefore124() {
  auto driver = get(Driver::load(FAKE_CUDA_BEFORE12_4_PATH));
  Device device = get(Device::open(driver));
  Function function = getFunction(device, "nop");
  check(!function.getInfo().parameters, "unknown number of parameters");
  checkSuccess(function.launch({}, {}), "launch without that number");
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static void testBuffer() {
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

static void testAccounting() {
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
             ErrorKind::DriverFailure, {"cannot ask for the free memory"});
}

static void testRedZones() {
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

//===----------------------------------------------------------------------===//
// Streams, events, lost devices
//===----------------------------------------------------------------------===//

static void testEvents() {
  Device device = openDevice();
  Function nop = getFunction(device, "nop");
  Stream stream = get(Stream::create(device));
  Event start = get(Event::create(device)), stop = get(Event::create(device));
  checkSuccess(start.record(stream), "record");
  checkSuccess(nop.launch({}, {}, stream), "launch");
  checkSuccess(nop.launch({}, {}, stream), "launch");
  checkSuccess(stop.record(stream), "record");
  check(get(stop.isDone()), "done");
  checkSuccess(stop.wait(), "wait");
  checkSuccess(device.synchronize(), "synchronize");
  check(std::abs(get(stop.getSecondsSince(start)) - 0.002) < 1e-9, "time");

  Stream moved = std::move(stream);
  check(moved.getHandle() && !stream.getHandle(), "a moved stream");
  Stream borrowed = Stream::borrow(moved.getHandle());
  check(borrowed.isBorrowed() && !moved.isBorrowed() && !Stream().isBorrowed(),
        "borrowed streams");
  Event other = std::move(stop);
  stop = get(Event::create(device));
  check(getFake().events == 3 && getFake().streams == 1, "live objects");

  std::tuple<const char *, const char *, std::function<llvm::Error()>>
      failures[] = {{"cuStreamCreate", "cannot create a stream",
                     [&] { return Stream::create(device).takeError(); }},
                    {"cuEventCreate", "cannot create an event",
                     [&] { return Event::create(device).takeError(); }},
                    {"cuEventRecord", "cannot record an event",
                     [&] { return start.record(); }},
                    {"cuEventQuery", "cannot query an event",
                     [&] { return start.isDone().takeError(); }},
                    {"cuEventQuery", "cannot wait for the device",
                     [&] { return start.wait(); }},
                    {"cuEventCreate", "cannot wait for the device",
                     [&] { return device.synchronize(); }},
                    {"cuEventRecord", "cannot wait for the device",
                     [&] { return device.synchronize(); }},
                    {"cuEventElapsedTime", "cannot take the time of two events",
                     [&] { return other.getSecondsSince(start).takeError(); }}};
  for (auto &[call, what, action] : failures) {
    Failing failing(call, 999);
    checkError(action(), ErrorKind::DriverFailure, {what, call});
  }
  check(getFake().events == 3, "no event leaks from a failure");
}

static void resetFake() {
  FakeCuda &fake = getFake();
  fake.hang = fake.hanging = false;
  fake.fault = fake.faulted = 0;
  fake.contexts = fake.modules = fake.streams = fake.events = 0;
  fake.allocations.clear(); // Lost devices free nothing.
  fake.blocked.clear();
}

static unsigned countCalls() {
  unsigned count = 0;
  for (const auto &[name, calls] : getFake().calls)
    count += calls;
  return count;
}

static void testTimeout() {
  unsigned calls = 0;
  {
    Device device = openDevice();
    Function nop = getFunction(device, "nop"),
             fill = getFunction(device, "fill");
    Event event = get(Event::create(device));
    Stream stream = get(Stream::create(device));
    DeviceBuffer buffer = get(DeviceBuffer::allocate(device, "b", 8));
    checkSuccess(launchFill(fill, buffer.getAddress(), 8, 0), "launch");
    checkSuccess(device.synchronize(), "synchronize");
    check(!device.isLost() && !isAnyDeviceLost(), "not lost yet");

    getFake().hang = true;
    checkSuccess(nop.launch({}, {}), "launch");
    checkSuccess(event.record(), "record");
    check(!get(event.isDone()), "a kernel that hangs");
    checkError(event.wait(0.01), ErrorKind::TimedOut,
               {"kernel 'nop' did not finish in 0.01 seconds; the device "
                "cannot be used further in this process"});
    check(device.isLost() && isAnyDeviceLost(), "lost");
    calls = countCalls();
    StringRef lost = "the device cannot be used further in this process, since "
                     "kernel 'nop' did not finish in 0.01 seconds";
    std::vector<char> bytes(8);
    auto refuse = [&](llvm::Error error) {
      checkError(std::move(error), ErrorKind::DeviceLost, {lost});
    };
    refuse(event.wait());
    refuse(event.record());
    refuse(event.isDone().takeError());
    refuse(event.getSecondsSince(event).takeError());
    refuse(device.synchronize());
    refuse(device.getMemory().takeError());
    refuse(nop.launch({}, {}));
    refuse(nop.getOccupancy({}).takeError());
    refuse(fill.setDynamicSharedLimit(0));
    refuse(buffer.copyToHost(bytes));
    refuse(buffer.copyFromHost(bytes));
    refuse(buffer.fill(0));
    refuse(DeviceBuffer::allocate(device, "c", 8).takeError());
    refuse(Module::load(device, ptx, "a").takeError());
    refuse(Stream::create(device).takeError());
    refuse(Event::create(device).takeError());
    refuse(L2Flush::create(device).takeError());
  }
  check(countCalls() == calls, "a lost device makes no driver calls");
  check(getFake().blocked.empty(), "no call waits in the driver");
  resetFake();
}

/// Calls that would wait inside the driver wait outside first.
static void testDrain() {
  std::pair<const char *, std::function<void(Device &)>> cases[] = {
      {"copy",
       [](Device &device) {
         std::vector<char> bytes(8);
         DeviceBuffer buffer = get(DeviceBuffer::allocate(device, "b", 8));
         Function nop = getFunction(device, "nop");
         getFake().hang = true;
         checkSuccess(nop.launch({}, {}), "launch");
         checkError(buffer.copyToHost(bytes), ErrorKind::TimedOut,
                    {"kernel 'nop' did not finish in 0.02 seconds"});
       }},
      {"destructors", [](Device &device) {
         DeviceBuffer buffer = get(DeviceBuffer::allocate(device, "b", 8));
         Function nop = getFunction(device, "nop");
         getFake().hang = true;
         checkSuccess(nop.launch({}, {}), "launch");
       }}};
  for (auto &[name, action] : cases) {
    Device device = openDevice();
    device.setTimeout(0.02);
    action(device);
    check(device.isLost(), name);
    check(getFake().blocked.empty(), "no call waits in the driver");
    resetFake();
  }
}

static void testFaults() {
  std::pair<int, const char *> faults[] = {
      {700, "failed: it accessed memory outside of its buffers; cuEventQuery "
            "failed with CUDA_ERROR_ILLEGAL_ADDRESS"},
      {702, "the GPU also drives a display"},
      {715, "malformed operand"},
      {716, "not a multiple of the size of its access"},
      {214, "failed; cuEventQuery"},
      {710, "failed; cuEventQuery"},
      {719, "failed; cuEventQuery"}};
  for (auto [result, text] : faults) {
    Device device = openDevice();
    Function fill = getFunction(device, "fill"),
             nop = getFunction(device, "nop");
    checkSuccess(launchFill(fill, 0, 0, 0), "launch");
    checkSuccess(device.synchronize(), "synchronize");
    Event event = get(Event::create(device));
    checkSuccess(nop.launch({}, {}), "launch");
    checkSuccess(event.record(), "record");
    getFake().faulted = result;
    checkError(event.wait(), ErrorKind::KernelFailed,
               {"kernel 'nop' failed", text,
                "; the device cannot be used further in this process"});
    check(device.isLost(), "a fault loses the device");
    resetFake();
  }

  // A later call tells of the fault of one of two kernels.
  Device device = openDevice();
  Function fill = getFunction(device, "fill"), nop = getFunction(device, "nop");
  checkSuccess(nop.launch({}, {}), "launch");
  getFake().fault = 700;
  checkSuccess(launchFill(fill, 0, 0, 0), "launch");
  checkError(nop.launch({}, {}), ErrorKind::KernelFailed,
             {"one of the kernels 'nop', 'fill' failed"});
  resetFake();
}

//===----------------------------------------------------------------------===//
// Measurements
//===----------------------------------------------------------------------===//

static void testMeasure() {
  Device device = openDevice();
  Function nop = getFunction(device, "nop");
  auto run = [&](const Stream &stream) { return nop.launch({}, {}, stream); };
  MeasureOptions options;
  options.maxRuns = 20;
  getFake().calls.clear();
  Measurement measured = get(measure(device, run, options));
  check(measured.seconds.size() == 20, "most runs");
  check(getFake().calls["cuLaunchKernel"] == 23, "runs and warm-up");
  check(getFake().calls["cuMemsetD8Async"] == 23, "a flush for each");
  check(std::abs(measured.getMedian() - 0.001) < 1e-9 &&
            measured.getSpread() < 1e-6,
        "the flush is not measured");
  check(device.getMemoryUse().peak == 0, "the flush's buffer is not counted");
  options.flushL2 = false;
  options.budgetSeconds = 0;
  check(get(measure(device, run, options)).seconds.size() == 5, "fewest runs");
  options.patienceSeconds = 0;
  check(get(measure(device, run, options)).seconds.size() == 1, "patience");
  options.patienceSeconds = 1;
  options.budgetSeconds = 0.05;
  options.maxRuns = 1000000;
  size_t runs = get(measure(device, run, options)).seconds.size();
  check(runs > 5 && runs < 1000000, "budget");

  Measurement odd{{5, 1, 4, 2, 3}}, even{{4, 1, 2, 3}}, one{{7}}, zero{{0, 0}};
  check(odd.getMedian() == 3 && odd.getMin() == 1, "odd median");
  check(even.getMedian() == 2.5, "even median");
  check(std::abs(odd.getSpread() - 1.0 / 3) < 1e-12, "spread");
  check(one.getSpread() == 0 && zero.getSpread() == 0, "spread of one");

  auto failing = [&](const Stream &) {
    return llvm::createStringError("no run");
  };
  check(llvm::toString(measure(device, failing).takeError()) == "no run",
        "a failing run");
  for (auto [call, what] : {std::pair("cuMemAlloc_v2", "buffer 'L2 flush'"),
                            {"cuMemsetD8Async", "cannot flush the L2 cache"},
                            {"cuEventCreate", "cannot create an event"}}) {
    Failing fail(call, 999);
    checkError(measure(device, run), ErrorKind::DriverFailure, {what});
  }
  device.setTimeout(0.01);
  getFake().hang = true;
  checkError(measure(device, run), ErrorKind::TimedOut, {"kernel 'nop'"});
  resetFake();
}

static void testTelemetry() {
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

/// The end of a process whose kernel hangs: output is flushed, handlers such as
/// the driver's do not run.
[[noreturn]] static void exitWithLostDevice() {
  std::atexit([] { std::puts("a handler runs"); });
  Device device = openDevice();
  Function nop = getFunction(device, "nop");
  getFake().hang = true;
  checkSuccess(nop.launch({}, {}), "launch");
  device.setTimeout(0.01);
  llvm::outs() << llvm::toString(device.synchronize()) << "\n";
  std::printf("flushed");
  exitProcess(3);
}

int main(int argc, char **argv) {
  if (argc == 2 && StringRef(argv[1]) == "exit")
    exitWithLostDevice();
  testDriver();
  testDevice();
  testModule();
  testFunction();
  testLaunch();
  testDriverBefore124();
  testBuffer();
  testAccounting();
  testRedZones();
  testEvents();
  const FakeCuda &fake = getFake();
  check(fake.contexts == 0 && fake.modules == 0 && fake.streams == 0 &&
            fake.events == 0 && fake.allocations.empty(),
        "everything is released");
  testTimeout();
  testDrain();
  testFaults();
  testMeasure();
  testTelemetry();
  llvm::outs() << numChecks << " checks, " << numFailures << " failures\n";
  return numFailures != 0;
}
