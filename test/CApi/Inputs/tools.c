/* Runs the tool of the first argument with the others. */
#include "flash-c/Tools.h"

#include <stdio.h>

int main(int argc, char **argv) {
  int status =
      argc < 2 ? -1
               : flashRunTool(argv[1], argc - 2, (const char *const *)argv + 2);
  if (status == -1)
    fputs("no such tool\n", stderr);
  return status;
}
