/*===- Flash.h - The compiler as a C library ----------------------*- C -*-===*\
|*                                                                            *|
|* Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.    *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Compiles programs from text and runs them on the CPU or launches them on   *|
|* a GPU. Functions that can fail return a FlashStatus; the text of a failure *|
|* is flashGetErrorMessage(), and what they would have written is as before.  *|
|* Functions may be called from several threads, but not with the same object *|
|* at the same time, unless stated otherwise.                                 *|
|*                                                                            *|
|* No pointer may be null unless stated otherwise: a null one is              *|
|* FLASH_INVALID_ARGUMENT. Functions that return something else than a status *|
|* say below what they return for null; the message is set then, too.         *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef FLASH_C_FLASH_H
#define FLASH_C_FLASH_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FLASH_CAPI __attribute__((visibility("default")))
#else
#define FLASH_CAPI
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum FlashStatus {
  FLASH_SUCCESS = 0,
  /** An argument of the function breaks a rule of this header. */
  FLASH_INVALID_ARGUMENT,
  /** The program does not compile; the message holds the diagnostics. */
  FLASH_INVALID_PROGRAM,
  /** Sizes, strides or addresses of tensors that the program cannot take. */
  FLASH_INVALID_TENSOR,
  /** No driver, no GPU, or not one that the program is for. */
  FLASH_UNAVAILABLE,
  FLASH_OUT_OF_MEMORY,
  /** Anything else, such as a file that cannot be written or a failed driver
      call. */
  FLASH_FAILURE,
  /** The caller has stopped a compilation. */
  FLASH_INTERRUPTED
} FlashStatus;

/** Why the last function that failed on this thread did so. Valid until another
    function of this library is called on this thread. */
FLASH_CAPI const char *flashGetErrorMessage(void);

/** The version of the library, such as "0.1.0". */
FLASH_CAPI const char *flashGetVersion(void);

/*===----------------------------------------------------------------------===*\
|* Tensors
\*===----------------------------------------------------------------------===*/

typedef enum FlashElementType {
  FLASH_F16,
  FLASH_BF16,
  FLASH_F32,
  FLASH_F64,
  FLASH_I8,
  FLASH_I16,
  FLASH_I32,
  FLASH_I64,
  /** Four bits of exponent and three of mantissa, without infinities. */
  FLASH_F8E4M3FN
} FlashElementType;

/** A size that the program leaves open. */
#define FLASH_DYNAMIC INT64_MIN

/** What the program says of an argument or a result. */
typedef struct FlashTensorType {
  FlashElementType element;
  int32_t rank;
  /** `rank` sizes; each may be FLASH_DYNAMIC. */
  const int64_t *sizes;
} FlashTensorType;

/** A tensor in memory that somebody owns: on a device, or on the host. What
    breaks a rule below is FLASH_INVALID_TENSOR. */
typedef struct FlashTensor {
  /** The address of the first element, a multiple of the size of an element.
      May be null if the tensor has no elements. */
  void *data;
  int32_t rank;
  /** `rank` sizes, none negative; may be null if rank is 0. */
  const int64_t *sizes;
  /** `rank` strides in elements; may be null if rank is 0. Strides do
      not matter in dimensions of size 1, nor in tensors without elements. */
  const int64_t *strides;
} FlashTensor;

/*===----------------------------------------------------------------------===*\
|* Kernels: compiled programs
\*===----------------------------------------------------------------------===*/

typedef struct FlashKernel FlashKernel;

