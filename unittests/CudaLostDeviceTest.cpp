//===- CudaLostDeviceTest.cpp - Kernels that hang or fault ----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaRuntimeTest.h"
#include "flash/Runtime/Cuda/Measure.h"

#include <chrono>
#include <functional>

using namespace cudatest;
using namespace flash::cuda;
using llvm::StringRef;

static unsigned countCalls() {
  unsigned count = 0;
  for (const auto &[name, calls] : getFake().calls)
    count += calls;
  return count;
}

void cudatest::testTimeout() {
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
    auto start = std::chrono::steady_clock::now();
    checkError(event.wait(0.01), ErrorKind::TimedOut,
               {"kernel 'nop' did not finish in 0.01 seconds; the device "
                "cannot be used further in this process"});
    check(std::chrono::steady_clock::now() - start >=
              std::chrono::milliseconds(10),
          "the wait lasts as long as it may");
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
void cudatest::testDrain() {
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

void cudatest::testFaults() {
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
}

/// Which kernels a message names: those that may have been running.
void cudatest::testSuspects() {
  auto expect = [](StringRef message,
                   llvm::function_ref<void(Device &, Function &)> action) {
    Device device = openDevice();
    Function nop = getFunction(device, "nop");
    Function fill = getFunction(device, "fill");
    action(device, nop);
    getFake().fault = 700;
    checkSuccess(launchFill(fill, 0, 0, 0), "launch");
    // The fault comes out of whichever call is next.
    checkError(nop.launch({}, {}), ErrorKind::KernelFailed, {message});
    resetFake();
  };
  StringRef one = "kernel 'fill' failed";
  StringRef two = "one of the kernels 'nop', 'fill' failed";
  expect(two, [](Device &, Function &nop) {
    checkSuccess(nop.launch({}, {}), "launch");
    checkSuccess(nop.launch({}, {}), "a second launch");
  });
  expect(one, [](Device &device, Function &nop) {
    Stream stream = get(Stream::create(device));
    Event event = get(Event::create(device));
    checkSuccess(nop.launch({}, {}, stream), "launch");
    checkSuccess(event.record(stream), "record");
    checkSuccess(event.wait(), "wait for the event");
  });
  expect(two, [](Device &device, Function &nop) {
    Event event = get(Event::create(device));
    checkSuccess(event.record(), "record");
    checkSuccess(nop.launch({}, {}), "launch after the event");
    checkSuccess(event.wait(), "wait for the event");
  });
  expect(one, [](Device &device, Function &nop) {
    Stream stream = get(Stream::create(device));
    checkSuccess(nop.launch({}, {}, stream), "launch on a created stream");
    checkSuccess(device.synchronize(), "wait for all of ours");
  });
  Device other = openDevice();
  Stream stream = get(Stream::create(other));
  expect(two, [&](Device &device, Function &nop) {
    Stream borrowed = Stream::borrow(stream.getHandle());
    checkSuccess(nop.launch({}, {}, borrowed), "launch on a borrowed stream");
    checkSuccess(device.synchronize(), "wait for all of ours");
  });
}
