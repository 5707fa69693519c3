//===- Failures.h - Making errors and their texts ---------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_RUNTIME_CUDA_FAILURES_H
#define FLASH_LIB_RUNTIME_CUDA_FAILURES_H

#include "DriverApi.h"
#include "flash/Runtime/Cuda/Error.h"
#include <string>

namespace flash::cuda {

inline llvm::Error fail(ErrorKind kind, const llvm::Twine &message) {
  return llvm::make_error<CudaError>(kind, message);
}

/// Whether the result is the fault of a kernel (or of the hardware under it),
/// after which every call in the context fails.
bool isFault(CUresult result);

/// What such a fault usually comes from, as the end of a message, or "".
const char *explainFault(CUresult result);

/// "12.8" for 12080, 1000 and 10; "8.6" for 86, 10 and 1.
std::string formatVersion(int version, int majorUnit, int minorUnit);

} // namespace flash::cuda

#endif // FLASH_LIB_RUNTIME_CUDA_FAILURES_H