/** What a program is compiled for. Fields that are not set must be 0. */
typedef struct FlashCompileOptions {
  /** sizeof(FlashCompileOptions): fields that were added since a caller was
      compiled lie behind it, and are as if they were 0. */
  size_t struct_size;
  /** One of flashGetTargets: "cpu", a GPU such as "sm_90a", or "emulate" and
      "emulate:sm_90a" for its block programs on the CPU. "reference" is for
      checks: it runs on the CPU, stores all scores, computes in f64, and has
      f64 instead of every floating-point type of the arguments and results. */
  const char *target;
  /** The function to compile; NULL for the only public one. */
  const char *function;
  /** As flash-run takes it with --schedule; NULL for the compiler's choice. */
  const char *schedule;
  /** Sizes of the arguments in calls that are to have a version of the program,
      as flash-run takes them with --versions; each call then takes one by its
      sizes. NULL for none. */
  const char *versions;
  /** The device whose measured schedules are taken, such as "NVIDIA H200".
     NULL: schedules of no GPU, or of this machine's CPU. */
  const char *device;
  /** The multiprocessors of the GPU that schedules count on, up to 4096; 0 for
      what the program says, or the description of the target. Kernels are
      right on any number. */
  int64_t multiprocessors;
  /** A file with measured schedules (docs/tuning.md), which has some for the
      device; it goes before the file of this library. NULL for none. */
  const char *tuning_file;
  /** Called by the thread that compiles, a few times in a second, between
     passes: where it is not 0, the function fails with FLASH_INTERRUPTED. NULL
     for never. */
  int (*is_interrupted)(void);
} FlashCompileOptions;

/** All targets, with commas between them. The string is static. */
FLASH_CAPI const char *flashGetTargets(void);

/** The target for a device of this machine, counted from 0, such as "sm_90a":
    its own description or, if there is none, the nearest whose kernels run
    there (docs/machines.md). The string is static. */
FLASH_CAPI FlashStatus flashGetDeviceTarget(int device, const char **target);

/** A device of this machine, as the options above have it. */
typedef struct FlashDevice {
  const char *target, *name;
  int64_t multiprocessors;
  /** A sentence for who uses the device, if nobody has tried flash-mlir on one
      of this compute capability, or it has no description; else NULL. */
  const char *warning;
} FlashDevice;

/** Describes a device, counted from 0. The texts live as long as the
    process. */
FLASH_CAPI FlashStatus flashGetDevice(int device, FlashDevice *description);

/** The class of a size, a number. Sizes up to 64 are classes of their own; of
    others the three highest bits count, and whether they are divisible by 64,
    128 and 256. */
FLASH_CAPI int64_t flashGetSizeClass(int64_t size);

/** The length to give flashProgramSpecialize instead of the number of queries
    or keys on a CPU, where it is all that versions depend on: one for the
   lengths up to 16, 32 and 64 each, and one for all longer ones. */
FLASH_CAPI int64_t flashGetCpuLength(int64_t length);

/** Writes the version of a program for calls with arguments of certain sizes:
   it has the schedules that it would have if it were written for sizes like
   these and, where that makes a difference, states what else is known of them:
   the numbers of heads, that there is one query, that lengths are multiples of
   tiles. So it is as fast as a program without open sizes, for all calls with
   the same numbers of heads whose other sizes have the same classes.
    `arguments` has the first ones; FLASH_DYNAMIC is a size that is not known,
   and data and strides are not read. `versions` of the options, which make one
   program of several, must be NULL. The version is valid until this function
   is called again on this thread. */
FLASH_CAPI FlashStatus flashProgramSpecialize(
    const char *text, size_t length, const FlashCompileOptions *options,
    const FlashTensor *arguments, size_t numArguments, const char **version,
    size_t *versionLength);

/** Writes the versions of a program for many calls, as flashProgramSpecialize
   writes one, in a tenth of the time: the program is read once. `arguments`
   has the first `numArguments` of each call, one call after the other. `take`
   is called with `data` and the number of each call, in their order, and a
   version that is valid in it alone; many calls have the same. Where the
   function fails, calls before have been taken. */
FLASH_CAPI FlashStatus flashProgramSpecializeEach(
    const char *text, size_t length, const FlashCompileOptions *options,
    const FlashTensor *arguments, size_t numArguments, size_t numCalls,
    void (*take)(void *data, size_t call, const char *version, size_t length),
    void *data);

/** Writes a program such that which tiles its masks leave is computed by a
   function of its own, once for many calls (flash-outline-block-maps): the
   program's function takes the maps as further arguments, and the one that is
   named like it with "_plan" behind it takes the others and returns the maps.
   Where there are `arguments`, it is the version for them, as
   flashProgramSpecialize has it. `schedule` has the keys of the schedule on
   which the maps depend: another program with the same mask that is compiled
   with these takes them, too. The mask is what the program says as such (mask,
   lengths and keep); of a program that says none, what its scores are -inf for
   by position. There is a map also where rows are too short for
   one in each call (block_map of schedules). Both are NULL where the compiler
   knows what masks leave, or there is one tile of keys, and valid until this
   function is called again on this thread. */
