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

/// Where compiled kernels go: a .ptx or .cubin file, and a C header; and the
/// name of the program, empty or "-" for none.
struct OutputNames {
  std::string image, header, program;
};

/// The names for `output`, which must end in .ptx or .cubin. An empty `header`
/// stands for that of the output, with .h.
llvm::Expected<OutputNames> parseOutput(llvm::StringRef output,
                                        llvm::StringRef header);

/// Writes what programs without this compiler need: the PTX or, where the path
/// ends in .cubin, the cubin, and a C header that contains it and has functions
/// to launch it (docs/launch.md). `text` is what was compiled, for the header's
/// comment. Of several functions each has its kernels in a file of its own,
/// with its name before the ending; the header has them all. Errors: `ptxas` is
/// missing or fails, a program has several gpu.modules, a file cannot be
/// written.
llvm::Error writeAheadOfTime(llvm::MutableArrayRef<GpuProgram> programs,
                             llvm::StringRef text, const OutputNames &names);

} // namespace flash::compile

#endif // FLASH_COMPILE_AHEADOFTIME_H
