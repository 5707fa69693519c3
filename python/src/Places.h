//===- Places.h - Where results of attention lie ----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_PYTHON_PLACES_H
#define FLASH_PYTHON_PLACES_H

#include "Kernel.h"

#include <algorithm>
#include <numeric>

namespace flash::python {

/// Whether the dimensions of an array but the last lie in memory in another
/// order than the dimensions of a row-major one.
inline bool isReordered(const Array &array) {
  bool isReordered = false;
  for (int d = 0; d + 2 < array.rank; ++d) {
    // Of one that is expanded there is no order.
    if (array.strides[d] <= 0 || array.strides[d + 1] <= 0)
      return false;
    isReordered |= array.strides[d] < array.strides[d + 1];
  }
  return isReordered;
}

/// Sizes and strides of results: dense, with their dimensions in the order of
/// other arrays' dimensions.
class Places {
public:
  /// A row-major one, or one in the order of an array of the same rank.
  void add(const int64_t *sizes, int rank, const Array *like = nullptr) {
    Shape &shape = shapes[count];
    destinations[count] = {};
    std::copy_n(sizes, rank, shape.sizes);
    int order[maxRank];
    std::iota(order, order + rank, 0);
    if (like && isReordered(*like))
      std::stable_sort(order, order + rank - 1, [&](int left, int right) {
        return like->strides[left] > like->strides[right];
      });
    int64_t stride = 1;
    for (int i = rank; i-- > 0;) {
      shape.strides[order[i]] = stride;
      stride *= std::max<int64_t>(shape.sizes[order[i]], 1);
    }
    tensors[count++] = {nullptr, rank, shape.sizes, shape.strides};
  }
  /// An array that there is, and where it is.
  void addGiven(const Array &array, nb::handle owner) {
    Shape &shape = shapes[count];
    std::copy_n(array.sizes, array.rank, shape.sizes);
    std::copy_n(array.strides, array.rank, shape.strides);
    destinations[count] = {0, {}, {}, owner, array.data};
    hasDestinations = true;
    tensors[count++] = {nullptr, array.rank, shape.sizes, shape.strides};
  }
  /// Rows of all sequences, each with its heads, as a batch of one: what is
  /// given and what is allocated. A log-sum-exp has its heads first.
  void addPacked(const int64_t *sizes, int rank, nb::handle like = {}) {
    add(sizes, rank);
    hasDestinations = true;
    Destination &to = destinations[count - 1];
    int64_t heads = sizes[1], rows = sizes[2];
    if (rank == 3) {
      to = {2, {heads, rows}, {}};
      return;
    }
    to = {3, {rows, heads, sizes[3]}, like};
    int64_t *strides = shapes[count - 1].strides;
    strides[1] = std::max<int64_t>(sizes[3], 1);
    strides[2] = std::max<int64_t>(heads, 1) * strides[1];
  }
  /// Rows before heads, which the attention has the other way round.
  void addRows(const int64_t *sizes, nb::handle like) {
    add(sizes, 4);
    hasDestinations = true;
    destinations[count - 1] = {
        4, {sizes[0], sizes[2], sizes[1], sizes[3]}, like};
    int64_t *strides = shapes[count - 1].strides;
    strides[1] = std::max<int64_t>(sizes[3], 1);
    strides[2] = std::max<int64_t>(sizes[1], 1) * strides[1];
  }
  const FlashTensor *get() const { return tensors; }
  const Destination *getDestinations() const {
    return hasDestinations ? destinations : nullptr;
  }

private:
  // The gradients of query, key, value, sink and the captured tensors.
  static constexpr size_t maxPlaces = 36;
  struct Shape {
    int64_t sizes[maxRank], strides[maxRank];
  };
  Shape shapes[maxPlaces];
  FlashTensor tensors[maxPlaces];
  Destination destinations[maxPlaces];
  bool hasDestinations = false;
  size_t count = 0;
};

} // namespace flash::python

#endif // FLASH_PYTHON_PLACES_H
