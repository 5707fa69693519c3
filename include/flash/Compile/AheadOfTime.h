//===- AheadOfTime.h - Kernels and the header that launches them *- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_COMPILE_AHEADOFTIME_H
#define FLASH_COMPILE_AHEADOFTIME_H

#include "flash/Compile/GpuProgram.h"

namespace flash::compile {

/// The names of the file for compiled kernels, which ends in .ptx or .cubin, of
/// the C header, and of the file of the program. The last one is for a comment;
/// it is empty or "-" if there is no such file.
struct OutputNames {
  std::string image, header, program;
};

/// The names for `output`, which must end in .ptx or .cubin. If `header` is
/// empty, the header has the name of `output` with the ending .h.
llvm::Expected<OutputNames> parseOutput(llvm::StringRef output,
                                        llvm::StringRef header);

/// Writes the files with which a program can launch the kernels without this
/// compiler: a file with the PTX or, if its name ends in .cubin, with the
/// cubin, and a C header that contains the kernels and has functions to launch
/// them (docs/launch.md). `text` is the source of the programs, for a comment
/// of the header. If there are several functions, each has a file of kernels
/// with the name of the function before the ending, and all share one header.
/// It is an error if `ptxas` is missing or fails, if a program does not have
/// exactly one gpu.module, or if a file cannot be written.
llvm::Error writeAheadOfTime(llvm::MutableArrayRef<GpuProgram> programs,
                             llvm::StringRef text, const OutputNames &names);

} // namespace flash::compile

#endif // FLASH_COMPILE_AHEADOFTIME_H
