//===- CudaRuntimeTest.h - What the tests of the CUDA runtime share -*- C++
//-*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_UNITTESTS_CUDARUNTIMETEST_H
#define FLASH_UNITTESTS_CUDARUNTIMETEST_H

#include "FakeCuda.h"
#include "flash/Runtime/Cuda/DeviceBuffer.h"
#include "flash/Runtime/Cuda/Module.h"

#include "llvm/Support/FormatVariadic.h"
#include <cstdlib>

namespace cudatest {

/// Counts a check, and reports it if it fails.
void check(bool ok, const llvm::Twine &what);

/// The value of something that must not fail here.
template <typename T> T get(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  llvm::errs() << "FAILED: " << llvm::toString(value.takeError()) << "\n";
  std::exit(1);
}

void checkSuccess(llvm::Error error, const llvm::Twine &what);

/// The error must be of that kind and its message hold all of the parts.
void checkError(llvm::Error error, flash::cuda::ErrorKind kind,
                llvm::ArrayRef<llvm::StringRef> parts);
template <typename T>
void checkError(llvm::Expected<T> value, flash::cuda::ErrorKind kind,
                llvm::ArrayRef<llvm::StringRef> parts) {
  checkError(value.takeError(), kind, parts);
}

/// The state of the fake driver.
FakeCuda &getFake();
/// Forgets kernels that hang or fault, and what lost devices did not release.
void resetFake();

/// Makes a call fail while the object exists.
class Failing {
public:
  Failing(const char *call, int result) : call(call) {
    getFake().failures[call] = result;
  }
  ~Failing() { getFake().failures.erase(call); }

private:
  const char *call;
};

/// Device 0 of the fake driver.
flash::cuda::Device openDevice();

/// A program for the fake driver.
inline constexpr llvm::StringRef ptx = ".version 8.7\n.target sm_90a, debug\n"
                                       ".shared .align 4 .b8 own[1024];\n"
                                       ".visible .entry fill(.param .u64 a,\n"
                                       ".param .u64 b, .param .u8 c)\n"
                                       ".visible .entry nop()\n";

/// A kernel of that program.
flash::cuda::Function getFunction(const flash::cuda::Device &device,
                                  llvm::StringRef name);
/// Launches `fill`, which sets `count` bytes.
llvm::Error launchFill(const flash::cuda::Function &function, uint64_t address,
                       int64_t count, uint8_t byte);

void testDriver();
void testDevice();
void testTelemetry();
void testModule();
void testFunction();
void testLaunch();
void testDriverBefore12();
void testTensorMap();
void testBuffer();
void testAccounting();
void testRedZones();
void testGuards();
/// Reads a byte of a guarded buffer of 1000 bytes on the real device and says
/// how that went. The process must end then.
void readAround(flash::cuda::Guard guard, int64_t offset);
void testEvents();
void testMeasure();
void testTimeout();
void testDrain();
void testFaults();
void testSuspects();

} // namespace cudatest

#endif // FLASH_UNITTESTS_CUDARUNTIMETEST_H
