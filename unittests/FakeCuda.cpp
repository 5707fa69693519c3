//===- FakeCuda.cpp - A CUDA driver without a GPU, for tests --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the functions of lib/Runtime/Cuda/DriverApi.def over host memory,
// and what programs with a C header need beside them: one stream at a time may
// capture kernels, and nothing else, into a graph.
// Built as a library that tests load in place of libcuda.so.1. Kernels are
// known by name: `fill(pointer, count, byte)` writes, any other does nothing,
// unless another process runs them, such as test/Fuzz/ptx.py: FAKE_KERNELS in
// the environment has the numbers of two files, `requests,answers`. A request
// is a line with the sizes of the grid, of blocks and of shared memory, of the
// bytes of PTX and parameters, the name and, for each allocation, address and
// bytes; then follow PTX, parameters and all memory. The answer is all memory.
//
// With FAKE_LAUNCHES in the environment, a file of that name has a line for
// each kernel of PTX: the sizes of the grid, of blocks and of shared memory,
// the name, a hash of the PTX, and in hexadecimal digits each parameter, or the
// buffer of all.
//
// After fakeSetGate(1) the next load of a module waits, which fakeGetGate() ==
// 2 says, until fakeSetGate(0), or fails after 20 seconds.
//
// FAKE_OLD_DRIVER leaves out a function that the runtime needs, and
// FAKE_BEFORE_12 those that it can do without.
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include "../lib/Runtime/Cuda/DriverApi.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <thread>

using namespace flash::cuda;

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace flash::cuda {
struct CUctx_st {};
struct CUmod_st {
  std::string image;
};
struct CUfunc_st {
  std::string name, image;
  int staticShared, dynamicShared;
};
/// A launch of a kernel with a buffer of parameters.
struct CapturedLaunch {
  CUfunction function;
  std::vector<unsigned> sizes;
  std::vector<char> parameters;
};
struct CUgraph_st {
  std::vector<CapturedLaunch> launches;
};
struct CUgraphExec_st : CUgraph_st {};
struct CUstream_st {
  CUgraph_st captured;
};
struct CUevent_st {
  float time;
  bool hung;
  int polls;
};
} // namespace flash::cuda

static constexpr CUresult invalidContext = CUresult(201);
static constexpr CUresult notSupported = CUresult(801);
static constexpr CUresult captureUnsupported = CUresult(900);

static FakeCuda fake = makeFakeCuda();
static CUctx_st theContext;
static thread_local CUcontext current = nullptr;
static CUstream capturing = nullptr;

EXPORT FakeCuda *fakeCuda() { return &fake; }

//===----------------------------------------------------------------------===//
// What precedes each call
//===----------------------------------------------------------------------===//

/// Counts a call and says how it shall fail.
static CUresult enter(const char *call) {
  ++fake.calls[call];
  auto failure = fake.failures.find(call);
  return failure == fake.failures.end() ? CUDA_SUCCESS
                                        : CUresult(failure->second);
}

/// The same for calls that need a context.
static CUresult enterContext(const char *call) {
  CUresult result = enter(call);
  if (result != CUDA_SUCCESS)
    return result;
  if (!current)
    return invalidContext;
  return CUresult(fake.faulted);
}

/// The same for calls that wait for kernels, or may do so.
static CUresult enterBlocking(const char *call) {
  if (capturing)
    return captureUnsupported;
  if (fake.hanging)
    fake.blocked.push_back(call);
  return enterContext(call);
}

#define RETURN_IF_FAILED(entered)                                              \
  if (CUresult result = entered; result != CUDA_SUCCESS)                       \
  return result

/// Whether the bytes lie in one allocation.
static bool isAllocated(CUdeviceptr address, size_t count) {
  auto next = fake.allocations.upper_bound(address);
  if (next == fake.allocations.begin())
    return false;
  auto [base, size] = *std::prev(next);
  return address - base <= size && count <= size - (address - base);
}

//===----------------------------------------------------------------------===//
// Driver and device
//===----------------------------------------------------------------------===//

EXPORT CUresult cuInit(unsigned) { return enter("cuInit"); }

