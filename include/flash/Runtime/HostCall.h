//===- HostCall.h - What the code of host programs calls --------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of this library that the code of host programs calls. The pass
// `convert-host-to-llvm` makes that code.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_HOSTCALL_H
#define FLASH_RUNTIME_HOSTCALL_H

#include "flash/Runtime/HostProgram.h"
#include <optional>

namespace flash::runtime {

/// The state of a call of a host program while its code runs.
struct HostCall {
  /// The values of host.input and host.output. The code accesses them at fixed
  /// offsets, so they must be the first members.
  const int64_t *inputs;
  int64_t *outputs;

  const HostProgram &program;
  Invocation &invocation;
  /// The bytes of scratch memory that are in use at this point of the program.
  int64_t usedBytes = 0;
  /// Has a value after an error, with which the call ends.
  std::optional<llvm::Error> error = std::nullopt;
};

/// The number by which the code represents an address that is not known yet:
/// the number of the memory (`Invocation::Address`) in the upper 32 bits, and
/// the lower 32 bits of `address` in the lower ones. The code only copies the
/// number, and tests the alignment of the address.
int64_t getAddressStandIn(unsigned memory, uint64_t address = 0);

} // namespace flash::runtime

extern "C" {
/// Sets the error of the call, after which the code must return. `format` is
/// the message; {0} and {1} in it are replaced by `first` and `second`. Only
/// the first `numValues` of them are used, at most 2.
void flash_host_fail(flash::runtime::HostCall *call, const char *format,
                     int64_t numValues, int64_t first, int64_t second);
/// Allocates scratch memory, and returns the representation of its address
/// (`getAddressStandIn`). `bytes` must not be negative. Memory begins at a
/// multiple of 256 bytes.
int64_t flash_host_allocate(flash::runtime::HostCall *call, int64_t bytes);
/// The bytes of scratch memory that are in use.
int64_t flash_host_mark(flash::runtime::HostCall *call);
/// Releases the scratch memory that was allocated after `flash_host_mark`
/// returned `usedBytes`. Later allocations may overlap it.
void flash_host_release(flash::runtime::HostCall *call, int64_t usedBytes);
/// Checks a launch, and appends it to `Invocation::launches` unless its grid
/// has no blocks. `number` is the index in `HostProgram::launches`. `values`
/// are the sizes of the grid (x, y, z), the sizes of a block (x, y, z), the
/// bytes of dynamic shared memory, and then the values of each field,
/// `Field::numValues` for each. Returns 0, or 1 after it has set the error of
/// the call.
int32_t flash_host_launch(flash::runtime::HostCall *call, int64_t number,
                          const int64_t *values);
}

#endif // FLASH_RUNTIME_HOSTCALL_H
