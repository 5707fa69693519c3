/*===- Flash.h - The compiler as a C library ----------------------*- C -*-===*\
|*                                                                            *|
|* Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.    *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Compiles programs from text and runs them on the CPU or launches them on a *|
|* GPU. Functions that can fail return a FlashStatus; flashGetErrorMessage    *|
|* returns the text of a failure. A function that fails leaves its outputs as *|
|* they were. Functions may be called from several threads, but not with the  *|
|* same object at the same time, unless stated otherwise.                     *|
|*                                                                            *|
|* No pointer may be null unless stated otherwise: a null pointer is          *|
|* FLASH_INVALID_ARGUMENT. The comments of functions that return no status    *|
|* say what they return for null; the message is set in that case, too.       *|
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
  /** The program cannot take the sizes, strides or addresses of tensors. */
  FLASH_INVALID_TENSOR,
  /** There is no driver, no GPU, or no GPU that the program can run on. */
  FLASH_UNAVAILABLE,
  FLASH_OUT_OF_MEMORY,
  /** Anything else, such as a file that cannot be written or a failed driver
      call. */
  FLASH_FAILURE,
  /** The caller has stopped a compilation. */
  FLASH_INTERRUPTED
} FlashStatus;

/** The message of the last function that failed on this thread. It is valid
    until another function of this library is called on this thread. */
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

/** The size of a dimension whose size the program does not fix. */
#define FLASH_DYNAMIC INT64_MIN

/** The type of an argument or a result in the program. */
typedef struct FlashTensorType {
  FlashElementType element;
  int32_t rank;
  /** `rank` sizes; each may be FLASH_DYNAMIC. */
  const int64_t *sizes;
} FlashTensorType;

/** A tensor in memory of a device or of the host, which the caller owns. A
    tensor that breaks a rule below is FLASH_INVALID_TENSOR. */
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
  /** sizeof(FlashCompileOptions), as the caller was compiled. Fields that were
      added to the structure since then count as 0. */
  size_t struct_size;
  /** One of flashGetTargets: "cpu", a GPU such as "sm_90a", or "emulate" and
      "emulate:sm_90a" for its block programs on the CPU. "reference" is for
      checks: it runs on the CPU, stores all scores, computes in f64, and has
      f64 instead of every floating-point type of the arguments and results. */
  const char *target;
  /** The function to compile; NULL for the only public one. */
  const char *function;
  /** The schedule, in the form of flash-run's --schedule; NULL for the
      compiler's choice. */
  const char *schedule;
  /** Sizes of the arguments in calls for which the program gets versions of its
      own, in the form of flash-run's --versions. Each call then chooses a
      version by its sizes. NULL for none. */
  const char *versions;
  /** The device whose schedules in the tuning file are used, such as
      "NVIDIA H200". NULL stands for this machine's CPU where the program is for
      the CPU, and for no device where it is for a GPU. */
  const char *device;
  /** The number of multiprocessors of the GPU for which schedules are chosen,
      at most 4096. 0 for the number in the program or else in the description
      of the target. Kernels give right results on any number. */
  int64_t multiprocessors;
  /** A file with measured schedules (docs/tuning.md), which have precedence
      over the schedules that the library chooses. It is an error if the file
      has none for the device. NULL for no file. */
  const char *tuning_file;
  /** A function that the compiling thread calls between passes, at most 20
      times in a second. If it returns another number than 0, the compilation
      fails with FLASH_INTERRUPTED. NULL if nothing interrupts. */
  int (*is_interrupted)(void);
} FlashCompileOptions;

/** All targets, with commas between them. The string is static. */
FLASH_CAPI const char *flashGetTargets(void);

/** A number in the description of a target for GPUs (docs/machines.md), such as
    its "shared_bytes_per_block" or "registers". FLASH_INVALID_ARGUMENT if the
    target is for no GPU, or if its description has no such number. */
FLASH_CAPI FlashStatus flashTargetGetNumber(const char *target, const char *key,
                                            int64_t *value);

/** The target for a device of this machine, counted from 0, such as "sm_90a".
    For a device without a description it is the nearest target whose kernels
    run on the device (docs/machines.md). The string is static.
    FLASH_UNAVAILABLE if there is no driver, no such device or no target. */
