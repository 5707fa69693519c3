//===- Error.h - Failures of the CUDA driver and of kernels -----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_CUDA_ERROR_H
#define FLASH_RUNTIME_CUDA_ERROR_H

#include "llvm/Support/Error.h"

namespace flash::cuda {

/// The kinds of errors that a caller may want to distinguish. The message has
/// the details.
enum class ErrorKind {
  /// There is no driver, or it has no device. Programs can still run on other
  /// targets.
  Unavailable,
  /// The driver lacks a function that is needed, or does not know the version
  /// of the PTX.
  DriverTooOld,
  /// The request breaks a limit of the device or of a kernel, or is malformed.
  InvalidRequest,
  /// The driver refuses the PTX or the cubin.
  InvalidProgram,
  OutOfMemory,
  /// A kernel wrote outside of a buffer.
  RedZone,
  /// A kernel did not finish in time. The process cannot use the device any
  /// more.
  TimedOut,
  /// A kernel faulted. The process cannot use the device any more.
  KernelFailed,
  /// Nothing was tried, because after an earlier fault or time-out the process
  /// cannot use the device any more.
  DeviceLost,
  /// Any other failure of a driver call.
  DriverFailure,
};

/// The payload of every error of this library.
class CudaError : public llvm::ErrorInfo<CudaError> {
public:
  static char ID;

  CudaError(ErrorKind kind, const llvm::Twine &message)
      : kind(kind), text(message.str()) {}

  ErrorKind getKind() const { return kind; }
  std::string message() const override { return text; }
  void log(llvm::raw_ostream &os) const override { os << text; }
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }

private:
  ErrorKind kind;
  std::string text;
};

} // namespace flash::cuda

#endif // FLASH_RUNTIME_CUDA_ERROR_H