FLASH_CAPI FlashStatus flashProgramPlan(const char *text, size_t length,
                                        const FlashCompileOptions *options,
                                        const FlashTensor *arguments,
                                        size_t numArguments,
                                        const char **planned,
                                        const char **schedule);

/** Compiles a program, a text of `length` bytes. Needs no GPU. */
FLASH_CAPI FlashStatus flashKernelCompile(const char *text, size_t length,
                                          const FlashCompileOptions *options,
                                          FlashKernel **kernel);
/** Calls that were made of the kernel must be destroyed before. Null is
    allowed. */
FLASH_CAPI void flashKernelDestroy(FlashKernel *kernel);

/** As in the options; "" for null. */
FLASH_CAPI const char *flashKernelGetTarget(const FlashKernel *kernel);
/** 0 for null. */
FLASH_CAPI size_t flashKernelGetNumArguments(const FlashKernel *kernel);
FLASH_CAPI size_t flashKernelGetNumResults(const FlashKernel *kernel);
/** The sizes live as long as the kernel. For null, or where there is no such
    argument or result, the rank is -1. */
FLASH_CAPI FlashTensorType flashKernelGetArgument(const FlashKernel *kernel,
                                                  size_t index);
FLASH_CAPI FlashTensorType flashKernelGetResult(const FlashKernel *kernel,
                                                size_t index);

/** The program at a stage, as flash-run --dump names them: l0, l1, linalg, llvm
    and asm on the CPU; l0, l1, l2, l3 and ptx for GPUs. May compile again. The
    text lives as long as the kernel. */
FLASH_CAPI FlashStatus flashKernelGetText(FlashKernel *kernel,
                                          const char *stage, const char **text,
                                          size_t *length);

/** Tiles of queries and keys, in all batches and heads of a kernel's
    attentions. */
typedef struct FlashTileCounts {
  /** Of these nothing is computed. */
  int64_t skipped;
  /** In these the mask hides no element, and is not evaluated. */
  int64_t unmasked;
  /** In these the mask is evaluated for each element. */
  int64_t masked;
  /** Queries and keys of a tile, of the last attention. */
  int64_t query_tile, key_tile;
} FlashTileCounts;

/** Counts the tiles that a kernel visits for arguments of these sizes; data and
    strides are not read. Only the masks count: `lengths` cut off nothing, and
    what masks read from arrays hides nothing here, since sizes do not say
    what is in them. FLASH_INVALID_TENSOR if the arguments cannot have the
   sizes, or if there are too many tiles to be counted. */
FLASH_CAPI FlashStatus flashKernelCountTiles(const FlashKernel *kernel,
                                             const FlashTensor *arguments,
                                             size_t numArguments,
                                             FlashTileCounts *counts);

/** Writes what the kernel is to a file that appears when it is complete. The
    name's end says what: .mlir is the program; .ll and .s are of the CPU;
    .ptx and .cubin (for which ptxas must be in the PATH) are of GPUs, with a C
    header beside them (docs/launch.md). */
FLASH_CAPI FlashStatus flashKernelSave(FlashKernel *kernel, const char *path);

/** Writes the compiled kernel as bytes, from which flashKernelDeserialize makes
    it again without the compiler. The bytes name the version of this library
    and the processor, and live as long as the kernel. */
FLASH_CAPI FlashStatus flashKernelSerialize(FlashKernel *kernel,
                                            const char **bytes, size_t *length);
/** Makes a kernel of such bytes, which must be trusted: they hold code.
    FLASH_INVALID_ARGUMENT if they are no kernel, if another version wrote them,
    newer or older, if they were compiled for another processor, or if they are
    truncated or damaged: the message says which, and the kernel's program must
    then be compiled again. */
FLASH_CAPI FlashStatus flashKernelDeserialize(const char *bytes, size_t length,
                                              FlashKernel **kernel);