FLASH_CAPI FlashStatus flashGetDeviceTarget(int device, const char **target);

/** A device of this machine, with what FlashCompileOptions needs for it. */
typedef struct FlashDevice {
  const char *target, *name;
  int64_t multiprocessors;
  /** A sentence to show to the user of a device that has no description, or on
      whose compute capability flash-mlir was never tried; else NULL. */
  const char *warning;
} FlashDevice;

/** Describes a device, counted from 0. The texts live as long as the
    process. */
FLASH_CAPI FlashStatus flashGetDevice(int device, FlashDevice *description);

/** The number of the class of a size. Sizes with the same class share versions.
    Each size up to 64 is a class of its own; the class of a larger size depends
    on its three highest bits and on whether 64, 128 and 256 divide it. */
FLASH_CAPI int64_t flashGetSizeClass(int64_t size);

/** The length to give flashProgramSpecialize for the CPU, instead of a number
    of queries or keys. All numbers with the same such length have the same
    versions for the CPU: all numbers up to 16, the ones from 17 to 32, the ones
    from 33 to 64, and all larger numbers. */
FLASH_CAPI int64_t flashGetCpuLength(int64_t length);

/** Writes the version of a program for calls with arguments of certain sizes.
    The version has the schedules of a program that is written for sizes like
    these. Where it makes a difference, it also states what else is known of the
    sizes: the numbers of heads, that there is one query, or that lengths are
    multiples of tiles. So it is as fast as a program without open sizes, for
    all calls with the same numbers of heads whose other sizes have the same
    classes (flashGetSizeClass). `arguments` holds the first arguments;
    FLASH_DYNAMIC is a size that is not known, and data and strides are not
    read. `versions` of the options must be NULL. Sizes that the program cannot
    have are FLASH_INVALID_PROGRAM. The version is valid until this function is
    called again on this thread. */
FLASH_CAPI FlashStatus flashProgramSpecialize(
    const char *text, size_t length, const FlashCompileOptions *options,
    const FlashTensor *arguments, size_t numArguments, const char **version,
    size_t *versionLength);

/** Writes the versions of a program for many calls, as flashProgramSpecialize
    does for one call, in a tenth of the time, since the program is read once.
    `arguments` has the first `numArguments` arguments of each call, one call
    after the other. `take` is called for each call in order, with `data`, the
    number of the call, and its version, which is valid until `take` returns.
    Many calls may have the same version. If the function fails, `take` was
    called for the calls before the one that failed. */
FLASH_CAPI FlashStatus flashProgramSpecializeEach(
    const char *text, size_t length, const FlashCompileOptions *options,
    const FlashTensor *arguments, size_t numArguments, size_t numCalls,
    void (*take)(void *data, size_t call, const char *version, size_t length),
    void *data);

/** Writes a program in which a separate function computes the tiles that masks
    leave, so that this is done once for many calls (flash-outline-block-maps).
    The program's function then takes block maps as further arguments. The
    function whose name has "_plan" appended takes the original arguments and
    returns these maps. If `arguments` are given, the result is the version for
    them, as flashProgramSpecialize writes it. `schedule` becomes the keys of
    the schedule on which the maps depend: another program with the same mask
    takes the same maps if it is compiled with these keys. The mask is what the
    program declares (mask, lengths and keep). If it declares nothing, elements
    for which its score region yields -inf by position count as masked. A map is
    made even if rows are too short to compute it in each call (block_map of
    schedules). `planned` and `schedule` become NULL if the compiler knows the
    tiles or there is only one tile of keys. Both are valid until this function
    is called again on this thread. */
FLASH_CAPI FlashStatus flashProgramPlan(const char *text, size_t length,
                                        const FlashCompileOptions *options,
                                        const FlashTensor *arguments,
                                        size_t numArguments,
                                        const char **planned,
                                        const char **schedule);

/** Compiles a program, a text of `length` bytes. Needs no GPU.
    FLASH_INVALID_PROGRAM if the program does not compile, and
    FLASH_INVALID_ARGUMENT if the options are malformed or contradict each
    other. */
