/* Calls a function with sizes in and around the classes of its versions; the
 * driver prints which kernels are launched. */
#include "versions.h"

#include <stdio.h>

static const char *message = "";

static attention_tensor place(int64_t batch, int64_t heads, int64_t length) {
  attention_tensor tensor = {0x100000, 4, {0}, {0}};
  const int64_t sizes[4] = {batch, heads, length, 32};
  int64_t stride = 1;
  for (int i = 4; i-- > 0; stride *= sizes[i]) {
    tensor.sizes[i] = sizes[i];
    tensor.strides[i] = stride;
  }
  return tensor;
}

static void run(attention_module *module, const int64_t *call) {
  attention_tensor q = place(call[0], call[1], call[3]),
                   k = place(call[0], call[2], call[4]), o;
  size_t bytes;
  printf("%d x %d on %d heads, %d queries, %d keys\n", (int)call[0],
         (int)call[1], (int)call[2], (int)call[3], (int)call[4]);
  if (attention_shapes(&q, &k, &o, &message) != CUDA_SUCCESS ||
      attention_workspace(&q, &k, &bytes, &message) != CUDA_SUCCESS ||
      (o.address = 0x200000, attention_launch(module, NULL, 0x40000000, bytes,
                                              &q, &k, &o, &message)) !=
          CUDA_SUCCESS)
    printf("error: %s\n", message);
}

int main(void) {
  /* Batch, query heads, key heads, queries, keys. */
  static const int64_t calls[][5] = {
      /* Of no class: other batches, heads, queries, and one key too many. */
      {3, 8, 2, 1, 100},
      {2, 4, 2, 1, 100},
      {2, 8, 4, 1, 100},
      {2, 8, 2, 2, 100},
      {2, 8, 2, 1, 0},
      {2, 8, 2, 1, 1024},
      {2, 8, 2, 127, 256},
      {2, 8, 2, 160, 256},
      /* One query: up to the end of the class of the last length. */
      {2, 8, 2, 1, 1},
      {2, 8, 2, 1, 64},
      {2, 8, 2, 1, 65},
      {2, 8, 2, 1, 1000},
      {2, 8, 2, 1, 1023},
      /* Whole tiles of queries, and others. */
      {2, 8, 2, 128, 256},
      {2, 8, 2, 129, 256},
      {2, 8, 2, 159, 256},
      {2, 8, 2, 128, 257},
      /* What no attention has. */
      {2, 8, 3, 1, 100},
  };
  attention_module module;
  if (attention_load(&module, &message) != CUDA_SUCCESS)
    printf("error: %s\n", message);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i)
    run(&module, calls[i]);
  return attention_unload(&module) != CUDA_SUCCESS;
}
