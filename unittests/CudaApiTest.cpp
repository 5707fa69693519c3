//===- CudaApiTest.cpp - Our CUDA declarations against cuda.h -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The comparison happens at compile time. Without a CUDA toolkit of version
// 12.4 or later there is nothing to compare with.
//
//===----------------------------------------------------------------------===//

#include "../lib/Runtime/Cuda/DriverApi.h"

#include <cstddef>
#include <cstdio>
#include <type_traits>

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

#if !defined(CUDA_VERSION) || CUDA_VERSION < 12040
int main() { std::puts("no cuda.h of CUDA 12.4 or later: nothing compared"); }
#else

namespace ours = flash::cuda;

// The types differ in name only, so what can be compared is how a value is
// passed: its size, and whether it is a pointer.
template <typename A, typename B>
constexpr bool passedAlike =
    sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;

template <typename... A, typename... B>
constexpr bool matches(const ours::Entry<A...> &, CUresult (*)(B...)) {
  if constexpr (sizeof...(A) == sizeof...(B))
    return (passedAlike<A, B> && ...);
  return false;
}

// CUDA 13 makes the name a macro for a second version, which need not report
// errors of pending work. Older drivers have the first one only.
#undef cuEventElapsedTime
extern "C" CUresult cuEventElapsedTime(float *, CUevent, CUevent);

static constexpr ours::DriverApi api;
#define FLASH_CUDA_ENTRY(name, ...)                                            \
  static_assert(matches(api.name, &::name), #name);
#define FLASH_CUDA_OPTIONAL_ENTRY(name, ...) FLASH_CUDA_ENTRY(name, __VA_ARGS__)
#include "../lib/Runtime/Cuda/DriverApi.def"

#define SAME(name) static_assert(int(ours::name) == int(::name), #name)
SAME(CUDA_SUCCESS);
SAME(CUDA_ERROR_INVALID_VALUE);
SAME(CUDA_ERROR_OUT_OF_MEMORY);
SAME(CUDA_ERROR_STUB_LIBRARY);
SAME(CUDA_ERROR_DEVICE_UNAVAILABLE);
SAME(CUDA_ERROR_NO_DEVICE);
SAME(CUDA_ERROR_INVALID_IMAGE);
SAME(CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(CUDA_ERROR_ECC_UNCORRECTABLE);
SAME(CUDA_ERROR_INVALID_PTX);
SAME(CUDA_ERROR_NVLINK_UNCORRECTABLE);
SAME(CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
SAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(CUDA_ERROR_JIT_COMPILATION_DISABLED);
SAME(CUDA_ERROR_CONTAINED);
SAME(CUDA_ERROR_NOT_FOUND);
SAME(CUDA_ERROR_NOT_READY);
SAME(CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
SAME(CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(CUDA_ERROR_ASSERT);
SAME(CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME(CUDA_ERROR_ILLEGAL_INSTRUCTION);
SAME(CUDA_ERROR_MISALIGNED_ADDRESS);
SAME(CUDA_ERROR_INVALID_ADDRESS_SPACE);
SAME(CUDA_ERROR_INVALID_PC);
SAME(CUDA_ERROR_LAUNCH_FAILED);
SAME(CUDA_ERROR_SYSTEM_NOT_READY);
SAME(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SAME(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
SAME(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
SAME(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
SAME(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
SAME(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
SAME(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
SAME(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
SAME(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SAME(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
SAME(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
SAME(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
SAME(CU_MEM_LOCATION_TYPE_DEVICE);
SAME(CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(CU_FUNC_ATTRIBUTE_PTX_VERSION);
SAME(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
SAME(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CU_JIT_INFO_LOG_BUFFER);
SAME(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
SAME(CU_JIT_ERROR_LOG_BUFFER);
SAME(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(CU_JIT_LOG_VERBOSE);
SAME(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME(CU_TENSOR_MAP_DATA_TYPE_UINT8);
SAME(CU_TENSOR_MAP_DATA_TYPE_INT32);
SAME(CU_TENSOR_MAP_DATA_TYPE_INT64);
SAME(CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
SAME(CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
SAME(CU_TENSOR_MAP_DATA_TYPE_FLOAT64);
SAME(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
SAME(CU_TENSOR_MAP_SWIZZLE_NONE);
SAME(CU_TENSOR_MAP_SWIZZLE_32B);
SAME(CU_TENSOR_MAP_SWIZZLE_64B);
SAME(CU_TENSOR_MAP_SWIZZLE_128B);
SAME(CU_TENSOR_MAP_INTERLEAVE_NONE);
SAME(CU_TENSOR_MAP_L2_PROMOTION_NONE);
SAME(CU_TENSOR_MAP_L2_PROMOTION_L2_64B);
SAME(CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
SAME(CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
SAME(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
#undef SAME
static_assert(sizeof(ours::CUtensorMap) == sizeof(::CUtensorMap));
static_assert(alignof(ours::CUtensorMap) >= alignof(::CUtensorMap));
static_assert(sizeof(ours::CUmemAllocationProp) ==
              sizeof(::CUmemAllocationProp));
static_assert(offsetof(ours::CUmemAllocationProp, location) ==
              offsetof(::CUmemAllocationProp, location));
static_assert(sizeof(ours::CUmemLocation) == sizeof(::CUmemLocation));
static_assert(offsetof(ours::CUmemLocation, id) ==
              offsetof(::CUmemLocation, id));
static_assert(sizeof(ours::CUmemAccessDesc) == sizeof(::CUmemAccessDesc));
static_assert(offsetof(ours::CUmemAccessDesc, flags) ==
              offsetof(::CUmemAccessDesc, flags));
static_assert(sizeof(ours::CUlaunchAttribute) == sizeof(::CUlaunchAttribute));
static_assert(offsetof(ours::CUlaunchAttribute, value) ==
              offsetof(::CUlaunchAttribute, value));
static_assert(sizeof(ours::CUlaunchConfig) == sizeof(::CUlaunchConfig));
static_assert(offsetof(ours::CUlaunchConfig, hStream) ==
              offsetof(::CUlaunchConfig, hStream));
static_assert(offsetof(ours::CUlaunchConfig, attrs) ==
              offsetof(::CUlaunchConfig, attrs));
static_assert(ours::launchParameterEnd == CU_LAUNCH_PARAM_END_AS_INT);
static_assert(ours::launchParameterBuffer ==
              CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT);
static_assert(ours::launchParameterSize == CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT);

int main() { std::puts("compared with cuda.h"); }
#endif
