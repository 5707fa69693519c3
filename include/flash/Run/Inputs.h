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

/// Reads or makes up the arguments of the program. Made-up floats are normal
/// numbers, the lengths of an attention are from 0 to its number of rows,
/// offsets cut all rows into sequences, lists of blocks are some of those there
/// are, and other integers are from 0 to 7. Offsets that are given, but
/// decrease or lie outside the rows, are an error.
llvm::Expected<std::vector<HostTensor>>
makeInputs(mlir::func::FuncOp entry, llvm::ArrayRef<TensorSpec> specs,
           const Options &options, Placement placement);

/// Copies of tensors, with f64 instead of narrower floats if `promote`.
llvm::Expected<std::vector<HostTensor>>
copyInputs(llvm::ArrayRef<HostTensor> inputs, bool promote,
           Placement placement);

} // namespace flash::run

#endif // FLASH_RUN_INPUTS_H
