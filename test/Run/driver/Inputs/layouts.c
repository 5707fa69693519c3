/* Launches each function of layouts.h with results of strides that the caller
 * chooses, and prints what is refused. */
#include "layouts.h"

#include <stdio.h>

static prefill_tensor place4(int64_t a, int64_t b, int64_t c, int64_t d) {
  prefill_tensor tensor = {0x100000, 4, {0}, {0}};
  tensor.sizes[0] = a;
  tensor.sizes[1] = b;
  tensor.sizes[2] = c;
  tensor.sizes[3] = d;
  tensor.strides[0] = b * c * d;
  tensor.strides[1] = c * d;
  tensor.strides[2] = d;
  tensor.strides[3] = 1;
  return tensor;
}

static const char *message = "";
static const CUdeviceptr workspace = 0x40000000;
static const size_t all = (size_t)1 << 40;

static void check(const char *what, CUresult result) {
  if (result != CUDA_SUCCESS)
    printf("%s: error: %s\n", what, message);
}

/* The first and the second inner dimension change places. */
static void exchange(int64_t *strides, const int64_t *sizes) {
  strides[1] = sizes[3];
  strides[2] = sizes[1] * sizes[3];
}

static void runPrefill(void) {
  prefill_module module;
  prefill_tensor q = place4(2, 4, 100, 64), k = place4(2, 4, 300, 64), o, lse;
  check("load", prefill_load(&module, &message));
  check("shapes", prefill_shapes(&q, &k, &k, &o, &lse, &message));
#define PREFILL(what)                                                          \
  check(what, prefill_launch(&module, NULL, workspace, all, &q, &k, &k, &o,    \
                             &lse, &message))
  o.address = lse.address = 0x200000;
  PREFILL("dense");
  /* As frameworks have it; and the sums behind each row of four. */
  exchange(q.strides, q.sizes);
  exchange(o.strides, o.sizes);
  lse.strides[0] = 1600;
  lse.strides[1] = 400;
  PREFILL("bnhd");
  lse.strides[1] = -400;
  PREFILL("negative");
  lse.strides[1] = 400;
  o.address += 8;
  PREFILL("address");
  o.address -= 8;
  o.strides[0] += 0x10000;
  o.strides[2] += 1;
  PREFILL("odd");
  o.strides[2] = 64;
  PREFILL("overlap");
  o.strides[2] = 0;
  PREFILL("zero");
  exchange(o.strides, o.sizes);
  o.strides[3] = 2;
  PREFILL("last");
  o.strides[3] = 1;
  o.sizes[2] += 1;
  PREFILL("size");
  o.sizes[2] -= 1;
  o.strides[2] = INT64_MAX / 2 + 1;
  PREFILL("span");
  /* Of a single batch the stride is anything. */
  q.sizes[0] = k.sizes[0] = o.sizes[0] = lse.sizes[0] = 1;
  q.strides[0] = k.strides[0] = o.strides[0] = lse.strides[0] = 7;
  exchange(o.strides, o.sizes);
  PREFILL("one");
  check("unload", prefill_unload(&module));
}

static void copy(decode_tensor *to, prefill_tensor from) {
  int d;
  to->address = from.address;
  to->rank = from.rank;
  for (d = 0; d < 4; ++d) {
    to->sizes[d] = from.sizes[d];
    to->strides[d] = from.strides[d];
  }
}

/* Six heads are three rows of two tiles: the strides of both are the heads'. */
static void runDecode(void) {
  decode_module module;
  decode_tensor q, k, o;
  copy(&q, place4(2, 6, 1, 64));
  copy(&k, place4(2, 2, 50, 64));
  check("load", decode_load(&module, &message));
  check("shapes", decode_shapes(&q, &k, &k, &o, &message));
  o.address = 0x200000;
  o.strides[0] = 0x10000;
  o.strides[1] = 0x1000;
  o.strides[2] = 7;
  check("decode",
        decode_launch(&module, NULL, workspace, all, &q, &k, &k, &o, &message));
  o.strides[1] += 1;
  check("odd heads",
        decode_launch(&module, NULL, workspace, all, &q, &k, &k, &o, &message));
  check("unload", decode_unload(&module));
}

static void runFlat(void) {
  Decode_module module;
  Decode_tensor q = {0x100000, 3, {5, 33, 64}, {33 * 64, 64, 1}}, o;
  check("load", Decode_load(&module, &message));
  check("shapes", Decode_shapes(&q, &q, &o, &message));
  o.address = 0x200000;
  o.strides[0] = 64;
  o.strides[1] = 0x1000;
  check("flat",
        Decode_launch(&module, NULL, workspace, all, &q, &q, &o, &message));
  check("unload", Decode_unload(&module));
}

int main(void) {
  runPrefill();
  runDecode();
  runFlat();
  return 0;
}
