//===- TensorMap.h - Encoding of tensor maps --------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_CUDA_TENSORMAP_H
#define FLASH_RUNTIME_CUDA_TENSORMAP_H

#include "flash/Runtime/Cuda/Device.h"
#include "flash/Runtime/TensorMap.h"

namespace flash::cuda {

using runtime::TensorMap;
using runtime::TensorMapElement;
using runtime::TensorMapOptions;

/// Checks the limits of the hardware, with a message where one is broken, and
/// has the driver encode the map. Devices from sm_90 on, drivers from 12.0 on.
/// `name` is for messages.
llvm::Expected<TensorMap> encodeTensorMap(const Device &device,
                                          const llvm::Twine &name,
                                          const TensorMapOptions &options);

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_TENSORMAP_H
