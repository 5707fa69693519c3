//===- CHeader.h - Host programs as C headers -------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_CHEADER_H
#define FLASH_RUNTIME_CHEADER_H

#include "flash/Runtime/HostProgram.h"

namespace flash::runtime {

/// The compiled kernels, PTX or cubin: within the header, as text if they are,
/// or in a file that is read when the program starts.
struct KernelImage {
  bool isEmbedded = false;
  /// The image itself, or the name of the file.
  llvm::StringRef text;
};

/// What the kernels were made of, for the comment that a header starts with.
/// What is empty is left out.
struct KernelOrigin {
  /// The compiler and its version, and the GPU.
  llvm::StringRef compiler, target;
  /// The file of the program, and its text.
  llvm::StringRef file, program;
  /// The calls that have versions.
  llvm::StringRef versions;
  /// In the order of the attentions.
  llvm::ArrayRef<std::string> schedules;
};

/// Prints a C99 header, also C++11, that runs the program with the CUDA driver,
/// and whose only dependencies are <cuda.h> and libcuda. `code` is what
/// `convert-host-to-emitc` makes of the program, with `name` as prefix. All
/// names of the header start with it, so that a file may include several; see
/// docs/launch.md. Errors: `name` is no C identifier, or the launches take
/// their kernels from several modules.
llvm::Error printCHeader(const HostProgram &program, llvm::StringRef name,
                         llvm::StringRef code, const KernelImage &image,
                         const KernelOrigin &origin, llvm::raw_ostream &os);

} // namespace flash::runtime

#endif // FLASH_RUNTIME_CHEADER_H
