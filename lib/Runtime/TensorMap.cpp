//===- TensorMap.cpp - What the hardware requires of tensor maps ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/TensorMap.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"

using namespace flash::runtime;
using llvm::formatv;

llvm::StringRef flash::runtime::getName(TensorMapElement element) {
  switch (element) {
  case TensorMapElement::I8:
    return "i8";
  case TensorMapElement::I32:
    return "i32";
  case TensorMapElement::I64:
    return "i64";
  case TensorMapElement::F16:
    return "f16";
  case TensorMapElement::F32:
    return "f32";
  case TensorMapElement::F64:
    return "f64";
  case TensorMapElement::BF16:
    return "bf16";
  }
  llvm_unreachable("an element type without a name");
}

int64_t flash::runtime::getBytes(TensorMapElement element) {
  switch (element) {
  case TensorMapElement::I8:
    return 1;
  case TensorMapElement::F16:
  case TensorMapElement::BF16:
    return 2;
  case TensorMapElement::I32:
  case TensorMapElement::F32:
    return 4;
  case TensorMapElement::I64:
  case TensorMapElement::F64:
    return 8;
  }
  llvm_unreachable("an element type without a size");
}

/// Which rule the box and its layout in shared memory break.
static std::string findBrokenBoxRule(const TensorMapOptions &options) {
  for (auto [d, size] : llvm::enumerate(options.box))
    if (size < 1 || size > maxTensorMapBox)
      return formatv("the box has a size of {0} in dimension {1}; 1 to {2} are "
                     "possible",
                     size, d, maxTensorMapBox);
  if (!llvm::is_contained({0, 32, 64, 128}, options.swizzleBytes))
    return formatv("there is no swizzle of {0} bytes; 0, 32, 64 and 128 are "
                   "possible",
                   options.swizzleBytes);
  if (!llvm::is_contained({0, 64, 128, 256}, options.l2PromotionBytes))
    return formatv("there is no L2 promotion of {0} bytes; 0, 64, 128 and 256 "
                   "are possible",
                   options.l2PromotionBytes);
  int64_t row = options.box.back() * getBytes(options.element);
  if (row % tensorMapAlignment != 0)
    return formatv("a row of the box has {0} bytes; it must be a multiple of "
                   "{1}",
                   row, tensorMapAlignment);
  if (options.swizzleBytes && row > options.swizzleBytes)
    return formatv("a row of the box has {0} bytes, more than the swizzle's "
                   "{1}",
                   row, options.swizzleBytes);
  return "";
}

std::string flash::runtime::findBrokenRule(const TensorMapOptions &options) {
  size_t rank = options.sizes.size();
  if (rank < 1 || rank > maxTensorMapRank)
    return formatv("it has {0} dimensions; 1 to {1} are possible", rank,
                   maxTensorMapRank);
  if (options.byteStrides.size() != rank - 1 || options.box.size() != rank)
    return formatv("{0} sizes need {1} strides and {0} sizes of the box", rank,
                   rank - 1);
  if (options.address % tensorMapAlignment != 0)
    return formatv("its address {0:x} is no multiple of {1}", options.address,
                   tensorMapAlignment);
  for (auto [d, size] : llvm::enumerate(options.sizes))
    if (size < 1 || size > maxTensorMapSize)
      return formatv("the size of dimension {0} is {1}; 1 to 2^32 are possible",
                     d, size);
  for (auto [d, stride] : llvm::enumerate(options.byteStrides))
    if (stride < 0 || stride % tensorMapAlignment != 0 ||
        stride >= tensorMapStrideLimit)
      return formatv("the stride of dimension {0} is {1} bytes; it must be a "
                     "multiple of {2} below 2^40",
                     d, stride, tensorMapAlignment);
  return findBrokenBoxRule(options);
}