FLASH_CAPI FlashStatus flashKernelCompile(const char *text, size_t length,
                                          const FlashCompileOptions *options,
                                          FlashKernel **kernel);
/** Destroys a kernel. All calls of the kernel must have been destroyed before.
    Null is allowed. */
FLASH_CAPI void flashKernelDestroy(FlashKernel *kernel);

/** The target for which the kernel was compiled; "" for null. */
FLASH_CAPI const char *flashKernelGetTarget(const FlashKernel *kernel);
/** The numbers of arguments and of results; 0 for null. */
FLASH_CAPI size_t flashKernelGetNumArguments(const FlashKernel *kernel);
FLASH_CAPI size_t flashKernelGetNumResults(const FlashKernel *kernel);
/** The type of an argument or a result. Its sizes live as long as the kernel.
    For null, or if there is no such argument or result, the rank is -1. */
FLASH_CAPI FlashTensorType flashKernelGetArgument(const FlashKernel *kernel,
                                                  size_t index);
FLASH_CAPI FlashTensorType flashKernelGetResult(const FlashKernel *kernel,
                                                size_t index);

/** The program at a stage, by the names of flash-run --dump: l0, l1, linalg,
    llvm and asm for the CPU; l0, l1, l2, linalg, llvm and asm for "emulate";
    linalg, llvm and asm for "reference"; l0, l1, l2, l3 and ptx for GPUs. For
    most stages the program is compiled again when a text is first read. The
    text lives as long as the kernel. FLASH_INVALID_ARGUMENT if the target has
    no such stage. */
FLASH_CAPI FlashStatus flashKernelGetText(FlashKernel *kernel,
                                          const char *stage, const char **text,
                                          size_t *length);

/** Numbers of tiles of queries and keys, summed over all batches and heads of a
    kernel's attentions. */
typedef struct FlashTileCounts {
  /** Tiles for which nothing is computed. */
  int64_t skipped;
  /** Tiles in which the mask hides no element and is not evaluated. */
  int64_t unmasked;
  /** Tiles in which the mask is evaluated for each element. */
  int64_t masked;
  /** The numbers of queries and keys in a tile of the last attention. */
  int64_t query_tile, key_tile;
} FlashTileCounts;

/** Counts the tiles that a kernel visits for arguments of these sizes; data and
    strides are not read. Only masks are taken into account: `lengths` and masks
    that read arrays hide nothing here, since the contents of arrays are not
    known. FLASH_INVALID_TENSOR if the arguments cannot have the sizes, or if
    there are too many tiles to be counted. */
FLASH_CAPI FlashStatus flashKernelCountTiles(const FlashKernel *kernel,
                                             const FlashTensor *arguments,
                                             size_t numArguments,
                                             FlashTileCounts *counts);

/** Writes the kernel to a file, which appears when it is complete. The ending
    of the name chooses the content: .mlir is the program; for the CPU, .ll is
    LLVM's IR and .s is assembly; for GPUs, .ptx and .cubin are written with a C
    header beside them (docs/launch.md). A .cubin needs ptxas in the PATH.
    FLASH_FAILURE if the kernel's target does not have the ending, or if the
    file cannot be written. */
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

/** A result of flashKernelRun. The tensor and its memory live until
    flashBufferDestroy. */
typedef struct FlashBuffer FlashBuffer;

/** Runs a kernel for "cpu", "emulate" or "reference" on dense row-major tensors
    and waits for it. `results` must have room for one buffer for each result.
    `arguments` may be null if there are none. Several threads may call this
    with the same kernel. FLASH_INVALID_ARGUMENT if the kernel is for a GPU;
    FLASH_INVALID_TENSOR if the program cannot take the arguments, or if an
    assertion of the program fails; FLASH_OUT_OF_MEMORY if memory or threads are
    missing. */
FLASH_CAPI FlashStatus flashKernelRun(const FlashKernel *kernel,
                                      const FlashTensor *arguments,
                                      size_t numArguments,
                                      FlashBuffer **results);
