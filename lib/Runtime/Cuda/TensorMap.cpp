//===- TensorMap.cpp - How TMA copies read a tensor -----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/Cuda/TensorMap.h"

#include "Context.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using namespace flash::cuda;
using llvm::formatv;

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) &&
              alignof(TensorMap) == alignof(CUtensorMap));

static int64_t getBytes(TensorMapElement element) {
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

static std::optional<CUtensorMapSwizzle> getSwizzle(int bytes) {
  switch (bytes) {
  case 0:
    return CU_TENSOR_MAP_SWIZZLE_NONE;
  case 32:
    return CU_TENSOR_MAP_SWIZZLE_32B;
  case 64:
    return CU_TENSOR_MAP_SWIZZLE_64B;
  case 128:
    return CU_TENSOR_MAP_SWIZZLE_128B;
  default:
    return std::nullopt;
  }
}

/// The limits of cuTensorMapEncodeTiled, which itself does not say which one is
/// broken. Empty if all are kept.
static std::string findBrokenLimit(const TensorMapOptions &options) {
  size_t rank = options.sizes.size();
  if (rank < 1 || rank > 5)
    return formatv("it has {0} dimensions; 1 to 5 are possible", rank);
  if (options.byteStrides.size() != rank - 1 || options.box.size() != rank)
    return formatv("{0} sizes need {1} strides and {0} sizes of the box", rank,
                   rank - 1);
  if (options.address % 16 != 0)
    return formatv("its address {0:x} is no multiple of 16", options.address);
  for (int64_t size : options.sizes)
    if (size < 1 || size > int64_t(1) << 32)
      return formatv("a size is {0}; 1 to 2^32 are possible", size);
  for (int64_t stride : options.byteStrides)
    if (stride < 0 || stride % 16 != 0 || stride >= int64_t(1) << 40)
      return formatv("a stride is {0} bytes; it must be a multiple of 16 below "
                     "2^40",
                     stride);
  for (int64_t size : options.box)
    if (size < 1 || size > 256)
      return formatv("the box has a size of {0}; 1 to 256 are possible", size);
  if (!getSwizzle(options.swizzleBytes))
    return formatv("there is no swizzle of {0} bytes; 0, 32, 64 and 128 are "
                   "possible",
                   options.swizzleBytes);
  int64_t row = options.box.back() * getBytes(options.element);
  if (row % 16 != 0)
    return formatv("a row of the box has {0} bytes; it must be a multiple of "
                   "16",
                   row);
  if (options.swizzleBytes && row > options.swizzleBytes)
    return formatv("a row of the box has {0} bytes, more than the swizzle's "
                   "{1}",
                   row, options.swizzleBytes);
  return "";
}

llvm::Expected<TensorMap>
flash::cuda::encodeTensorMap(const Device &device, llvm::StringRef name,
                             const TensorMapOptions &options) {
  Context &context = *device.getContext();
  const DeviceInfo &info = device.getInfo();
  std::string doing = formatv("cannot make the tensor map '{0}'", name);
  if (info.major < 9)
    return fail(ErrorKind::InvalidRequest,
                formatv("{0}: {1} ({2}) has none; sm_90 and later do", doing,
                        info.name, info.getArchitecture()));
  if (std::string broken = findBrokenLimit(options); !broken.empty())
    return fail(ErrorKind::InvalidRequest, doing + ": " + broken);
  const auto &encode = context.getApi().cuTensorMapEncodeTiled;
  if (!encode.function)
    return fail(ErrorKind::DriverTooOld,
                formatv("{0}: the driver (CUDA {1}) is too old; update it to "
                        "12.0 or later",
                        doing, context.getDriver().getVersionString()));
  if (llvm::Error error = context.enter())
    return error;

  // The driver wants the innermost dimension first.
  auto sizes = llvm::to_vector_of<uint64_t>(llvm::reverse(options.sizes));
  auto strides =
      llvm::to_vector_of<uint64_t>(llvm::reverse(options.byteStrides));
  auto box = llvm::to_vector_of<uint32_t>(llvm::reverse(options.box));
  llvm::SmallVector<uint32_t, 5> steps(sizes.size(), 1);
  CUtensorMap encoded;
  if (llvm::Error error = context.call(
          doing, encode, &encoded, CUtensorMapDataType(int(options.element)),
          uint32_t(sizes.size()), reinterpret_cast<void *>(options.address),
          sizes.data(), strides.data(), box.data(), steps.data(),
          CU_TENSOR_MAP_INTERLEAVE_NONE, *getSwizzle(options.swizzleBytes),
          CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
    return error;
  TensorMap map;
  std::memcpy(&map, &encoded, sizeof(map));
  return map;
}
