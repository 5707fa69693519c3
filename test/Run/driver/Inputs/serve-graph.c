/* Prints the workspace of calls with so many sequences, each with room for so
 * many pages. */
#include "decode.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int i;
  for (i = 1; i + 1 < argc; i += 2) {
    int64_t sequences = atoll(argv[i]), columns = atoll(argv[i + 1]);
    size_t bytes = 0;
    const char *message = "";
    decode_tensor query = {0, 4, {sequences, 8, 1, 64}, {512, 64, 64, 1}};
    decode_tensor pages = {0, 4, {700, 2, 16, 64}, {2048, 1024, 64, 1}};
    decode_tensor table = {0, 2, {sequences, columns}, {columns, 1}};
    decode_tensor lengths = {0, 1, {sequences}, {1}};
    if (decode_workspace(&query, &pages, &pages, &table, &lengths, &bytes,
                         &message) != CUDA_SUCCESS)
      printf("%s\n", message);
    else
      printf("%llu\n", (unsigned long long)bytes);
  }
  return 0;
}
