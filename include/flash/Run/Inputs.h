//===- Inputs.h - The arguments of a run ------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_INPUTS_H
#define FLASH_RUN_INPUTS_H

#include "flash/Compile/Program.h"
#include "flash/Run/HostTensor.h"
#include "flash/Run/Options.h"

namespace flash::run {

/// Reads the arguments of the program from files or makes them up, changes them
/// as `Options::fills` say, and checks offsets and page tables. Made-up floats
/// are normally distributed. Lengths of an attention are from 0 to its number
/// of rows, offsets cut all rows into sequences, lists of blocks contain random
/// blocks, and pages are in random order. Scales are positive, quantized
/// integers are from -127 to 127, and other integers are from 0 to 7. It is an
/// error if offsets decrease or are not from 0 to the number of rows, and if a
/// page that has rows does not exist.
llvm::Expected<std::vector<HostTensor>>
makeInputs(mlir::func::FuncOp entry, llvm::ArrayRef<TensorSpec> specs,
           const Options &options, Placement placement);

/// Copies of tensors. If `promote` is set, copies of f16, bf16 and f32 have
/// elements of f64 (`isPromoted`).
llvm::Expected<std::vector<HostTensor>>
copyInputs(llvm::ArrayRef<HostTensor> inputs, bool promote,
           Placement placement);

} // namespace flash::run

#endif // FLASH_RUN_INPUTS_H
