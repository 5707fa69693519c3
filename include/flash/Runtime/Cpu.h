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

/// Runs body(context, i) for every i in [0, count), on all threads, in order
/// of starting. Returns when all are done. A nested call runs serially.
void flash_parallel_for(int64_t count, void (*body)(void *, int64_t),
                        void *context);

/// As flash_parallel_for, but with a thread for each i, since the bodies wait
/// for one another. If one fails, so must those that wait for it. Fails where
/// the system does not give a thread for each.
void flash_concurrent_for(int64_t count, void (*body)(void *, int64_t),
                          void *context);

/// Abandons the running kernel: control returns to `callProtected`.
[[noreturn]] void flash_runtime_failure(const char *message);

/// The allocation functions that `finalize-memref-to-llvm` calls.
void *_mlir_memref_to_llvm_alloc(size_t bytes);
void *_mlir_memref_to_llvm_aligned_alloc(size_t alignment, size_t bytes);
void _mlir_memref_to_llvm_free(void *pointer);

} // extern "C"

namespace flash::runtime {

/// The most threads that callers may have.
constexpr unsigned maxThreadCount = 1024;

/// The number of threads that kernels use, the caller among them; 0 means what
/// `getDefaultThreadCount` (Processors.h) says when next a kernel runs. Fewer
/// work where the system does not give as many. Must not be called while a
/// kernel runs.
void setThreadCount(unsigned count);
unsigned getThreadCount();

/// Bytes that kernels have allocated on the heap.
struct MemoryUse {
  int64_t current;
  int64_t peak;
};
MemoryUse getMemoryUse();

/// Makes the peak start again from the current use.
void resetPeakMemory();

/// Memory for an object of the running kernel, aligned to a cache line. It ends
/// with `releaseObject` or, if the kernel fails before, with the call; either
/// runs `destroy`, which must not call this runtime.
void *allocateObject(size_t bytes, void (*destroy)(void *));
void releaseObject(void *object);

/// Fills new allocations with 0xFF, which reads as NaN.
void setPoison(bool enable);

/// An allocation that would exceed this many bytes in total fails; 0 means no
/// limit.
void setMemoryLimit(int64_t bytes);

/// Whether the running kernel has failed, on whichever thread.
bool hasFailed();

/// Runs function(argument). If it fails, frees all that it had allocated and
/// returns the message.
std::optional<std::string> callProtected(void (*function)(void *),
                                         void *argument);

} // namespace flash::runtime

#endif // FLASH_RUNTIME_CPU_H
