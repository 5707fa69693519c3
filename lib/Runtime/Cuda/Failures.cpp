//===- Failures.cpp - Making errors and their texts -----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Failures.h"

#include "llvm/Support/FormatVariadic.h"

using namespace flash::cuda;

char CudaError::ID = 0;

bool flash::cuda::isFault(CUresult result) {
  switch (result) {
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_NVLINK_UNCORRECTABLE:
  case CUDA_ERROR_CONTAINED:
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_LAUNCH_FAILED:
    return true;
  default:
    return false;
  }
}

const char *flash::cuda::explainFault(CUresult result) {
  switch (result) {
  case CUDA_ERROR_ILLEGAL_ADDRESS:
    return ": it accessed memory outside of its buffers";
  case CUDA_ERROR_MISALIGNED_ADDRESS:
    return ": an address was not a multiple of the size of its access";
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    return ": a malformed operand, such as a matrix descriptor, may be the "
           "cause";
  case CUDA_ERROR_LAUNCH_TIMEOUT:
    return ": the GPU also drives a display, where kernels have seconds";
  default:
    return "";
  }
}

std::string flash::cuda::formatVersion(int version, int majorUnit,
                                       int minorUnit) {
  return llvm::formatv("{0}.{1}", version / majorUnit,
                       version % majorUnit / minorUnit);
}
