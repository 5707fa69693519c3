/* Misuse of the C interface: each call must return the status and the message
 * that its rule says, and leave what it would have written alone. */
#include "flash-c/Flash.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* The attention of a tensor to itself. */
#define PROGRAM(T)                                                             \
  "func.func @f(%q: " T ") -> " T " {\n"                                       \
  "  %o = flash.attention %q, %q, %q : (" T ", " T ", " T ") -> " T "\n"       \
  "  return %o : " T "\n"                                                      \
  "}\n"
static const char program[] = PROGRAM("tensor<?x?x?x16xf32>");
/* In f16, blocks have roles. */
static const char halves[] = PROGRAM("tensor<?x?x?x16xf16>");

static int failures = 0;

static void fail(int line, const char *what, const char *got) {
  ++failures;
  printf("FAILED: line %d: %s: %s\n", line, what, got);
}

static void expectStatus(int line, const char *call, FlashStatus status,
                         FlashStatus expected, const char *part) {
  if (status != expected)
    fail(line, call, status ? flashGetErrorMessage() : "is accepted");
  else if (expected != FLASH_SUCCESS && !strstr(flashGetErrorMessage(), part))
    fail(line, call, flashGetErrorMessage());
}

static void expectTrue(int line, const char *what, int ok) {
  if (!ok)
    fail(line, what, "is false");
}