/*===----------------------------------------------------------------------===*\
|* Running on the CPU
\*===----------------------------------------------------------------------===*/

/** A result. The tensor and its memory live until flashBufferDestroy. */
typedef struct FlashBuffer FlashBuffer;

/** Runs a kernel for "cpu" or "emulate" on dense row-major tensors and waits
    for it. `results` takes a buffer for each result. `arguments` may be null if
    there are none. May be called from several threads with the same kernel. */
FLASH_CAPI FlashStatus flashKernelRun(const FlashKernel *kernel,
                                      const FlashTensor *arguments,
                                      size_t numArguments,
                                      FlashBuffer **results);
/** Its rank is -1 for null. */
FLASH_CAPI FlashTensor flashBufferGetTensor(const FlashBuffer *buffer);
/** Null is allowed. */
FLASH_CAPI void flashBufferDestroy(FlashBuffer *buffer);

/** Threads that kernels use on the CPU, up to 1024; 0, as at the start, is
    OMP_NUM_THREADS where that is set, or else one for each processor that the
    affinity of the calling thread and the quota of its control group allow for
    when next a kernel runs. Where the system does not give as many, kernels
    make do with fewer. Must not be called while a kernel runs. */
FLASH_CAPI FlashStatus flashSetThreadCount(unsigned count);

/*===----------------------------------------------------------------------===*\
|* Launching on a GPU
\*===----------------------------------------------------------------------===*/

/** A call of a kernel on a device, used again and again:
    flashCallPrepare, memory for the results, flashCallLaunch. */
typedef struct FlashCall FlashCall;

/** Loads the kernel on a device, which may wait for running kernels. */
FLASH_CAPI FlashStatus flashCallCreate(FlashKernel *kernel, int device,
                                       FlashCall **call);
/** Null is allowed. */
FLASH_CAPI void flashCallDestroy(FlashCall *call);

/** Checks arguments and computes all that follows from their sizes and strides.
    The driver is not called. Sizes and strides are copied. `arguments` may be
    null if there are none. */
FLASH_CAPI FlashStatus flashCallPrepare(FlashCall *call,
                                        const FlashTensor *arguments,
                                        size_t numArguments);

/** The same for results whose strides are not row-major:
    dense, but with dimensions in another order in memory, such as that of
    [batch, position, head, dimension]. `results` has the sizes and strides of
    each; data is not read. Results whose strides the program does not leave
    open are row-major: flashCallGetResult says which they have. */
FLASH_CAPI FlashStatus flashCallPrepareResults(FlashCall *call,
                                               const FlashTensor *arguments,
                                               size_t numArguments,
                                               const FlashTensor *results,
                                               size_t numResults);

/** The sizes and strides of a result of a prepared call, which is dense, and
    row-major unless flashCallPrepareResults was given other strides; its data
    is NULL. Valid until the call is prepared again. For null, a call that is
    not prepared, or where there is no such result, the rank is -1. */
FLASH_CAPI FlashTensor flashCallGetResult(const FlashCall *call, size_t index);

/** Bytes of device memory that a prepared call needs beside its results; -1 for
    null and for calls that are not prepared. */
FLASH_CAPI int64_t flashCallGetScratchBytes(const FlashCall *call);

/** Gives the arguments of a prepared call other memory: an address for each,
    as far from a multiple of 256 bytes as the one before. All else stays. Null
   are only the addresses of no elements. After an error the call is to be
   prepared again. */
FLASH_CAPI FlashStatus flashCallSetAddresses(FlashCall *call,
                                             void *const *arguments,
                                             size_t numArguments);

/** Queues the kernels of a prepared call on a stream (CUstream or cudaStream_t)
    and returns. Neither waits nor allocates device memory, so a stream may be
    capturing a graph. `results` holds an address for each result, aligned to
    256 bytes as `scratch` is; what the call uses must live until the stream has
    come to the end of it. Null are only the addresses of no bytes, and the
    default stream. The device's context is current afterwards. */
FLASH_CAPI FlashStatus flashCallLaunch(FlashCall *call, void *const *results,
                                       size_t numResults, void *scratch,
                                       void *stream);

#ifdef __cplusplus
}
#endif

#endif /* FLASH_C_FLASH_H */
