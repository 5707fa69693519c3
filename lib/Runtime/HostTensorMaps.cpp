//===- HostTensorMaps.cpp - Tensor maps of a call -------------------------===//
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

namespace {
/// The values of a recipe in a call, as the hardware takes them.
struct TensorMapShape {
  /// `shape` has the sizes, then the strides.
  TensorMapShape(const HostProgram::TensorMapRecipe &recipe,
                 const int64_t *shape);
  TensorMapOptions getOptions(uint64_t address) const;

  const HostProgram::TensorMapRecipe &recipe;
  llvm::SmallVector<int64_t, maxTensorMapRank> sizes, byteStrides;
  bool isEmpty;
};
} // namespace

/// What does not fit in 64 bits breaks the limit of strides, too.
static int64_t getByteStride(int64_t stride, int64_t elementBytes) {
  int64_t bytes;
  if (!llvm::MulOverflow(stride, elementBytes, bytes))
    return bytes;
  return stride < 0 ? INT64_MIN : INT64_MAX;
}

TensorMapShape::TensorMapShape(const HostProgram::TensorMapRecipe &recipe,
                               const int64_t *shape)
    : recipe(recipe), sizes(shape, shape + recipe.box.size()),
      isEmpty(llvm::is_contained(sizes, 0)) {
  // There are no maps of nothing. Nothing is read by this one.
  if (isEmpty)
    sizes.assign(sizes.size(), 1);
  const int64_t *strides = shape + sizes.size();
  for (size_t d = 0; d + 1 < sizes.size(); ++d)
    byteStrides.push_back(
        sizes[d] == 1 ? tensorMapAlignment
                      : getByteStride(strides[d], getBytes(recipe.element)));
}

TensorMapOptions TensorMapShape::getOptions(uint64_t address) const {
  TensorMapOptions options;
  options.element = recipe.element;
  options.address = address;
  options.sizes = sizes;
  options.byteStrides = byteStrides;
  options.box = recipe.box;
  options.swizzleBytes = recipe.swizzleBytes;
  options.l2PromotionBytes = recipe.l2PromotionBytes;
  return options;
}

/// Errors of a map name the kernel's operand; nothing is formatted without one.
static auto getOwner(const HostProgram::Launch &launch,
                     const HostProgram::Field &field) {
  return formatv("@{0}, {1}", llvm::StringRef(launch.kernel),
                 llvm::StringRef(field.owner));
}

static Error checkRules(const HostProgram::Launch &launch,
                        const HostProgram::Field &field,
                        const TensorMapOptions &options) {
  std::string broken = findBrokenRule(options);
  if (broken.empty())
    return Error::success();
  return createStringError(formatv("{0} cannot have a tensor map: {1}",
                                   getOwner(launch, field), broken));
}

Error flash::runtime::checkTensorMap(const HostProgram::Launch &launch,
                                     const HostProgram::Field &field,
                                     const int64_t *shape) {
  TensorMapShape map(launch.tensorMaps[field.tensorMap], shape);
  size_t rank = map.sizes.size();
  // Maps have no such stride.
  if (int64_t stride = shape[2 * rank - 1]; map.sizes.back() > 1 && stride != 1)
    return createStringError(formatv(
        "{0} cannot have a tensor map: the stride of dimension {1} is {2}, "
        "expected 1: the innermost dimension must be contiguous",
        getOwner(launch, field), rank - 1, stride));
  return checkRules(launch, field, map.getOptions(/*address=*/0));
}

llvm::Expected<TensorMap> flash::runtime::encodeTensorMap(
    const HostProgram::Launch &launch, const HostProgram::Field &field,
    uint64_t address, const int64_t *shape, TensorMapEncoder encode) {
  TensorMapShape map(launch.tensorMaps[field.tensorMap], shape);
  // Tensors without elements may be anywhere, also at null.
  TensorMapOptions options =
      map.getOptions(map.isEmpty ? tensorMapAlignment : address);
  if (Error error = checkRules(launch, field, options))
    return std::move(error);
  return encode(getOwner(launch, field), options);
}
