//===- CudaRuntimeTest.cpp - The CUDA runtime with a fake driver ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every call, and every message, against the driver of FakeCuda.cpp.
// `CudaRuntimeTest exit` loses the device and ends the process instead, and
// `CudaRuntimeTest read start|end OFFSET` reads on a real GPU.
//
//===----------------------------------------------------------------------===//

#include "CudaRuntimeTest.h"

#include "llvm/Support/DynamicLibrary.h"

using namespace cudatest;
using namespace flash::cuda;
using llvm::StringRef;

static int numChecks = 0, numFailures = 0;

void cudatest::check(bool ok, const llvm::Twine &what) {
  ++numChecks;
  if (ok)
    return;
  ++numFailures;
  llvm::errs() << "FAILED: " << what << "\n";
}

void cudatest::checkSuccess(llvm::Error error, const llvm::Twine &what) {
  bool failed = bool(error);
  std::string message = llvm::toString(std::move(error));
  check(!failed, what + ": " + message);
}

void cudatest::checkError(llvm::Error error, ErrorKind kind,
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

FakeCuda &cudatest::getFake() {
  auto library = llvm::sys::DynamicLibrary::getPermanentLibrary(FAKE_CUDA_PATH);
  auto function =
      reinterpret_cast<FakeCuda *(*)()>(library.getAddressOfSymbol("fakeCuda"));
  return *function();
}

void cudatest::resetFake() {
  FakeCuda &fake = getFake();
  fake.hang = fake.hanging = false;
  fake.fault = fake.faulted = 0;
  fake.contexts = fake.modules = fake.streams = fake.events = 0;
  fake.allocations.clear(); // Lost devices free nothing.
  fake.blocked.clear();
}

Device cudatest::openDevice() {
  return get(Device::open(get(Driver::load(FAKE_CUDA_PATH))));
}

Function cudatest::getFunction(const Device &device, StringRef name) {
  return get(get(Module::load(device, ptx, "test.ptx")).getFunction(name));
}

llvm::Error cudatest::launchFill(const Function &function, uint64_t address,
                                 int64_t count, uint8_t byte) {
  return function.launch({}, {&address, &count, &byte});
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
  if (argc == 4 && StringRef(argv[1]) == "read") {
    readAround(StringRef(argv[2]) == "end" ? Guard::End : Guard::Start,
               std::atoi(argv[3]));
    exitProcess(0);
  }
  testDriver();
  testDevice();
  testModule();
  testFunction();
  testLaunch();
  testDriverBefore12();
  testTensorMap();
  testBuffer();
  testAccounting();
  testRedZones();
  testGuards();
  testEvents();
  const FakeCuda &fake = getFake();
  check(fake.contexts == 0 && fake.modules == 0 && fake.streams == 0 &&
            fake.events == 0 && fake.allocations.empty() &&
            fake.reservations.empty() && fake.handles.empty(),
        "everything is released");
  testTimeout();
  testDrain();
  testFaults();
  testSuspects();
  testMeasure();
  testTelemetry();
  llvm::outs() << numChecks << " checks, " << numFailures << " failures\n";
  return numFailures != 0;
}
