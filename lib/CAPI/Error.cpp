//===- Error.cpp - Failures as the C library reports them -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

#include "flash/Compile/RunPasses.h"
#include "flash/Runtime/Cuda/Error.h"
#include "flash/Support/Version.h"

using flash::cuda::CudaError;
using flash::cuda::ErrorKind;

static thread_local std::string lastMessage;

const char *flashGetErrorMessage() { return lastMessage.c_str(); }

const char *flashGetVersion() { return flash::getVersion(); }

FlashStatus flash::capi::fail(FlashStatus status, const llvm::Twine &message) {
  // The message may refer to the last one.
  std::string text = message.str();
  lastMessage = std::move(text);
  return status;
}

FlashStatus flash::capi::fail(FlashStatus status, llvm::Error error) {
  std::string message;
  llvm::handleAllErrors(
      std::move(error),
      [&](const CudaError &failure) {
        message = failure.message();
        switch (failure.getKind()) {
        case ErrorKind::Unavailable:
        case ErrorKind::DriverTooOld:
          status = FLASH_UNAVAILABLE;
          break;
        case ErrorKind::OutOfMemory:
          status = FLASH_OUT_OF_MEMORY;
          break;
        case ErrorKind::InvalidRequest:
          // The caller knows of what.
          break;
        default:
          status = FLASH_FAILURE;
        }
      },
      [&](const flash::compile::InterruptedError &interruption) {
        message = interruption.message();
        status = FLASH_INTERRUPTED;
      },
      [&](const llvm::ErrorInfoBase &failure) { message = failure.message(); });
  if (llvm::StringRef(message).starts_with("out of memory"))
    status = FLASH_OUT_OF_MEMORY;
  return fail(status, message);
}

FlashStatus flash::capi::failProgram(llvm::Error error,
                                     llvm::StringRef diagnostics) {
  if (error.isA<flash::compile::InterruptedError>())
    return fail(FLASH_INTERRUPTED, std::move(error));
  return fail(FLASH_INVALID_PROGRAM,
              llvm::toString(std::move(error)) +
                  (diagnostics.empty() ? "" : "\n" + diagnostics));
}
