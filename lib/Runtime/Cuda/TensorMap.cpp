//===- TensorMap.cpp - Encoding of tensor maps ----------------------------===//
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

namespace runtime = flash::runtime;
using namespace flash::cuda;
using llvm::formatv;

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) &&
              alignof(TensorMap) == alignof(CUtensorMap));

static CUtensorMapSwizzle getSwizzle(int bytes) {
  switch (bytes) {
  case 0:
    return CU_TENSOR_MAP_SWIZZLE_NONE;
  case 32:
    return CU_TENSOR_MAP_SWIZZLE_32B;
  case 64:
    return CU_TENSOR_MAP_SWIZZLE_64B;
  case 128:
    return CU_TENSOR_MAP_SWIZZLE_128B;
  }
  llvm_unreachable("findBrokenRule lets no other swizzle pass");
}

static CUtensorMapL2promotion getL2Promotion(int bytes) {
  switch (bytes) {
  case 0:
    return CU_TENSOR_MAP_L2_PROMOTION_NONE;
  case 64:
    return CU_TENSOR_MAP_L2_PROMOTION_L2_64B;
  case 128:
    return CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
  case 256:
    return CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  }
  llvm_unreachable("findBrokenRule lets no other promotion pass");
}

llvm::Expected<TensorMap>
flash::cuda::encodeTensorMap(const Device &device, const llvm::Twine &name,
                             const TensorMapOptions &options) {
  Context &context = *device.getContext();
  const DeviceInfo &info = device.getInfo();
  auto doing = [&] {
    return ("cannot make the tensor map '" + name + "'").str();
  };
  if (info.major < 9)
    return fail(ErrorKind::InvalidRequest,
                formatv("{0}: {1} ({2}) has none; sm_90 and later do", doing(),
                        info.name, info.getArchitecture()));
  if (std::string broken = runtime::findBrokenRule(options); !broken.empty())
    return fail(ErrorKind::InvalidRequest, doing() + ": " + broken);
  const auto &encode = context.getApi().cuTensorMapEncodeTiled;
  if (!encode.function)
    return fail(ErrorKind::DriverTooOld,
                formatv("{0}: the driver (CUDA {1}) is too old; update it to "
                        "12.0 or later",
                        doing(), context.getDriver().getVersionString()));
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
          "cannot make the tensor map '" + name + "'", encode, &encoded,
          CUtensorMapDataType(int(options.element)), uint32_t(sizes.size()),
          reinterpret_cast<void *>(options.address), sizes.data(),
          strides.data(), box.data(), steps.data(),
          CU_TENSOR_MAP_INTERLEAVE_NONE, getSwizzle(options.swizzleBytes),
          getL2Promotion(options.l2PromotionBytes),
          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
    return error;
  TensorMap map;
  std::memcpy(&map, &encoded, sizeof(map));
  return map;
}
