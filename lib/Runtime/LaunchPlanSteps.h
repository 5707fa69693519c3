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

} // namespace flash::runtime

#endif // FLASH_LIB_RUNTIME_LAUNCHPLANSTEPS_H