EXPORT CUresult cuDriverGetVersion(int *version) {
  *version = fake.version;
  return enter("cuDriverGetVersion");
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **name) {
  static const std::map<int, const char *> names = {
      {2, "CUDA_ERROR_OUT_OF_MEMORY"},
      {100, "CUDA_ERROR_NO_DEVICE"},
      {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {999, "CUDA_ERROR_UNKNOWN"}};
  auto found = names.find(error);
  *name = found == names.end() ? nullptr : found->second;
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "some text";
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count) {
  *count = fake.deviceCount;
  return enter("cuDeviceGetCount");
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return enter("cuDeviceGet");
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice) {
  std::strncpy(name, fake.name, length);
  return enter("cuDeviceGetName");
}

EXPORT CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice) {
  std::strncpy(id, "0000:18:00.0", length);
  return enter("cuDeviceGetPCIBusId");
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                                     CUdevice) {
  static const std::map<int, int> values = {
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1 << 16},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
      {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024}};
  RETURN_IF_FAILED(enter("cuDeviceGetAttribute"));
  if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
    *value = fake.major;
    return CUDA_SUCCESS;
  }
  if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) {
    *value = fake.minor;
    return CUDA_SUCCESS;
  }
  if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) {
    *value = fake.multiprocessors;
    return CUDA_SUCCESS;
  }
  if (attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) {
    *value = fake.sharedBytes;
    return CUDA_SUCCESS;
  }
  if (attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) {
    *value = fake.mapsMemory;
    return CUDA_SUCCESS;
  }
  auto found = values.find(attribute);
  if (found == values.end())
    return CUDA_ERROR_INVALID_VALUE; // The clock rate is one that is missing.
  *value = found->second;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice) {
  *bytes = fake.totalBytes;
  return enter("cuDeviceTotalMem_v2");
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  RETURN_IF_FAILED(enter("cuDevicePrimaryCtxRetain"));
  *context = &theContext;
  ++fake.contexts;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  if (fake.hanging)
    fake.blocked.push_back("cuDevicePrimaryCtxRelease_v2");
  --fake.contexts;
  return enter("cuDevicePrimaryCtxRelease_v2");
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  RETURN_IF_FAILED(enter("cuCtxSetCurrent"));
  current = context;
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static size_t getFreeBytes() {
  size_t free = fake.totalBytes;
  for (auto [address, size] : fake.allocations)
    free -= size;
  return free;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  RETURN_IF_FAILED(enterBlocking("cuMemGetInfo_v2"));
  *free = getFreeBytes();
  *total = fake.totalBytes;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
  RETURN_IF_FAILED(enterBlocking("cuMemAlloc_v2"));
  if (size == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (size > getFreeBytes())
    return CUDA_ERROR_OUT_OF_MEMORY;
  void *memory = std::aligned_alloc(256, (size + 255) / 256 * 256);
  std::memset(memory, 0xFF, size); // NaN, as what others have left may be.
  *address = reinterpret_cast<CUdeviceptr>(memory);
  fake.allocations[*address] = size;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  RETURN_IF_FAILED(enterBlocking("cuMemFree_v2"));
  if (fake.allocations.erase(address) == 0)
    return CUDA_ERROR_INVALID_VALUE;
  std::free(reinterpret_cast<void *>(address));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void *source,
                                size_t count) {
  RETURN_IF_FAILED(enterBlocking("cuMemcpyHtoD_v2"));
  if (!isAllocated(target, count))
    return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(reinterpret_cast<void *>(target), source, count);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyDtoH_v2(void *target, CUdeviceptr source,
                                size_t count) {
  RETURN_IF_FAILED(enterBlocking("cuMemcpyDtoH_v2"));
  if (!isAllocated(source, count))
    return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(target, reinterpret_cast<void *>(source), count);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void *source,
                                     size_t count, CUstream stream) {
  return capturing && capturing == stream
             ? notSupported
             : cuMemcpyHtoD_v2(target, source, count);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *target, CUdeviceptr source,
                                     size_t count, CUstream stream) {
  return capturing && capturing == stream
             ? notSupported
             : cuMemcpyDtoH_v2(target, source, count);
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char byte,
                                size_t count, CUstream) {
  RETURN_IF_FAILED(enterContext("cuMemsetD8Async"));
  if (!isAllocated(target, count))
    return CUDA_ERROR_INVALID_VALUE;
  std::memset(reinterpret_cast<void *>(target), byte, count);
  fake.clock += 0.25f;
  return CUDA_SUCCESS;
}

#ifndef FAKE_BEFORE_12
static bool isGranular(uint64_t size) {
  return size && size % fake.granularity == 0;
}

EXPORT CUresult
cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *,
                              CUmemAllocationGranularity_flags) {
  *granularity = fake.granularity;
  return enterContext("cuMemGetAllocationGranularity");
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *address, size_t size,
                                    size_t alignment, CUdeviceptr, uint64_t) {
  RETURN_IF_FAILED(enterContext("cuMemAddressReserve"));
  if (!isGranular(size) || alignment != fake.granularity)
    return CUDA_ERROR_INVALID_VALUE;
  // Some for the alignment, which stays reserved.
  void *memory = mmap(nullptr, size + alignment, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *address = (reinterpret_cast<CUdeviceptr>(memory) + alignment - 1) /
             alignment * alignment;
  fake.reservations[*address] = size;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
  RETURN_IF_FAILED(enterContext("cuMemAddressFree"));
  auto found = fake.reservations.find(address);
  auto mapped = fake.allocations.lower_bound(address);
  if (found == fake.reservations.end() || found->second != size ||
      (mapped != fake.allocations.end() && mapped->first < address + size))
    return CUDA_ERROR_INVALID_VALUE;
  fake.reservations.erase(found);
  munmap(reinterpret_cast<void *>(address), size);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                            const CUmemAllocationProp *memory, uint64_t) {
  RETURN_IF_FAILED(enterBlocking("cuMemCreate"));
  if (!isGranular(size) || memory->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      memory->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      memory->location.id >= fake.deviceCount)
    return CUDA_ERROR_INVALID_VALUE;
  if (size > getFreeBytes())
    return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = fake.calls["cuMemCreate"];
  fake.handles[*handle] = size;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  RETURN_IF_FAILED(enterContext("cuMemRelease"));
  return fake.handles.erase(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                         CUmemGenericAllocationHandle handle, uint64_t) {
  RETURN_IF_FAILED(enterContext("cuMemMap"));
  auto next = fake.reservations.upper_bound(address);
  if (next == fake.reservations.begin() || address % fake.granularity ||
      offset || !fake.handles.count(handle) || fake.handles[handle] != size)
    return CUDA_ERROR_INVALID_VALUE;
  auto [start, reserved] = *std::prev(next);
  if (address + size > start + reserved)
    return CUDA_ERROR_INVALID_VALUE;
  fake.allocations[address] = size;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr address, size_t size,
                               const CUmemAccessDesc *access, size_t count) {
  RETURN_IF_FAILED(enterContext("cuMemSetAccess"));
  if (!isAllocated(address, size) || count != 1 ||
      access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
    return CUDA_ERROR_INVALID_VALUE;
  mprotect(reinterpret_cast<void *>(address), size, PROT_READ | PROT_WRITE);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  RETURN_IF_FAILED(enterBlocking("cuMemUnmap"));
  auto found = fake.allocations.find(address);
  if (found == fake.allocations.end() || found->second != size)
    return CUDA_ERROR_INVALID_VALUE;
  fake.allocations.erase(found);
  mprotect(reinterpret_cast<void *>(address), size, PROT_NONE);
  return CUDA_SUCCESS;
}
#endif

//===----------------------------------------------------------------------===//
// Modules and kernels
//===----------------------------------------------------------------------===//

static std::atomic<int> gate{0};

EXPORT int fakeGetGate() { return gate; }

EXPORT void fakeSetGate(int value) { gate = value; }

/// Whether the gate is open, or another thread opens it.
static bool passGate() {
  int closed = 1;
  if (!gate.compare_exchange_strong(closed, 2))
    return true;
  for (int i = 0; i < 2000 && gate == 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return gate != 2;
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
                                   unsigned count, CUjit_option *options,
                                   void **values) {
  auto write = [&](CUjit_option buffer, CUjit_option size,
                   const std::string &text) {
    auto find = [&](CUjit_option option) {
      return values[std::find(options, options + count, option) - options];
    };
    std::strncpy(static_cast<char *>(find(buffer)), text.c_str(),
                 reinterpret_cast<uintptr_t>(find(size)));
  };
  CUresult result = passGate() ? enterBlocking("cuModuleLoadDataEx")
                               : CUDA_ERROR_LAUNCH_TIMEOUT;
  if (result != CUDA_SUCCESS) {
    write(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
          fake.errorLog);
    return result;
  }
  write(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        "ptxas info    : Used 168 registers\n");
  *module = new CUmod_st{static_cast<const char *>(image)};
  ++fake.modules;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  RETURN_IF_FAILED(enterBlocking("cuModuleLoadData"));
  *module = new CUmod_st{static_cast<const char *>(image)};
  ++fake.modules;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule module) {
  RETURN_IF_FAILED(enterBlocking("cuModuleUnload"));
  delete module;
  --fake.modules;
  return CUDA_SUCCESS;
}

/// The bytes of shared memory that PTX declares beside the dynamic one, which
/// is
/// `.extern` and has no size.
static int readStaticShared(const std::string &ptx) {
  int bytes = 0;
  size_t at = 0;
  while ((at = ptx.find("\n.shared ", at)) != std::string::npos) {
    size_t end = ptx.find(';', at), array = ptx.find('[', at);
    if (array < end)
      bytes += std::stoi(ptx.substr(array + 1));
    at = end;
  }
  return bytes;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                                    const char *name) {
  // A function of the same name in another module is another one.
  static std::map<std::pair<CUmodule, std::string>, CUfunc_st> functions;
  RETURN_IF_FAILED(enterBlocking("cuModuleGetFunction"));
  std::string entry = std::string(".entry ") + name + "(";
  if (module->image.find(entry) == std::string::npos)
    return CUDA_ERROR_NOT_FOUND;
  *function = &functions[{module, name}];
  int staticShared = readStaticShared(module->image);
  **function = {name, module->image, staticShared, 49152 - staticShared};
  return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                                   CUfunction function) {
  RETURN_IF_FAILED(enterContext("cuFuncGetAttribute"));
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = 384;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = function->staticShared;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    *value = 16;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    *value = 8;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_NUM_REGS:
    *value = 168;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    *value = 80;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
    *value = 90;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = function->dynamicShared;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuFuncSetAttribute(CUfunction function,
                                   CUfunction_attribute attribute, int value) {
  RETURN_IF_FAILED(enterContext("cuFuncSetAttribute"));
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return CUDA_ERROR_INVALID_VALUE;
  function->dynamicShared = value;
  return CUDA_SUCCESS;
}

#ifndef FAKE_BEFORE_12
EXPORT CUresult cuFuncGetParamInfo(CUfunction function, size_t index,
                                   size_t *offset, size_t *size) {
  RETURN_IF_FAILED(enterContext("cuFuncGetParamInfo"));
  if (function->name != "fill") { // Of 32 bits each, however many there are.
    *offset = 4 * index;
    *size = 4;
    return CUDA_SUCCESS;
  }
  if (index >= 3)
    return CUDA_ERROR_INVALID_VALUE;
  *offset = 8 * index;
  *size = index < 2 ? 8 : 1;
  return CUDA_SUCCESS;
}
#endif

#ifndef FAKE_BEFORE_12
EXPORT CUresult cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType type, uint32_t rank, void *address,
    const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
    const uint32_t *steps, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  RETURN_IF_FAILED(enterContext("cuTensorMapEncodeTiled"));
  // All that tests look at, in the driver's order.
  std::vector<uint64_t> words = {uint64_t(type), uint64_t(swizzle),
                                 reinterpret_cast<uint64_t>(address)};
  words.insert(words.end(), sizes, sizes + rank);
  words.insert(words.end(), strides, strides + rank - 1);
  words.insert(words.end(), box, box + rank);
  words.insert(words.end(), steps, steps + rank);
  words.resize(std::size(map->opaque));
  std::copy(words.begin(), words.end(), map->opaque);
  return CUDA_SUCCESS;
}
#endif

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                            CUfunction function,
                                                            int threads,
                                                            size_t shared) {
  RETURN_IF_FAILED(enterContext("cuOccupancyMaxActiveBlocksPerMultiprocessor"));
  // Of each block the device keeps 1024 bytes.
  size_t needed = shared + function->staticShared + 1024;
  *blocks =
      std::min<int>({2048 / threads, int(233472 / needed), fake.ctasPerSm});
  return CUDA_SUCCESS;
}

/// Grid, block and dynamic shared memory.
using LaunchSizes = std::vector<unsigned>;

/// Has another process run a kernel.
static CUresult launchElsewhere(const char *files, CUfunction function,
                                const LaunchSizes &sizes, void **extra) {
  static FILE *requests = nullptr, *answers = nullptr;
  if (!requests) {
    int to = -1, from = -1;
    if (std::sscanf(files, "%d,%d", &to, &from) != 2 ||
        !(requests = fdopen(to, "wb")) || !(answers = fdopen(from, "rb")))
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (!extra) // Pointers to parameters do not say how large these are.
    return CUDA_ERROR_INVALID_VALUE;
  size_t parameterBytes = *static_cast<size_t *>(extra[3]);
  for (unsigned size : sizes)
    std::fprintf(requests, "%u ", size);
  std::fprintf(requests, "%zu %zu %s", function->image.size(), parameterBytes,
               function->name.c_str());
  for (auto [address, size] : fake.allocations)
    std::fprintf(requests, " %llu %zu",
                 static_cast<unsigned long long>(address), size);
  std::fputc('\n', requests);
  std::fwrite(function->image.data(), 1, function->image.size(), requests);
  std::fwrite(extra[1], 1, parameterBytes, requests);
  for (auto [address, size] : fake.allocations)
    std::fwrite(reinterpret_cast<void *>(address), 1, size, requests);
  std::fflush(requests);
  for (auto [address, size] : fake.allocations)
    if (std::fread(reinterpret_cast<void *>(address), 1, size, answers) != size)
      return CUDA_ERROR_ILLEGAL_ADDRESS;
  return CUDA_SUCCESS;
}

/// The bytes of each parameter of a kernel, as PTX declares them.
static std::vector<size_t> readParameterBytes(const CUfunc_st &function) {
  const std::string &text = function.image;
  std::vector<size_t> bytes;
  size_t at = text.find(".entry " + function.name + "(");
  size_t end = text.find(')', at == std::string::npos ? text.size() : at);
  while ((at = text.find(".param ", at)) < end) {
    std::string line = text.substr(at, text.find_first_of("\n)", at) - at);
    size_t array = line.find('['), bits = line.find_first_of("0123456789");
    // A .b8 with an alignment is an array.
    bytes.push_back(array != std::string::npos
                        ? std::stoul(line.substr(array + 1))
                        : std::stoul(line.substr(bits)) / 8);
    at += line.size();
  }
  return bytes;
}

static void logLaunch(const char *path, CUfunction function,
                      const LaunchSizes &sizes, void **arguments,
                      void **extra) {
  static FILE *log = std::fopen(path, "w");
  if (!log)
    return;
  for (unsigned size : sizes)
    std::fprintf(log, "%u ", size);
  std::fprintf(log, "%s %zu", function->name.c_str(),
               std::hash<std::string>()(function->image));
  auto print = [](const void *parameter, size_t bytes) {
    std::fputc(' ', log);
    for (size_t i = 0; i < bytes; ++i)
      std::fprintf(log, "%02x", static_cast<const uint8_t *>(parameter)[i]);
  };
  if (extra)
    print(extra[1], *static_cast<size_t *>(extra[3]));
  else
    for (size_t bytes : readParameterBytes(*function))
      print(*arguments++, bytes);
  std::fputc('\n', log);
  std::fflush(log);
}

static CUresult launch(CUfunction function, const LaunchSizes &sizes,
                       CUstream stream, void **arguments, void **extra) {
  // In {buffer mark, buffer, size mark, size, end mark}.
  if (extra && (extra[0] != reinterpret_cast<void *>(1) ||
                extra[2] != reinterpret_cast<void *>(2) || extra[4]))
    return CUDA_ERROR_INVALID_VALUE;
  if (stream && stream == capturing) {
    if (!extra) // Pointers to parameters do not say how large these are.
      return notSupported;
    const char *first = static_cast<char *>(extra[1]);
    stream->captured.launches.push_back(
        {function, sizes, {first, first + *static_cast<size_t *>(extra[3])}});
    return CUDA_SUCCESS;
  }
  fake.clock += 1;
  fake.hanging |= fake.hang;
  fake.faulted = fake.fault;
  if (const char *files = std::getenv("FAKE_KERNELS"))
    return launchElsewhere(files, function, sizes, extra);
  if (const char *path = std::getenv("FAKE_LAUNCHES"))
    logLaunch(path, function, sizes, arguments, extra);
  if (function->name != "fill" || fake.hanging || fake.faulted)
    return CUDA_SUCCESS;
  void *unpacked[3];
  if (extra) {
    if (*static_cast<size_t *>(extra[3]) < 17)
      return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < 3; ++i)
      unpacked[i] = static_cast<char *>(extra[1]) + 8 * i;
    arguments = unpacked;
  }
  if (auto count = *static_cast<int64_t *>(arguments[1]))
    std::memset(*static_cast<void **>(arguments[0]),
                *static_cast<uint8_t *>(arguments[2]), count);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gridX,
                               unsigned gridY, unsigned gridZ, unsigned blockX,
                               unsigned blockY, unsigned blockZ,
                               unsigned sharedBytes, CUstream stream,
                               void **arguments, void **extra) {
  RETURN_IF_FAILED(enterContext("cuLaunchKernel"));
  return launch(function,
                {gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes},
                stream, arguments, extra);
}

#ifndef FAKE_BEFORE_12
EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config,
                                 CUfunction function, void **arguments,
                                 void **extra) {
  RETURN_IF_FAILED(enterContext("cuLaunchKernelEx"));
  LaunchSizes sizes = {config->gridDimX,      config->gridDimY,
                       config->gridDimZ,      config->blockDimX,
                       config->blockDimY,     config->blockDimZ,
                       config->sharedMemBytes};
  for (unsigned i = 0; i != config->numAttrs; ++i) {
    const CUlaunchAttribute &attribute = config->attrs[i];
    if (attribute.id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
      return CUDA_ERROR_INVALID_VALUE;
    if (attribute.value.programmaticStreamSerializationAllowed)
      fake.dependents.push_back({function->name, sizes});
  }
  return launch(function, sizes, config->hStream, arguments, extra);
}
#endif

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

#ifndef FAKE_OLD_DRIVER
EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned) {
  RETURN_IF_FAILED(enterContext("cuStreamCreate"));
  *stream = new CUstream_st;
  ++fake.streams;
  return CUDA_SUCCESS;
}
#endif

EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  RETURN_IF_FAILED(enterContext("cuStreamDestroy_v2"));
  delete stream;
  --fake.streams;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream) {
  return enterBlocking("cuStreamSynchronize");
}

EXPORT CUresult cuEventCreate(CUevent *event, unsigned) {
  RETURN_IF_FAILED(enterContext("cuEventCreate"));
  *event = new CUevent_st{0, false, 0};
  ++fake.events;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  RETURN_IF_FAILED(enterContext("cuEventDestroy_v2"));
  delete event;
  --fake.events;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream) {
  RETURN_IF_FAILED(enterContext("cuEventRecord"));
  *event = {fake.clock, fake.hanging, fake.polls};
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventQuery(CUevent event) {
  RETURN_IF_FAILED(enterContext("cuEventQuery"));
  return event->hung || event->polls-- > 0 ? CUDA_ERROR_NOT_READY
                                           : CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start,
                                   CUevent end) {
  RETURN_IF_FAILED(enterContext("cuEventElapsedTime"));
  *milliseconds = end->time - start->time;
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, int) {
  RETURN_IF_FAILED(enterContext("cuStreamBeginCapture_v2"));
  if (!stream || capturing)
    return captureUnsupported;
  capturing = stream;
  stream->captured.launches.clear();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph_st **graph) {
  RETURN_IF_FAILED(enterContext("cuStreamEndCapture"));
  if (!stream || capturing != stream)
    return CUDA_ERROR_INVALID_VALUE;
  capturing = nullptr;
  *graph = new CUgraph_st(stream->captured);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec_st **made,
                                            CUgraph_st *graph,
                                            unsigned long long) {
  RETURN_IF_FAILED(enterBlocking("cuGraphInstantiateWithFlags"));
  *made = new CUgraphExec_st{*graph};
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphLaunch(CUgraphExec_st *graph, CUstream stream) {
  RETURN_IF_FAILED(enterContext("cuGraphLaunch"));
  for (CapturedLaunch &each : graph->launches) {
    size_t size = each.parameters.size();
    void *extra[] = {reinterpret_cast<void *>(1), each.parameters.data(),
                     reinterpret_cast<void *>(2), &size, nullptr};
    RETURN_IF_FAILED(launch(each.function, each.sizes, stream, nullptr, extra));
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphDestroy(CUgraph_st *graph) {
  delete graph;
  return enterContext("cuGraphDestroy");
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec_st *graph) {
  delete graph;
  return enterContext("cuGraphExecDestroy");
}
