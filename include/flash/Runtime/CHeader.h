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

/// The compiled kernels, as PTX or as a cubin.
struct KernelImage {
  /// Whether the header contains the image. Otherwise the program reads it from
  /// a file when it starts.
  bool isEmbedded = false;
  /// The image itself, or the name of the file.
  llvm::StringRef text;
};

/// How the kernels were made, for the comment at the beginning of the header.
/// Empty members are left out.
struct KernelOrigin {
  /// The compiler and its version, and the GPU.
  llvm::StringRef compiler, target;
  /// The file of the program, and its text.
  llvm::StringRef file, program;
  /// The calls for which there are versions, as flash-make-versions has them.
  llvm::StringRef versions;
  /// The schedules of the attentions, in the order of the program.
  llvm::ArrayRef<std::string> schedules;
};

/// Prints a C99 header, which is also C++11, that runs the program with the
/// CUDA driver. It depends only on <cuda.h> and libcuda. `code` is what
/// `convert-host-to-emitc` makes of the program, with `name` as the prefix. All
/// names of the header start with `name`, so that a file may include several
/// headers (docs/launch.md). It is an error if `name` is no C identifier, or if
/// the kernels of the launches are in several modules.
llvm::Error printCHeader(const HostProgram &program, llvm::StringRef name,
                         llvm::StringRef code, const KernelImage &image,
                         const KernelOrigin &origin, llvm::raw_ostream &os);

} // namespace flash::runtime

#endif // FLASH_RUNTIME_CHEADER_H
