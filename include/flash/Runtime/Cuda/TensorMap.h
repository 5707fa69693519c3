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

/// Checks the limits of the hardware (`findBrokenRule`), and encodes the tensor
/// map with the driver. Needs a device from sm_90 on and a driver from CUDA
/// 12.0 on. Fails with a message that names the limit that is broken, or what
/// is missing. `name` is the name of the tensor map in messages.
llvm::Expected<TensorMap> encodeTensorMap(const Device &device,
                                          const llvm::Twine &name,
                                          const TensorMapOptions &options);

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_TENSORMAP_H
