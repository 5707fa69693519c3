/* Runs an attention that was compiled ahead of time. Needs a C compiler, cuda.h
 * and the CUDA driver, and neither MLIR nor LLVM; see README.md. */
#include "attention.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { heads = 2, length = 300, dim = 64, elements = heads * length * dim };

static float q[elements], k[elements], v[elements], o[elements];

static void require(CUresult result, const char *what) {
  const char *text = "unknown error";
  if (result == CUDA_SUCCESS)
    return;
  cuGetErrorString(result, &text);
  fprintf(stderr, "%s: %s\n", what, text);
  exit(1);
}

/* Numbers from -1 to 1, the same on each machine. */
static void fill(float *values, unsigned seed) {
  int i;
  for (i = 0; i < elements; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
  }
}

/* One element of the result, by the definition of attention. */
static double expected(int head, int query, int column) {
  double weights[length], largest = -HUGE_VAL, sum = 0, total = 0;
  int j, d;
  for (j = 0; j <= query; ++j) {
    double score = 0;
    for (d = 0; d < dim; ++d)
      score += (double)q[(head * length + query) * dim + d] *
               (double)k[(head * length + j) * dim + d];
    weights[j] = score / sqrt((double)dim);
    if (weights[j] > largest)
      largest = weights[j];
  }
  for (j = 0; j <= query; ++j) {
    double weight = exp(weights[j] - largest);
    sum += weight;
    total += weight * (double)v[(head * length + j) * dim + column];
  }
  return total / sum;
}

/* A dense tensor of the program's shape in device memory, with a copy of
 * `values` if there are any. */
static attention_tensor place(const float *values) {
  attention_tensor tensor = {0, 4, {1, heads, length, dim}, {0}};
  int d;
  tensor.strides[3] = 1;
  for (d = 3; d > 0; --d)
    tensor.strides[d - 1] = tensor.strides[d] * tensor.sizes[d];
  require(cuMemAlloc(&tensor.address, sizeof q), "cuMemAlloc");
  if (values)
    require(cuMemcpyHtoD(tensor.address, values, sizeof q), "cuMemcpyHtoD");
  return tensor;
}

int main(void) {
  CUdevice device;
  CUcontext context;
  attention_module module;
  attention_tensor arguments[3], result, where;
  CUdeviceptr workspace = 0;
  size_t bytes = 0;
  const char *message = "";
  double worst = 0;
  int head, query, column, i;

  require(cuInit(0), "cuInit");
  require(cuDeviceGet(&device, 0), "cuDeviceGet");
  require(cuDevicePrimaryCtxRetain(&context, device), "the context");
  require(cuCtxSetCurrent(context), "cuCtxSetCurrent");

  fill(q, 1);
  fill(k, 2);
  fill(v, 3);
  arguments[0] = place(q);
  arguments[1] = place(k);
  arguments[2] = place(v);
  where = place(NULL);

  if (attention_load(&module, &message) != CUDA_SUCCESS ||
      attention_shapes(&arguments[0], &arguments[1], &arguments[2], &result,
                       &message) != CUDA_SUCCESS ||
      attention_workspace(&arguments[0], &arguments[1], &arguments[2], &bytes,
                          &message) != CUDA_SUCCESS) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  result.address = where.address;
  /* Dense, as _shapes has it, but for the order: the heads of a position lie
   * side by side, as frameworks like it. Strides are in elements; those that
   * are '?' in the header, of arguments and results, may be any. */
  result.strides[1] = dim;
  result.strides[2] = heads * dim;
  if (bytes > 0)
    require(cuMemAlloc(&workspace, bytes), "cuMemAlloc");
  if (attention_launch(&module, NULL, workspace, bytes, &arguments[0],
                       &arguments[1], &arguments[2], &result,
                       &message) != CUDA_SUCCESS) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  /* Waits for the kernel. */
  require(cuMemcpyDtoH(o, result.address, sizeof o), "the kernel");
  require(attention_unload(&module), "unload");

  for (head = 0; head < heads; ++head)
    for (query = 0; query < length; query += 13)
      for (column = 0; column < dim; column += 7) {
        double got = o[(query * heads + head) * dim + column];
        double error = fabs(got - expected(head, query, column));
        if (isnan(error) || error > worst) /* once NaN, it stays so */
          worst = error;
      }
  for (i = 0; i < 3; ++i)
    require(cuMemFree(arguments[i].address), "cuMemFree");
  require(cuMemFree(where.address), "cuMemFree");
  if (bytes > 0)
    require(cuMemFree(workspace), "cuMemFree");
  printf("largest error: %g\n", worst);
  return worst <= 1e-5 ? 0 : 1;
}
