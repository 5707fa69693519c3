//===- Npy.h - Files of NumPy arrays ----------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_NPY_H
#define FLASH_RUN_NPY_H

#include "flash/Run/HostTensor.h"

namespace flash::run {

/// The contents of the header of a .npy file.
struct NpyHeader {
  /// The element type, such as "<f4".
  std::string descr;
  bool fortranOrder = false;
  llvm::SmallVector<int64_t, 4> shape;
  /// The offset of the first element in the file, in bytes.
  size_t dataOffset = 0;
};

/// Parses the header of a .npy file of version 1, 2 or 3. `file` may be any
/// bytes; it is an error if they are no such file.
llvm::Expected<NpyHeader> parseNpyHeader(llvm::StringRef file);

/// The shape of the array in a file.
llvm::Expected<llvm::SmallVector<int64_t, 4>>
readNpyShape(llvm::StringRef path);

/// Reads a file, which must have a little-endian array in C order with exactly
/// the given shape and element type.
///
/// NumPy has no bfloat16. For bf16, a file may have `<u2` or `<V2` (the bits,
/// as ml_dtypes saves them) or `<f4` (values that are rounded to nearest even).
llvm::Expected<HostTensor> readNpy(llvm::StringRef path, const TensorSpec &spec,
                                   Placement placement);

/// Writes a .npy file of version 1. A tensor of bf16 is written as its bits,
/// `<u2`. The file gets its name only when it is complete.
llvm::Error writeNpy(llvm::StringRef path, const HostTensor &tensor);

} // namespace flash::run

#endif // FLASH_RUN_NPY_H
