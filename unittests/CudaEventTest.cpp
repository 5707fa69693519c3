//===- CudaEventTest.cpp - Streams, events and timing ---------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaRuntimeTest.h"
#include "flash/Runtime/Cuda/Measure.h"

#include <cmath>
#include <functional>

using namespace cudatest;
using namespace flash::cuda;
using llvm::StringRef;

void cudatest::testEvents() {
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

  getFake().polls = 20;
  checkSuccess(stop.record(stream), "record");
  check(!get(stop.isDone()), "not done yet");
  checkSuccess(stop.wait(), "a wait of some milliseconds");
  getFake().polls = 0;

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

void cudatest::testMeasure() {
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
  getFake().calls.clear();
  check(get(measure(device, run, options)).seconds.size() == 1, "patience");
  check(getFake().calls["cuLaunchKernel"] == 2, "patience with the warm-up");
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
