//===- HostSteps.h - Parts of a call ----------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_RUNTIME_HOSTSTEPS_H
#define FLASH_LIB_RUNTIME_HOSTSTEPS_H

#include "flash/Runtime/HostProgram.h"

namespace flash::runtime {

/// Compares an argument with what the program says of it.
llvm::Error checkArgument(unsigned index, const HostProgram::Argument &expected,
                          const TensorArgument &argument);

/// Compares the tensor map that a field is with the rules for its sizes and
/// strides, which follow one another, whatever the address.
llvm::Error checkTensorMap(const HostProgram::Launch &launch,
                           const HostProgram::Field &field,
                           const int64_t *shape);

/// The tensor map that a field is, of the tensor at this address.
llvm::Expected<TensorMap> encodeTensorMap(const HostProgram::Launch &launch,
                                          const HostProgram::Field &field,
                                          uint64_t address,
                                          const int64_t *shape,
                                          TensorMapEncoder encode);

} // namespace flash::runtime

#endif // FLASH_LIB_RUNTIME_HOSTSTEPS_H
