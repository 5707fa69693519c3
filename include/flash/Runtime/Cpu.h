//===- Cpu.h - What compiled kernels need at run time -----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads, memory and failures of kernels on the CPU. No dependency on LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_CPU_H
#define FLASH_RUNTIME_CPU_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

extern "C" {

/// Runs body(context, i) for every i in [0, count) on all threads, which begin
/// with the lower i. Returns when all bodies have ended. A call from inside a
/// body runs its own bodies on the thread that calls. If a body fails, no
/// further bodies begin, and the caller fails, too (flash_runtime_failure).
void flash_parallel_for(int64_t count, void (*body)(void *, int64_t),
                        void *context);

/// As flash_parallel_for, but for bodies that wait for each other: each i has a
/// thread of its own. If a body fails, the bodies that wait for it must end by
/// themselves (`hasFailed`). If the system does not start enough threads, no
/// body runs, and the kernel fails.
void flash_concurrent_for(int64_t count, void (*body)(void *, int64_t),
                          void *context);

/// Ends the running kernel. Control returns to `callProtected`, which returns
/// the first 1023 bytes of the first message; no destructors run on the way.
/// Outside of `callProtected` the message is printed, and the process aborts.
[[noreturn]] void flash_runtime_failure(const char *message);

/// The allocation functions that `finalize-memref-to-llvm` calls. All memory is
/// aligned to 64 bytes, whatever `alignment` is. If there is not enough memory,
/// the kernel fails with a message that begins with "out of memory". A null
/// pointer may be freed.
void *_mlir_memref_to_llvm_alloc(size_t bytes);
void *_mlir_memref_to_llvm_aligned_alloc(size_t alignment, size_t bytes);
void _mlir_memref_to_llvm_free(void *pointer);

} // extern "C"

namespace flash::runtime {

/// The largest number of threads that may be passed to `setThreadCount`, which
/// does not check it.
constexpr unsigned maxThreadCount = 1024;

/// Sets the number of threads that kernels use, including the thread that calls
/// the kernel. 0, the initial value, stands for the number that
/// `getDefaultThreadCount` (Processors.h) returns when a kernel runs next or
/// `getThreadCount` is called. If the system does not start that many threads,
/// kernels use fewer. Must not be called while a kernel runs.
void setThreadCount(unsigned count);
unsigned getThreadCount();

/// Bytes that kernels have allocated on the heap and not freed yet. Each
/// allocation counts as a multiple of 64 bytes.
struct MemoryUse {
  int64_t current;
  int64_t peak;
};
MemoryUse getMemoryUse();

/// Makes the peak start again from the current use.
void resetPeakMemory();

/// Allocates memory for an object of the running kernel, aligned to 64 bytes.
/// `releaseObject` calls `destroy` and frees the memory. If the kernel fails
/// before that, `callProtected` does both. `destroy` must not call functions of
/// this file.
void *allocateObject(size_t bytes, void (*destroy)(void *));
void releaseObject(void *object);

/// Whether all bytes of new allocations are set to 0xFF, so that floating-point
/// elements are NaN.
void setPoison(bool enable);

/// Limits the bytes that all kernels together have allocated (`getMemoryUse`):
/// an allocation beyond the limit fails. 0 means no limit.
void setMemoryLimit(int64_t bytes);

/// Whether the running kernel has failed on one of its threads.
bool hasFailed();

/// Runs function(argument). If it fails, everything that it has allocated is
/// freed, and the message is returned. If it succeeds, allocations that it has
/// not freed belong to the caller: they are the results.
std::optional<std::string> callProtected(void (*function)(void *),
                                         void *argument);

} // namespace flash::runtime

#endif // FLASH_RUNTIME_CPU_H
