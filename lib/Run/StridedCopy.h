//===- StridedCopy.h - Dense tensors in other layouts -----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_RUN_STRIDEDCOPY_H
#define FLASH_LIB_RUN_STRIDEDCOPY_H

#include "flash/Run/HostTensor.h"
#include "flash/Run/Options.h"

namespace flash::run {

/// The strides of a tensor in a layout, in elements.
llvm::SmallVector<int64_t, 4> getStrides(llvm::ArrayRef<int64_t> sizes,
                                         Layout layout);

/// Bytes from the first element to the end of the last. 0 without elements.
int64_t getExtent(const TensorSpec &spec, llvm::ArrayRef<int64_t> strides);

/// Copies between a dense tensor and one with strides, whose memory both start
/// at the first element.
void scatter(const TensorSpec &spec, llvm::ArrayRef<int64_t> strides,
             const char *dense, char *strided);
void gather(const TensorSpec &spec, llvm::ArrayRef<int64_t> strides,
            const char *strided, char *dense);

} // namespace flash::run

#endif // FLASH_LIB_RUN_STRIDEDCOPY_H