#define OK(call) expectStatus(__LINE__, #call, call, FLASH_SUCCESS, "")
#define REFUSED(call, part)                                                    \
  expectStatus(__LINE__, #call, call, FLASH_INVALID_ARGUMENT, part)
#define BAD_TENSOR(call, part)                                                 \
  expectStatus(__LINE__, #call, call, FLASH_INVALID_TENSOR, part)
#define TRUE(condition) expectTrue(__LINE__, #condition, condition)

#define SIZED .struct_size = sizeof(FlashCompileOptions)

static float data[96];
static const int64_t sizes[4] = {1, 2, 3, 16}, strides[4] = {96, 48, 16, 1};
static const FlashTensor good = {data, 4, sizes, strides};

static FlashKernel *compile(const char *text, const char *target) {
  FlashCompileOptions options = {SIZED};
  FlashKernel *kernel = NULL;
  options.target = target;
  OK(flashKernelCompile(text, strlen(text), &options, &kernel));
  return kernel;
}

static int stop(void) { return 1; }

static void testCompile(void) {
  FlashCompileOptions none = {SIZED}, cpu = {SIZED, .target = "cpu"},
                      unsized = {.target = "cpu"},
                      newer = {.struct_size = sizeof(FlashCompileOptions) + 8,
                               .target = "cpu"},
                      older = {.struct_size =
                                   offsetof(FlashCompileOptions, device),
                               .target = "cpu",
                               .multiprocessors = -1},
                      many = {SIZED, .target = "sm_80",
                              .multiprocessors = 4097},
                      ofGpu = {SIZED, .target = "cpu", .multiprocessors = 8},
                      noFile = {SIZED, .target = "cpu",
                                .tuning_file = "no/such.jsonl"},
                      stopped = {SIZED, .target = "cpu",
                                 .is_interrupted = stop};
  FlashKernel *kernel = NULL;
  const char *text;
  size_t length;
  REFUSED(flashKernelCompile(NULL, 0, &cpu, &kernel), "must not be null");
  REFUSED(flashKernelCompile(program, 1, NULL, &kernel), "must not be null");
  REFUSED(flashKernelCompile(program, 1, &none, &kernel), "must not be null");
  REFUSED(flashKernelCompile(program, 1, &cpu, NULL), "must not be null");
  REFUSED(flashKernelCompile(program, SIZE_MAX, &cpu, &kernel), "no text has");
  REFUSED(flashKernelGetText(NULL, "l0", &text, &length), "null");
  REFUSED(flashKernelSave(NULL, "f.mlir"), "null");
  REFUSED(flashKernelSerialize(NULL, &text, &length), "null");
  REFUSED(flashKernelDeserialize(NULL, 0, &kernel), "null");
  REFUSED(flashKernelDeserialize("", 0, NULL), "null");
  REFUSED(flashKernelCompile(program, strlen(program), &unsized, &kernel),
          "struct_size of the options is 0");
  REFUSED(flashKernelCompile(program, strlen(program), &newer, &kernel),
          "expected sizeof(FlashCompileOptions)");
  REFUSED(flashKernelCompile(program, strlen(program), &many, &kernel),
          "is 4097, which is not from 1 to 4096");
  REFUSED(flashKernelCompile(program, strlen(program), &ofGpu, &kernel),
          "multiprocessors are of GPUs");
  TRUE(flashKernelCompile(program, strlen(program), &noFile, &kernel) ==
       FLASH_INVALID_PROGRAM);
  TRUE(strstr(flashGetErrorMessage(), "no/such.jsonl") != NULL);
  TRUE(flashKernelCompile(program, strlen(program), &stopped, &kernel) ==
       FLASH_INTERRUPTED);
  TRUE(strstr(flashGetErrorMessage(), "was interrupted") != NULL);
  TRUE(kernel == NULL);
  OK(flashKernelCompile(program, strlen(program), &older, &kernel));
  flashKernelDestroy(kernel);
  flashKernelDestroy(NULL);
}

/* Versions of a program for the sizes of calls. */
typedef struct Versions {
  const char *expected;
  size_t taken, alike;
} Versions;

/* Counts the versions that come in order, and those that are as expected. */
static void takeVersion(void *data, size_t call, const char *version,
                        size_t length) {
  Versions *versions = data;
  versions->taken += call == versions->taken;
  versions->alike += length == strlen(versions->expected) &&
                     memcmp(version, versions->expected, length) == 0;
}

static void testSpecialize(void) {
  static const int64_t one[4] = {3, 8, 1, 16}, keys[4] = {3, 2, 1000, 16},
                       open[4] = {3, FLASH_DYNAMIC, 1, 16},
                       negative[4] = {3, -8, 1, 16};
  static const char attention[] =
      "func.func @f(%q: tensor<?x?x?x16xf16>, %k: tensor<?x?x?x16xf16>) -> "
      "tensor<?x?x?x16xf16> {\n"
      "  %o = flash.attention %q, %k, %k : (tensor<?x?x?x16xf16>, "
      "tensor<?x?x?x16xf16>, tensor<?x?x?x16xf16>) -> tensor<?x?x?x16xf16>\n"
      "  return %o : tensor<?x?x?x16xf16>\n}\n";
  static const char masked[] =
      "func.func @f(%q: tensor<?x?x?x16xf16>, %k: tensor<?x?x?x16xf16>) -> "
      "tensor<?x?x?x16xf16> {\n"
      "  %o = flash.attention %q, %k, %k score {\n"
      "  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):\n"
      "    %p = arith.muli %i, %j : index\n"
      "    %keep = arith.cmpi ne, %p, %h : index\n"
      "    flash.yield %s keep %keep : f32\n"
      "  } : (tensor<?x?x?x16xf16>, tensor<?x?x?x16xf16>, "
      "tensor<?x?x?x16xf16>) -> tensor<?x?x?x16xf16>\n"
      "  return %o : tensor<?x?x?x16xf16>\n}\n";
  FlashCompileOptions none = {SIZED}, gpu = {SIZED, .target = "sm_90a"},
                      several = {SIZED, .target = "sm_90a",
                                 .versions = "3x8x1x16,3x2x1000x16"},
                      wrong = {SIZED, .target = "sm_90a",
                               .versions = "3x8x1x16,2x2x1000x16"},
                      bad = {SIZED, .target = "sm_70"};
  FlashTensor tensors[2] = {{NULL, 4, one, NULL}, {NULL, 4, keys, NULL}};
  FlashKernel *kernel = NULL;
  const char *version = NULL;
  size_t length = 0, count = sizeof attention - 1;
  TRUE(flashGetSizeClass(64) == 64 &&
       flashGetSizeClass(71) == flashGetSizeClass(79));
  TRUE(flashGetSizeClass(64) != flashGetSizeClass(65));
  TRUE(strstr(flashGetTargets(), ",sm_90a,emulate:sm_90a,") != NULL);
  int64_t number;
  OK(flashTargetGetNumber("sm_90a", "registers", &number));
  TRUE(number == 65536);
  REFUSED(flashTargetGetNumber("sm_90a", "copies", &number),
          "there is no number 'copies' of a GPU 'sm_90a'");
  REFUSED(flashTargetGetNumber("cpu", "registers", &number),
          "there is no number 'registers' of a GPU 'cpu'");
  REFUSED(flashTargetGetNumber("cpu", NULL, &number), "null");
  TRUE(flashGetCpuLength(1) == flashGetCpuLength(16) &&
       flashGetCpuLength(16) != flashGetCpuLength(17) &&
       flashGetCpuLength(65) == flashGetCpuLength(4096));
  TRUE(flashGetSizeClass(4096) == flashGetSizeClass(4352) &&
       flashGetSizeClass(4096) != flashGetSizeClass(4095) &&
       flashGetSizeClass(4096) != flashGetSizeClass(4160));
  REFUSED(flashProgramSpecialize(NULL, 0, &gpu, tensors, 2, &version, &length),
          "null");
  REFUSED(flashProgramSpecialize(attention, count, &none, tensors, 2, &version,
                                 &length),
          "null");
  REFUSED(flashProgramSpecialize(attention, count, &gpu, NULL, 2, &version,
                                 &length),
          "null");
  REFUSED(
      flashProgramSpecialize(attention, count, &gpu, tensors, 2, NULL, &length),
      "null");
  REFUSED(flashProgramSpecialize(attention, count, &bad, tensors, 2, &version,
                                 &length),
          "sm_70");
  TRUE(version == NULL && length == 0);
  OK(flashProgramSpecialize(attention, count, &gpu, tensors, 2, &version,
                            &length));
  TRUE(length && strlen(version) == length);
  TRUE(strstr(version, "%q: tensor<?x8x1x16xf16>") != NULL);
  TRUE(strstr(version, "%k: tensor<?x2x?x16xf16>") != NULL);
  TRUE(strstr(version, "schedule(<query_tile") != NULL);
  /* Of many calls at once. */
  Versions versions = {version, 0, 0};
  const FlashTensor calls[] = {tensors[0], tensors[1], tensors[0], tensors[1]};
  REFUSED(flashProgramSpecializeEach(attention, count, &gpu, calls, 2, 2, NULL,
                                     &versions),
          "null");
  REFUSED(flashProgramSpecializeEach(attention, count, &several, calls, 2, 2,
                                     takeVersion, &versions),
          "makes one version");
  OK(flashProgramSpecializeEach(attention, count, &gpu, NULL, 0, 0, takeVersion,
                                &versions));
  TRUE(versions.taken == 0);
  OK(flashProgramSpecializeEach(attention, count, &gpu, calls, 2, 2,
                                takeVersion, &versions));
  TRUE(versions.taken == 2 && versions.alike == 2);
  /* Maps by themselves: of a mask that is known there are none. */
  const char *planned = NULL, *schedule = NULL;
  REFUSED(flashProgramPlan(attention, count, &gpu, tensors, 2, NULL, &schedule),
          "null");
  REFUSED(flashProgramPlan(attention, count, &several, tensors, 2, &planned,
                           &schedule),
          "makes one version");
  OK(flashProgramPlan(attention, count, &gpu, tensors, 2, &planned, &schedule));
  TRUE(planned == NULL && schedule == NULL);
  OK(flashProgramPlan(masked, sizeof masked - 1, &gpu, tensors, 2, &planned,
                      &schedule));
  TRUE(strstr(planned, "@f_plan(") != NULL &&
       strstr(planned, " given(") != NULL);
  TRUE(strstr(schedule, "packed_heads=4") != NULL);
  OK(flashProgramPlan(masked, sizeof masked - 1, &gpu, NULL, 0, &planned,
                      &schedule));
  TRUE(strstr(schedule, "packed_heads=1") != NULL);
  /* Several in one program. */
  REFUSED(flashProgramSpecialize(attention, count, &several, tensors, 2,
                                 &version, &length),
          "makes one version");
  TRUE(flashKernelCompile(attention, count, &wrong, &kernel) ==
       FLASH_INVALID_PROGRAM);
  TRUE(strstr(flashGetErrorMessage(), "it says 3 and 2 of the batch size") !=
       NULL);
  OK(flashKernelCompile(attention, count, &several, &kernel));
  OK(flashKernelGetText(kernel, "l0", &version, &length));
  TRUE(strstr(version, "scf.if") != NULL);
  flashKernelDestroy(kernel);
  tensors[0].sizes = open;
  OK(flashProgramSpecialize(attention, count, &gpu, tensors, 2, &version,
                            &length));
  TRUE(strstr(version, "schedule(") == NULL);
  tensors[0].sizes = NULL;
  BAD_TENSOR(flashProgramSpecialize(attention, count, &gpu, tensors, 2,
                                    &version, &length),
             "argument 0 has no sizes");
  tensors[0].sizes = negative;
  TRUE(flashProgramSpecialize(attention, count, &gpu, tensors, 2, &version,
                              &length) == FLASH_INVALID_PROGRAM);
  TRUE(strstr(flashGetErrorMessage(), "are no sizes") != NULL);
  tensors[0].rank = 3;
  tensors[0].sizes = one;
  TRUE(flashProgramSpecialize(attention, count, &gpu, tensors, 2, &version,
                              &length) == FLASH_INVALID_PROGRAM);
  TRUE(strstr(flashGetErrorMessage(), "never of the sizes 3x8x1") != NULL);
}

static void testGetters(FlashKernel *kernel) {
  const char *text;
  size_t length;
  TRUE(!strcmp(flashKernelGetTarget(NULL), ""));
  TRUE(strstr(flashGetErrorMessage(), "flashKernelGetTarget") != NULL);
  TRUE(flashKernelGetNumArguments(NULL) == 0);
  TRUE(flashKernelGetNumResults(NULL) == 0);
  TRUE(flashKernelGetArgument(NULL, 0).rank == -1);
  TRUE(flashKernelGetResult(NULL, 0).rank == -1);
  TRUE(flashKernelGetArgument(kernel, 0).rank == 4);
  TRUE(flashKernelGetArgument(kernel, 1).rank == -1);
  TRUE(strstr(flashGetErrorMessage(), "there is no argument 1") != NULL);
  TRUE(flashKernelGetArgument(kernel, SIZE_MAX).rank == -1);
  TRUE(flashKernelGetResult(kernel, 1).rank == -1);
  REFUSED(flashKernelGetText(kernel, NULL, &text, &length), "null");
  REFUSED(flashKernelGetText(kernel, "l0", NULL, &length), "null");
  REFUSED(flashKernelGetText(kernel, "l0", &text, NULL), "null");
  REFUSED(flashKernelGetText(kernel, "l9", &text, &length), "no stage 'l9'");
  REFUSED(flashKernelSave(kernel, NULL), "null");
  REFUSED(flashKernelSerialize(kernel, NULL, &length), "null");
  REFUSED(flashKernelSerialize(kernel, &text, NULL), "null");
}

/* Bytes of a kernel that another version wrote, or that were changed. */
static void testSerialized(FlashKernel *kernel) {
  const char *bytes, *version = flashGetVersion();
  size_t length, half, count = strlen(version);
  char *copy, *written;
  FlashKernel *again = NULL;
  OK(flashKernelSerialize(kernel, &bytes, &length));
  copy = malloc(length + 1);
  memcpy(copy, bytes, length);
  OK(flashKernelDeserialize(copy, length, &again));
  TRUE(flashKernelGetNumResults(again) == flashKernelGetNumResults(kernel));
  flashKernelDestroy(again);
  again = NULL;
  written = memmem(copy, length, version, count);
  TRUE(written != NULL);
  written[0] = '9';
  REFUSED(flashKernelDeserialize(copy, length, &again),
          "written by flash-mlir 9.");
  REFUSED(flashKernelDeserialize(copy, length, &again),
          "compile the kernel's program again");
  /* Whatever that version wrote behind its number. */
  REFUSED(flashKernelDeserialize(copy, written - copy + count, &again),
          "written by flash-mlir 9.");
  memcpy(written, "0.0.0", 5);
  REFUSED(flashKernelDeserialize(copy, length, &again),
          "written by flash-mlir 0.0.0");
  memcpy(copy, bytes, length);
  for (half = length; half > (size_t)(written - copy); half /= 2)
    REFUSED(flashKernelDeserialize(copy, half - 1, &again), "are truncated");
  REFUSED(flashKernelDeserialize(copy, length + 1, &again), "others follow");
  copy[length - 1] ^= 1;
  REFUSED(flashKernelDeserialize(copy, length, &again), "are damaged");
  copy[length - 1] ^= 1;
  /* The processor is behind the version, and its length. */
  written[count + 8] ^= 1;
  REFUSED(flashKernelDeserialize(copy, length, &again),
          "was compiled for the processor ");
  copy[8] = 'F';
  REFUSED(flashKernelDeserialize(copy, length, &again), "are no kernel");
  REFUSED(flashKernelDeserialize("", 0, &again), "are no kernel");
  TRUE(again == NULL);
  free(copy);
}

/* What running and launching have in common. */
static FlashStatus use(FlashKernel *kernel, FlashCall *call,
                       const FlashTensor *tensor) {
  FlashBuffer *result = NULL;
  FlashStatus status;
  if (call)
    return flashCallPrepare(call, tensor, 1);
  status = flashKernelRun(kernel, tensor, 1, &result);
  flashBufferDestroy(result);
  return status;
}

static void testTensors(FlashKernel *kernel, FlashCall *call) {
  static const int64_t negative[4] = {1, 2, -3, 16}, wrong[4] = {1, 2, 3, 17};
  static const int64_t huge[4] = {INT64_MAX, INT64_MAX, INT64_MAX, 16};
  static const int64_t empty[4] = {1000, 2, 0, 16};
  static const int64_t any[4] = {7, 7, 7, 1};
  FlashTensor tensor = good;
  OK(use(kernel, call, &tensor));
  tensor.data = NULL;
  BAD_TENSOR(use(kernel, call, &tensor), "argument 0 has elements");
  tensor = good;
  tensor.sizes = NULL;
  BAD_TENSOR(use(kernel, call, &tensor), "argument 0 has sizes that are null");
  tensor = good;
  tensor.strides = NULL;
  BAD_TENSOR(use(kernel, call, &tensor), "argument 0 has strides that");
  tensor = good;
  tensor.rank = -1;
  BAD_TENSOR(use(kernel, call, &tensor), "argument 0 has rank -1, expected 4");
  tensor.rank = INT32_MIN;
  BAD_TENSOR(use(kernel, call, &tensor), "argument 0 has rank");
  tensor.rank = INT32_MAX;
  BAD_TENSOR(use(kernel, call, &tensor), "argument 0 has rank");
  tensor.rank = 0;
  BAD_TENSOR(use(kernel, call, &tensor), "argument 0 has rank 0, expected 4");
  tensor = good;
  tensor.data = (char *)data + 2;
  BAD_TENSOR(use(kernel, call, &tensor), "not a multiple of");
  tensor = good;
  tensor.sizes = negative;
  BAD_TENSOR(use(kernel, call, &tensor), "-3");
  tensor.sizes = wrong;
  BAD_TENSOR(use(kernel, call, &tensor), "17");
  tensor.sizes = huge;
  BAD_TENSOR(use(kernel, call, &tensor), "argument 0");
  /* Without elements neither strides nor the address matter. */
  tensor = good;
  tensor.data = NULL;
  tensor.sizes = empty;
  tensor.strides = any;
  OK(use(kernel, call, &tensor));
}

static void testRun(FlashKernel *kernel, FlashKernel *gpu) {
  FlashBuffer *result = NULL;
  REFUSED(flashKernelRun(NULL, &good, 1, &result), "null");
  REFUSED(flashKernelRun(kernel, NULL, 1, &result), "null");
  REFUSED(flashKernelRun(kernel, &good, 1, NULL), "null");
  REFUSED(flashKernelRun(gpu, &good, 1, &result), "the kernel is for sm_80");
  BAD_TENSOR(flashKernelRun(kernel, NULL, 0, &result), "takes 1 arguments");
  BAD_TENSOR(flashKernelRun(kernel, &good, 0, &result), "takes 1 arguments");
  TRUE(result == NULL);
  TRUE(flashBufferGetTensor(NULL).rank == -1);
  flashBufferDestroy(NULL);
  testTensors(kernel, NULL);
}

/* Places for results that lie in memory in another order. */
static void testPlaces(FlashCall *call) {
  static const int64_t turned[4] = {96, 16, 32, 1}, gaps[4] = {192, 32, 64, 1};
  static const int64_t shared[4] = {96, 16, 16, 1}, wrong[4] = {1, 3, 2, 16};
  FlashTensor place = {NULL, 4, sizes, turned}, result;
  OK(flashCallPrepareResults(call, &good, 1, &place, 1));
  result = flashCallGetResult(call, 0);
  TRUE(result.rank == 4 && result.strides[1] == 16 && result.strides[2] == 32);
  OK(flashCallPrepare(call, &good, 1));
  TRUE(flashCallGetResult(call, 0).strides[1] == 48);
  REFUSED(flashCallPrepareResults(NULL, &good, 1, &place, 1), "null");
  REFUSED(flashCallPrepareResults(call, &good, 1, NULL, 1), "null");
  BAD_TENSOR(flashCallPrepareResults(call, &good, 1, NULL, 0),
             "has 1 results, but 0 tensors for results are given");
  TRUE(flashCallGetResult(call, 0).rank == -1);
  place.strides = gaps;
  OK(flashCallPrepareResults(call, &good, 1, &place, 1));
  TRUE(flashCallGetResult(call, 0).strides[1] == 32);
  place.strides = shared;
  BAD_TENSOR(flashCallPrepareResults(call, &good, 1, &place, 1),
             "elements of the tensor of result 0 may share an address");
  place.strides = turned;
  place.sizes = wrong;
  BAD_TENSOR(flashCallPrepareResults(call, &good, 1, &place, 1),
             "result 0 has other sizes than its tensor");
  place.rank = 3;
  BAD_TENSOR(flashCallPrepareResults(call, &good, 1, &place, 1),
             "result 0 has rank 3, expected 4");
}

/* Other memory for the arguments of a prepared call. */
static void testAddresses(FlashCall *call, void *const *results) {
  char *first = (char *)good.data;
  void *same[1] = {first}, *next[1] = {first + 256}, *odd[1] = {first + 16};
  void *none[1] = {NULL};
  REFUSED(flashCallSetAddresses(NULL, same, 1), "prepare the call first");
  OK(flashCallSetAddresses(call, next, 1));
  OK(flashCallLaunch(call, results, 1, NULL, NULL));
  OK(flashCallSetAddresses(call, same, 1));
  BAD_TENSOR(flashCallSetAddresses(call, odd, 1),
             "not alike as multiples of 256 bytes");
  /* Of what was refused nothing is launched. */
  REFUSED(flashCallLaunch(call, results, 1, NULL, NULL), "prepare");
  REFUSED(flashCallSetAddresses(call, same, 1), "prepare the call first");
  OK(flashCallPrepare(call, &good, 1));
  REFUSED(flashCallSetAddresses(call, same, 2), "2 addresses for 1 arguments");
  OK(flashCallPrepare(call, &good, 1));
  REFUSED(flashCallSetAddresses(call, NULL, 1), "0 addresses for 1 arguments");
  OK(flashCallPrepare(call, &good, 1));
  BAD_TENSOR(flashCallSetAddresses(call, none, 1), "its data is null");
}

static void testLaunch(FlashKernel *kernel, FlashKernel *cpu) {
  FlashCall *call = NULL;
  const char *target = NULL;
  void *none[1] = {NULL}, *results[1], *odd[1];
  REFUSED(flashGetDeviceTarget(0, NULL), "null");
  TRUE(flashGetDeviceTarget(-1, &target) == FLASH_UNAVAILABLE);
  TRUE(flashGetDeviceTarget(INT32_MAX, &target) == FLASH_UNAVAILABLE);
  TRUE(target == NULL);
  OK(flashGetDeviceTarget(0, &target));
  REFUSED(flashCallCreate(NULL, 0, &call), "null");
  REFUSED(flashCallCreate(kernel, 0, NULL), "null");
  REFUSED(flashCallCreate(cpu, 0, &call), "the kernel is for cpu");
  TRUE(flashCallCreate(kernel, -1, &call) == FLASH_UNAVAILABLE);
  TRUE(call == NULL);
  OK(flashCallCreate(kernel, 0, &call));
  if (!call)
    return;

  /* Before it is prepared. */
  TRUE(flashCallGetResult(NULL, 0).rank == -1);
  TRUE(flashCallGetResult(call, 0).rank == -1);
  TRUE(flashCallGetScratchBytes(NULL) == -1);
  TRUE(flashCallGetScratchBytes(call) == -1);
  REFUSED(flashCallLaunch(NULL, none, 1, NULL, NULL), "prepare the call first");
  REFUSED(flashCallLaunch(call, none, 1, NULL, NULL), "prepare the call first");
  testPlaces(call);
  REFUSED(flashCallPrepare(NULL, &good, 1), "null");
  REFUSED(flashCallPrepare(call, NULL, 1), "null");
  BAD_TENSOR(flashCallPrepare(call, NULL, 0), "takes 1 arguments");

  testTensors(kernel, call);
  /* Of a result without bytes the address does not matter. */
  OK(flashCallLaunch(call, none, 1, NULL, NULL));
  OK(flashCallPrepare(call, &good, 1));
  TRUE(flashCallGetResult(call, 0).rank == 4);
  TRUE(flashCallGetResult(call, 1).rank == -1);
  TRUE(flashCallGetScratchBytes(call) >= 0);
  REFUSED(flashCallLaunch(call, NULL, 1, NULL, NULL), "1 addresses");
  REFUSED(flashCallLaunch(call, none, 0, NULL, NULL), "0 addresses");
  REFUSED(flashCallLaunch(call, none, 1, NULL, NULL), "result 0 is null");
  results[0] = aligned_alloc(256, 512);
  odd[0] = (char *)results[0] + 8;
  BAD_TENSOR(flashCallLaunch(call, odd, 1, NULL, NULL),
             "of result 0 is not a multiple of 16");
  odd[0] = (char *)results[0] + 16;
  OK(flashCallLaunch(call, odd, 1, NULL, NULL));
  testAddresses(call, results);
  /* What failed to be prepared is not the last call. */
  BAD_TENSOR(flashCallPrepare(call, NULL, 0), "takes 1 arguments");
  REFUSED(flashCallLaunch(call, results, 1, NULL, NULL), "prepare");
  free(results[0]);
  flashCallDestroy(call);
  flashCallDestroy(NULL);
}

/* Memory that is left for stacks: too little for the threads. */
static void limitMemory(void) {
  struct rlimit limit;
  char line[256];
  long kilobytes = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    sscanf(line, "VmSize: %ld", &kilobytes);
  if (file)
    fclose(file);
  limit.rlim_cur = limit.rlim_max = (kilobytes + 96 * 1024) * 1024;
  TRUE(kilobytes && setrlimit(RLIMIT_AS, &limit) == 0);
}

static void testThreads(FlashKernel *cpu, FlashKernel *roles) {
  FlashBuffer *result = NULL;
  REFUSED(flashSetThreadCount(1000000), "1000000 threads are not from 0");
  REFUSED(flashSetThreadCount(1025), "are not from 0 to 1024");
  limitMemory();
  OK(flashSetThreadCount(1024));
  OK(use(cpu, NULL, &good));
  /* Roles are threads that wait for one another: all of them or none. */
  TRUE(flashKernelRun(roles, &good, 1, &result) == FLASH_OUT_OF_MEMORY);
  TRUE(strstr(flashGetErrorMessage(), "no thread for each role") != NULL);
  OK(flashSetThreadCount(0));
  OK(use(roles, NULL, &good));
}

int main(void) {
  /* Threads that allocate at the same time would get regions of addresses of
     64 MB each, of which testThreads leaves few. */
  int single = mallopt(M_ARENA_MAX, 1);
  FlashKernel *cpu = compile(program, "cpu"), *gpu = compile(program, "sm_80"),
              *roles = compile(halves, "emulate:sm_90a");
  TRUE(single);
  testCompile();
  testSpecialize();
  testGetters(cpu);
  testSerialized(cpu);
  testSerialized(gpu);
  testRun(cpu, gpu);
  testLaunch(gpu, cpu);
  testThreads(cpu, roles);
  flashKernelDestroy(cpu);
  flashKernelDestroy(gpu);
  flashKernelDestroy(roles);
  if (!failures)
    printf("misuse refused as it should be\n");
  return failures != 0;
}
