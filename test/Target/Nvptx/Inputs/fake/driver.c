/* A driver that prints what it is asked for. The environment makes it fail:
 * FAKE_FAIL is the name of a function. The image of kernels that take pointers
 * to their parameters says how many bytes each has: "f:4:128/g:8". */
#define _POSIX_C_SOURCE 200112L
#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUfunc_st {
  const char *name;
  int sharedBytes;
};

static struct CUfunc_st functions[16];
static int numFunctions;
static char *image;

static int fails(const char *name) {
  const char *failing = getenv("FAKE_FAIL");
  return failing && !strcmp(failing, name);
}

CUresult cuDriverGetVersion(int *version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuInit(unsigned flags) {
  (void)flags;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  (void)device;
  *context = NULL;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  (void)context;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  (void)error;
  *text = "some error";
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  void *memory;
  if (posix_memalign(&memory, 256, bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  *address = (CUdeviceptr)(size_t)memory;
  return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address) {
  free((void *)(size_t)address);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD(CUdeviceptr target, const void *source, size_t bytes) {
  memcpy((void *)(size_t)target, source, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH(void *target, CUdeviceptr source, size_t bytes) {
  memcpy(target, (const void *)(size_t)source, bytes);
  return CUDA_SUCCESS;
}

CUresult cuModuleLoad(CUmodule *module, const char *name) {
  *module = NULL;
  printf("load file %s\n", name);
  return fails("cuModuleLoad") ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *data) {
  *module = NULL;
  /* The caller's may end with the call. */
  free(image);
  image = (char *)malloc(strlen((const char *)data) + 1);
  strcpy(image, (const char *)data);
  printf("load \"%s\"\n", image);
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  (void)module;
  printf("unload\n");
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                             const char *name) {
  (void)module;
  if (fails("cuModuleGetFunction") || numFunctions == 16)
    return CUDA_ERROR_NOT_FOUND;
  *function = &functions[numFunctions++];
  (*function)->name = name;
  (*function)->sharedBytes = 48 * 1024;
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                            int value) {
  if (fails("cuFuncSetAttribute") ||
      attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return CUDA_ERROR_INVALID_VALUE;
  function->sharedBytes = value;
  return CUDA_SUCCESS;
}

static void printBytes(const void *bytes, size_t size) {
  size_t i;
  printf(" ");
  for (i = 0; i != size; ++i)
    printf("%02x", ((const unsigned char *)bytes)[i]);
}

CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY,
                        unsigned gridZ, unsigned blockX, unsigned blockY,
                        unsigned blockZ, unsigned sharedBytes, CUstream stream,
                        void **parameters, void **extra) {
  (void)stream;
  if (fails("cuLaunchKernel") || !parameters == !extra ||
      sharedBytes > (unsigned)function->sharedBytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (extra && (extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER ||
                extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE ||
                extra[4] != CU_LAUNCH_PARAM_END))
    return CUDA_ERROR_INVALID_VALUE;
  printf("launch %s %u %u %u %u %u %u %u", function->name, gridX, gridY, gridZ,
         blockX, blockY, blockZ, sharedBytes);
  if (extra) {
    printBytes(extra[1], *(const size_t *)extra[3]);
  } else {
    const char *sizes = strstr(image, function->name) + strlen(function->name);
    while (*sizes == ':')
      printBytes(*parameters++, strtoul(sizes + 1, (char **)&sizes, 10));
  }
  printf("\n");
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                          void **parameters, void **extra) {
  if (config->numAttrs != 1 ||
      config->attrs->id !=
          CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION ||
      !config->attrs->value.programmaticStreamSerializationAllowed)
    return CUDA_ERROR_INVALID_VALUE;
  printf("dependent ");
  return cuLaunchKernel(function, config->gridDimX, config->gridDimY,
                        config->gridDimZ, config->blockDimX, config->blockDimY,
                        config->blockDimZ, config->sharedMemBytes,
                        config->hStream, parameters, extra);
}

/* All that it is given, as far as there is room: type, swizzle and promotion in
 * one word, then address, sizes, strides and box. */
CUresult cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
    const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
    const cuuint32_t *steps, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
    CUtensorMapFloatOOBfill fill) {
  cuuint32_t d, n = 0;
  if (fails("cuTensorMapEncodeTiled") || (uintptr_t)map % 64 != 0 ||
      rank < 1 || rank > 5 || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
      fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
    return CUDA_ERROR_INVALID_VALUE;
  memset(map, 0, sizeof *map);
  map->opaque[n++] = (cuuint64_t)type | (cuuint64_t)swizzle << 8 |
                     (cuuint64_t)promotion << 16;
  map->opaque[n++] = (uintptr_t)address;
  for (d = 0; d < rank; ++d) {
    if (steps[d] != 1)
      return CUDA_ERROR_INVALID_VALUE;
    map->opaque[n++] = sizes[d];
  }
  for (d = 0; d + 1 < rank; ++d)
    map->opaque[n++] = strides[d];
  for (d = 0; d < rank; ++d)
    map->opaque[n++] = box[d];
  return CUDA_SUCCESS;
}
