//===- NominalPeaks.cpp - What a GPU can do by its data sheet -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NominalPeaks.h"

using namespace flash::run;

namespace {
/// Operations of the tensor cores of one multiprocessor per clock, dense, with
/// sums in f32; a multiply-add is two. From the peak rates in these papers,
/// divided by multiprocessors and boost clock:
///   8.0: "NVIDIA A100 Tensor Core GPU Architecture"
///   8.6: "NVIDIA Ampere GA102 GPU Architecture"
///   8.9: "NVIDIA Ada GPU Architecture"
///   9.0: "NVIDIA H100 Tensor Core GPU Architecture"
struct Rates {
  int major, minor;
  int half, tf32;
};
} // namespace

static constexpr Rates table[] = {
    {8, 0, 2048, 1024},
    {8, 6, 512, 256},
    {8, 9, 512, 256},
    {9, 0, 4096, 2048},
};

std::optional<double> flash::run::getPeakFlops(const cuda::DeviceInfo &device,
                                               DType dtype, bool tf32,
                                               std::string &kind) {
  if (!device.clockKHz)
    return std::nullopt;
  for (const Rates &rates : table) {
    if (rates.major != device.major || rates.minor != device.minor)
      continue;
    double clock = *device.clockKHz * 1e3 * device.multiprocessors;
    if (dtype == DType::F16 || dtype == DType::BF16) {
      kind = (getName(dtype) + " tensor cores").str();
      return rates.half * clock;
    }
    if (dtype == DType::F32 && tf32) {
      kind = "tf32 tensor cores";
      return rates.tf32 * clock;
    }
    if (dtype == DType::F32) {
      // Each product is the sum of three of halves of the numbers' bits.
      kind = "tensor cores, three tf32 products for one of f32";
      return rates.tf32 * clock / 3;
    }
  }
  return std::nullopt;
}

std::optional<double>
flash::run::getPeakBandwidth(const cuda::DeviceInfo &device) {
  if (!device.memoryClockKHz || device.memoryBusBits == 0)
    return std::nullopt;
  // Two transfers in each clock.
  return 2e3 * *device.memoryClockKHz * device.memoryBusBits / 8;
}
