//===- Tensor.cpp - What callers may hand in ------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

#include "llvm/Support/FormatVariadic.h"

std::string flash::capi::findFault(const FlashTensor &tensor, size_t rank) {
  if (tensor.rank < 0 || size_t(tensor.rank) != rank)
    return llvm::formatv("has rank {0}, expected {1}", tensor.rank, rank);
  if (rank && !tensor.sizes)
    return "has sizes that are null";
  if (rank && !tensor.strides)
    return "has strides that are null";
  if (!tensor.data &&
      !llvm::is_contained(llvm::ArrayRef(tensor.sizes, rank), 0))
    return "has elements, but its data is null";
  return "";
}
