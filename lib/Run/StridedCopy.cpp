//===- StridedCopy.cpp - Dense tensors in other layouts -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StridedCopy.h"

#include <cstring>
#include <numeric>

using namespace flash::run;
using llvm::ArrayRef;
using llvm::SmallVector;

SmallVector<int64_t, 4> flash::run::getStrides(ArrayRef<int64_t> sizes,
                                               Layout layout) {
  size_t rank = sizes.size();
  SmallVector<size_t, 4> order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (layout == Layout::Bnhd && rank >= 3)
    std::swap(order[rank - 3], order[rank - 2]);
  SmallVector<int64_t, 4> strides(rank, 1);
  for (size_t i = rank; i-- > 1;)
    strides[order[i - 1]] = strides[order[i]] * sizes[order[i]];
  return strides;
}

int64_t flash::run::getExtent(const TensorSpec &spec,
                              ArrayRef<int64_t> strides) {
  if (spec.getNumElements() == 0)
    return 0;
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(spec.shape, strides))
    last += (size - 1) * stride;
  return (last + 1) * getSize(spec.dtype);
}

/// Calls `copy` with the byte offset of each element run that is contiguous in
/// both, in the dense tensor and in the other, and its length.
static void
forEachRow(const TensorSpec &spec, ArrayRef<int64_t> strides,
           llvm::function_ref<void(int64_t, int64_t, int64_t)> copy) {
  int64_t elements = spec.getNumElements(), bytes = getSize(spec.dtype);
  if (elements == 0)
    return;
  // Rank 0, or a last dimension with gaps, goes by single elements.
  size_t outer = spec.shape.size();
  int64_t row = 1;
  if (outer && (strides.back() == 1 || spec.shape.back() == 1))
    row = spec.shape[--outer];
  SmallVector<int64_t, 4> index(outer, 0);
  for (int64_t dense = 0; dense < elements; dense += row) {
    int64_t offset = 0;
    for (size_t d = 0; d < outer; ++d)
      offset += index[d] * strides[d];
    copy(dense * bytes, offset * bytes, row * bytes);
    for (size_t d = outer; d-- > 0;) {
      if (++index[d] < spec.shape[d])
        break;
      index[d] = 0;
    }
  }
}

void flash::run::scatter(const TensorSpec &spec, ArrayRef<int64_t> strides,
                         const char *dense, char *strided) {
  forEachRow(spec, strides, [&](int64_t from, int64_t to, int64_t bytes) {
    std::memcpy(strided + to, dense + from, bytes);
  });
}

void flash::run::gather(const TensorSpec &spec, ArrayRef<int64_t> strides,
                        const char *strided, char *dense) {
  forEachRow(spec, strides, [&](int64_t to, int64_t from, int64_t bytes) {
    std::memcpy(dense + to, strided + from, bytes);
  });
}
