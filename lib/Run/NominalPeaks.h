//===- NominalPeaks.h - What a GPU can do by its data sheet -----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_RUN_NOMINALPEAKS_H
#define FLASH_LIB_RUN_NOMINALPEAKS_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Run/HostTensor.h"
#include "flash/Runtime/Cuda/Device.h"

namespace flash::run {

/// Operations of dense products per second at the highest clock. `kind` says
/// which units compute the products of this type; with a precision, products of
/// rounded operands. Nothing for devices and types that the table lacks,
/// or if the driver does not report the clock.
std::optional<double> getPeakFlops(const cuda::DeviceInfo &device, DType dtype,
                                   std::optional<Precision> precision,
                                   std::string &kind);

/// Bytes per second between the GPU and its memory.
std::optional<double> getPeakBandwidth(const cuda::DeviceInfo &device);

} // namespace flash::run

#endif // FLASH_LIB_RUN_NOMINALPEAKS_H
