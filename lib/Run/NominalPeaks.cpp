//===- NominalPeaks.cpp - What a GPU can do by its data sheet -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NominalPeaks.h"

using flash::Machine;
using namespace flash::run;

std::optional<double>
flash::run::getPeakFlops(const cuda::DeviceInfo &device, DType dtype,
                         std::optional<Precision> precision,
                         std::string &kind) {
  if (!device.clockKHz)
    return std::nullopt;
  const Machine *machine = device.getTarget();
  if (!machine || device.isUndescribed())
    return std::nullopt;
  double clock = *device.clockKHz * 1e3 * device.multiprocessors;
  // Of elements of half as many bits there are twice as many products.
  if (precision == Precision::FP8) {
    kind = "f8E4M3FN tensor cores";
    return 2 * machine->halfFlopsPerClock * clock;
  }
  if (dtype == DType::F16 || dtype == DType::BF16) {
    kind = (getName(dtype) + " tensor cores").str();
    return machine->halfFlopsPerClock * clock;
  }
  if (dtype != DType::F32 || machine->tf32FlopsPerClock == 0)
    return std::nullopt;
  if (precision == Precision::TF32) {
    kind = "tf32 tensor cores";
    return machine->tf32FlopsPerClock * clock;
  }
  // Each product is the sum of three of halves of the numbers' bits.
  kind = "tensor cores, three tf32 products for one of f32";
  return machine->tf32FlopsPerClock * clock / 3;
}

std::optional<double>
flash::run::getPeakBandwidth(const cuda::DeviceInfo &device) {
  if (!device.memoryClockKHz || device.memoryBusBits == 0)
    return std::nullopt;
  // Two transfers in each clock.
  return 2e3 * *device.memoryClockKHz * device.memoryBusBits / 8;
}
