//===- LaunchPlanSteps.h - Parts of preparing a call ------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_RUNTIME_LAUNCHPLANSTEPS_H
#define FLASH_LIB_RUNTIME_LAUNCHPLANSTEPS_H

#include "flash/Runtime/LaunchPlan.h"

namespace flash::runtime {

/// Compares an argument with what the plan says of it.
llvm::Error checkArgument(unsigned index, const LaunchPlan::Argument &expected,
                          const TensorArgument &argument);

/// Computes all registers into `r`, which has room for them.
llvm::Error runInstructions(const LaunchPlan &plan,
                            llvm::ArrayRef<TensorArgument> arguments,
                            int64_t *r);

/// Compares the tensor map that a field is with the rules for its sizes and
/// strides, whatever the address.
llvm::Error checkTensorMap(const LaunchPlan &plan,
                           const LaunchPlan::Launch &launch,
                           const LaunchPlan::Field &field, const int64_t *r);

/// The tensor map that a field is, of the tensor at this address.
llvm::Expected<TensorMap> encodeTensorMap(const LaunchPlan &plan,
                                          const LaunchPlan::Launch &launch,
                                          const LaunchPlan::Field &field,
                                          uint64_t address, const int64_t *r,
                                          TensorMapEncoder encode);

} // namespace flash::runtime

#endif // FLASH_LIB_RUNTIME_LAUNCHPLANSTEPS_H
