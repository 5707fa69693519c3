//===- Npy.h - Files of numpy arrays ----------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_NPY_H
#define FLASH_RUN_NPY_H

#include "flash/Run/HostTensor.h"

namespace flash::run {

/// What the header of a .npy file says.
struct NpyHeader {
  /// Such as "<f4".
  std::string descr;
  bool fortranOrder = false;
  llvm::SmallVector<int64_t, 4> shape;
  /// Offset of the first element in the file.
  size_t dataOffset = 0;
};

/// Parses the header of a .npy file of version 1, 2 or 3. Accepts any bytes.
llvm::Expected<NpyHeader> parseNpyHeader(llvm::StringRef file);

/// The shape of the array in a file.
llvm::Expected<llvm::SmallVector<int64_t, 4>>
readNpyShape(llvm::StringRef path);

/// Reads `path`, which must hold a little-endian, C-ordered array of exactly
/// the given shape and element type.
///
/// numpy has no bfloat16. For bf16, a file may hold `<u2` or `<V2` (the bits,
/// as ml_dtypes saves them) or `<f4` (rounded to nearest even).
llvm::Expected<HostTensor> readNpy(llvm::StringRef path, const TensorSpec &spec,
                                   Placement placement);

/// Writes a .npy file of version 1; bf16 as its bits, `<u2`. The file appears
/// under its name only once it is complete.
llvm::Error writeNpy(llvm::StringRef path, const HostTensor &tensor);

} // namespace flash::run

#endif // FLASH_RUN_NPY_H
