/* Calls the header's function once for each line of the file, and prints what
 * reaches the driver in the form of HostProgramOpt.cpp. */
#include "attention.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static attention_tensor parse(const char *text, int number) {
  attention_tensor tensor;
  char *end = (char *)text;
  int d;
  memset(&tensor, 0, sizeof tensor);
  tensor.address = (CUdeviceptr)number << 20;
  /* Ranks beyond what the struct holds are cut off: wrong is wrong. */
  for (;; text = end + 1) {
    int64_t size = strtoll(text, &end, 10);
    if (end != text && tensor.rank < 4)
      tensor.sizes[tensor.rank++] = size;
    if (*end != 'x')
      break;
  }
  if (*end == ':') {
    for (d = 0; d < 4; ++d) {
      tensor.strides[d] = strtoll(end + 1, &end, 10);
      if (*end != 'x')
        break;
    }
    return tensor;
  }
  for (d = tensor.rank; d-- > 0;)
    tensor.strides[d] = d + 1 == tensor.rank
                            ? 1
                            : (int64_t)((uint64_t)tensor.strides[d + 1] *
                                        (uint64_t)tensor.sizes[d + 1]);
  return tensor;
}

static void print(const attention_tensor *tensor) {
  int d;
  printf("result");
  for (d = 0; d < tensor->rank; ++d)
    printf(" %lld:%lld", (long long)tensor->sizes[d],
           (long long)tensor->strides[d]);
  printf("\n");
}

int main(int argc, char **argv) {
  char line[1024];
  attention_module module;
  const char *message;
  FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
  if (!file)
    return 2;
  if (attention_load(&module, &message) != CUDA_SUCCESS) {
    printf("error: %s\n", message);
    return 1;
  }
  while (fgets(line, sizeof line, file)) {
    attention_tensor arguments[3], o, lse;
    const CUdeviceptr workspace = (CUdeviceptr)1 << 32;
    size_t bytes = 0;
    char *word;
    int i;
    printf("%s", line);
    for (i = 0, word = strtok(line, " \n"); i < 3;
         ++i, word = strtok(NULL, " \n"))
      arguments[i] = parse(word ? word : "", i + 1);
    if (attention_shapes(&arguments[0], &arguments[1], &arguments[2], &o, &lse,
                         &message) != CUDA_SUCCESS) {
      printf("error: %s\n", message);
      if (attention_workspace(&arguments[0], &arguments[1], &arguments[2],
                              &bytes, NULL) == CUDA_SUCCESS)
        printf("the bytes of a wrong call were counted\n");
      continue;
    }
    print(&o);
    print(&lse);
    o.address = (CUdeviceptr)1 << 28;
    lse.address = (CUdeviceptr)2 << 28;
    if (attention_workspace(&arguments[0], &arguments[1], &arguments[2], &bytes,
                            &message) != CUDA_SUCCESS)
      printf("error: %s\n", message);
    printf("workspace %llu\n", (unsigned long long)bytes);
#define LAUNCH(workspace, bytes, message)                                      \
  attention_launch(&module, NULL, workspace, bytes, &arguments[0],             \
                   &arguments[1], &arguments[2], &o, &lse, message)
    if (LAUNCH(workspace, bytes, &message) != CUDA_SUCCESS)
      printf("error: %s\n", message);
    lse.address += 8;
    if (LAUNCH(workspace, bytes, NULL) == CUDA_SUCCESS)
      printf("a result at a wrong address was accepted\n");
    lse.address -= 8;
    lse.rank += 1;
    if (LAUNCH(workspace, bytes, NULL) == CUDA_SUCCESS)
      printf("a result of a wrong rank was accepted\n");
    lse.rank -= 1;
    lse.sizes[0] += 1;
    if (LAUNCH(workspace, bytes, NULL) == CUDA_SUCCESS)
      printf("a result of a wrong size was accepted\n");
    lse.sizes[0] -= 1;
    o.strides[o.rank - 1] = 0;
    if (o.sizes[0] && o.sizes[o.rank / 2] && o.sizes[o.rank - 1] > 1 &&
        LAUNCH(workspace, bytes, NULL) == CUDA_SUCCESS)
      printf("a result with wrong strides was accepted\n");
    o.strides[o.rank - 1] = 1;
    arguments[0].address += 1;
    if (LAUNCH(workspace, bytes, NULL) == CUDA_SUCCESS)
      printf("an argument at a wrong address was accepted\n");
    arguments[0].address -= 1;
    if (LAUNCH(workspace + 16, bytes, NULL) == CUDA_SUCCESS)
      printf("a workspace at a wrong address was accepted\n");
    if (bytes && (LAUNCH(workspace, bytes - 1, NULL) == CUDA_SUCCESS ||
                  LAUNCH(0, bytes, NULL) == CUDA_SUCCESS))
      printf("a workspace that is too small was accepted\n");
  }
  fclose(file);
  return attention_unload(&module) != CUDA_SUCCESS;
}