/** The tensor of a result; its rank is -1 for null. */
FLASH_CAPI FlashTensor flashBufferGetTensor(const FlashBuffer *buffer);
/** Null is allowed. */
FLASH_CAPI void flashBufferDestroy(FlashBuffer *buffer);

/** Sets the number of threads that kernels use on the CPU, at most 1024. With
    0, the initial value, the number is OMP_NUM_THREADS if that is set.
    Otherwise it is the number of processors that the affinity of the calling
    thread and the quota of its control group allow when the next kernel runs.
    If the system does not start that many threads, kernels use fewer. Must not
    be called while a kernel runs. */
FLASH_CAPI FlashStatus flashSetThreadCount(unsigned count);

/*===----------------------------------------------------------------------===*\
|* Launching on a GPU
\*===----------------------------------------------------------------------===*/

/** A call of a kernel on a device, which can be repeated: flashCallPrepare,
    then memory for the results, then flashCallLaunch. */
typedef struct FlashCall FlashCall;

/** Loads the kernel on a device, counted from 0. This may wait for running
    kernels. FLASH_INVALID_ARGUMENT if the kernel is for the CPU, and
    FLASH_UNAVAILABLE if there is no such device or it cannot run the kernel. */
FLASH_CAPI FlashStatus flashCallCreate(FlashKernel *kernel, int device,
                                       FlashCall **call);
/** Null is allowed. */
FLASH_CAPI void flashCallDestroy(FlashCall *call);

/** Checks arguments and computes everything that depends on their sizes and
    strides, which are copied. The driver is not called. `arguments` may be null
    if there are none. If the kernel cannot take an argument, this returns
    FLASH_INVALID_TENSOR, and the message names the argument. After an error the
    call is not prepared, even if it was before. */
FLASH_CAPI FlashStatus flashCallPrepare(FlashCall *call,
                                        const FlashTensor *arguments,
                                        size_t numArguments);

/** As flashCallPrepare, for results whose strides are not row-major. Their
    dimensions may have another order in memory, such as [batch, position, head,
    dimension], and there may be gaps between elements, which are not written.
    `results` has the sizes and strides of each result; data is not read. A
    result whose strides are fixed by the program stays row-major;
    flashCallGetResult returns the strides. FLASH_INVALID_TENSOR also if there
    are not as many `results` as the kernel has, or if one has other sizes or
    has elements that share an address. */
FLASH_CAPI FlashStatus flashCallPrepareResults(FlashCall *call,
                                               const FlashTensor *arguments,
                                               size_t numArguments,
                                               const FlashTensor *results,
                                               size_t numResults);

/** The sizes and strides of a result of a prepared call, which is row-major
    unless flashCallPrepareResults was given other strides; its data
    is NULL. Valid until the call is prepared again. For null, a call that is
    not prepared, or where there is no such result, the rank is -1. */
FLASH_CAPI FlashTensor flashCallGetResult(const FlashCall *call, size_t index);

/** Bytes of device memory that a prepared call needs beside its results; -1 for
    null and for calls that are not prepared. */
FLASH_CAPI int64_t flashCallGetScratchBytes(const FlashCall *call);

/** Gives the arguments of a prepared call other memory, with an address for
    each argument. An address must have the same remainder modulo 256 as the
    previous one, and may be null only if the argument has no elements. Sizes
    and strides stay the same. After an error prepare the call again. */
FLASH_CAPI FlashStatus flashCallSetAddresses(FlashCall *call,
                                             void *const *arguments,
                                             size_t numArguments);

/** Queues the kernels of a prepared call on a stream (CUstream or cudaStream_t)
    and returns. This neither waits nor allocates device memory, so the stream
    may be capturing a graph. `results` holds an address for each result, a
    multiple of 16 bytes; that of `scratch` is a multiple of 256. They may be
    null only for memory of 0 bytes; a null stream is the default stream. Memory
    must stay valid until the stream has executed the call. The device's context
    is current afterwards. */
FLASH_CAPI FlashStatus flashCallLaunch(FlashCall *call, void *const *results,
                                       size_t numResults, void *scratch,
                                       void *stream);

#ifdef __cplusplus
}
#endif

#endif /* FLASH_C_FLASH_H */
