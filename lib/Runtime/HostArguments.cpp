//===- HostArguments.cpp - Checks of a call's arguments -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostSteps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace flash::runtime;
using llvm::createStringError;
using llvm::Error;
using llvm::formatv;

void flash::runtime::setIdleStrides(llvm::ArrayRef<int64_t> sizes,
                                    llvm::MutableArrayRef<int64_t> strides) {
  bool isEmpty = llvm::is_contained(sizes, 0);
  int64_t dense = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] <= 1 || isEmpty)
      strides[d] = dense;
    // Where the product is no number, there is no dense tensor.
    if (sizes[d] > 1 && llvm::MulOverflow(dense, sizes[d], dense))
      dense = 0;
  }
}

/// Checks that the bytes between the first and the last element can be counted.
static bool hasSpan(const TensorArgument &argument, int64_t elementBytes) {
  int64_t low = 0, high = elementBytes;
  for (auto [size, stride] :
       llvm::zip_equal(argument.sizes, argument.strides)) {
    int64_t step;
    if (size <= 1)
      continue;
    if (llvm::MulOverflow(stride, elementBytes, step) ||
        llvm::MulOverflow(step, size - 1, step) ||
        llvm::AddOverflow(step < 0 ? low : high, step, step < 0 ? low : high))
      return false;
  }
  int64_t span;
  return !llvm::SubOverflow(high, low, span);
}

static Error checkStrides(unsigned index, const HostProgram::Argument &expected,
                          const TensorArgument &argument) {
  int64_t dense = 1;
  for (size_t d = argument.sizes.size(); d-- > 0;) {
    int64_t wanted = expected.strides[d];
    if (wanted == HostProgram::dynamic && expected.isDense)
      wanted = dense;
    if (argument.sizes[d] > 1 && wanted != HostProgram::dynamic &&
        argument.strides[d] != wanted)
      return createStringError(formatv(
          "argument {0}: the stride of dimension {1} is {2}, expected {3}{4}",
          index, d, argument.strides[d], wanted,
          d + 1 == argument.sizes.size() && wanted == 1
              ? ": the innermost dimension must be contiguous"
              : ""));
    if (expected.isDense && llvm::MulOverflow(dense, argument.sizes[d], dense))
      return createStringError(formatv(
          "argument {0}: the number of elements does not fit in 64 bits",
          index));
  }
  if (!hasSpan(argument, expected.elementBytes))
    return createStringError(formatv(
        "argument {0}: the bytes that its strides span do not fit in 64 bits",
        index));
  return Error::success();
}

Error flash::runtime::checkArgument(unsigned index,
                                    const HostProgram::Argument &expected,
                                    const TensorArgument &argument) {
  size_t rank = expected.sizes.size();
  if (argument.sizes.size() != rank)
    return createStringError(formatv("argument {0} has rank {1}, expected {2}",
                                     index, argument.sizes.size(), rank));
  if (argument.strides.size() != rank)
    return createStringError(formatv("argument {0} has {1} sizes, but {2} "
                                     "strides",
                                     index, rank, argument.strides.size()));
  if (argument.address % expected.alignment)
    return createStringError(
        formatv("argument {0}: the address {1:x} is not a multiple of {2}",
                index, argument.address, expected.alignment));
  bool isEmpty = false;
  for (size_t d = 0; d != rank; ++d) {
    int64_t size = argument.sizes[d];
    if (size < 0)
      return createStringError(formatv(
          "argument {0}: the size of dimension {1} is {2}, a negative number",
          index, d, size));
    if (expected.sizes[d] != HostProgram::dynamic && expected.sizes[d] != size)
      return createStringError(formatv(
          "argument {0}: the size of dimension {1} is {2}, expected {3}", index,
          d, size, expected.sizes[d]));
    isEmpty |= size == 0;
  }
  // Where there are no elements, strides have no meaning.
  return isEmpty ? Error::success() : checkStrides(index, expected, argument);
}
