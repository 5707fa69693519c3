//===- HostCall.h - What the code of host programs calls --------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The door between machine code that `convert-host-to-llvm` has made and this
// library.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_HOSTCALL_H
#define FLASH_RUNTIME_HOSTCALL_H

#include "flash/Runtime/HostProgram.h"
#include <optional>

namespace flash::runtime {

/// A call in progress.
struct HostCall {
  /// The code reads through these two, which therefore come first.
  const int64_t *inputs;
  int64_t *outputs;

  const HostProgram &program;
  Invocation &invocation;
  int64_t usedBytes = 0;
  std::optional<llvm::Error> error = std::nullopt;
};

/// What the code has for an address while that is not known: the number of the
/// memory (Invocation::Address), and the last 32 bits of an argument's address.
/// The code only passes it on, and looks whether it is a multiple.
int64_t getAddressStandIn(unsigned memory, uint64_t address = 0);

} // namespace flash::runtime

extern "C" {
/// Ends the call with a message, in which {0} and {1} stand for the values, if
/// there are so many.
void flash_host_fail(flash::runtime::HostCall *call, const char *format,
                     int64_t numValues, int64_t first, int64_t second);
/// The address of scratch memory of so many bytes, which are not negative.
int64_t flash_host_allocate(flash::runtime::HostCall *call, int64_t bytes);
int64_t flash_host_mark(flash::runtime::HostCall *call);
void flash_host_release(flash::runtime::HostCall *call, int64_t usedBytes);
/// Checks a launch and lists it. Not 0 after an error.
int32_t flash_host_launch(flash::runtime::HostCall *call, int64_t number,
                          const int64_t *values);
}

#endif // FLASH_RUNTIME_HOSTCALL_H
