//===- HostMemory.cpp - Aligned and guarded memory ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/HostTensor.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <sys/mman.h>
#include <unistd.h>

using namespace flash::run;

// Both placements map whole pages: anonymous pages are zero, cost nothing until
// they are touched, and go back to the system at once.
llvm::Expected<HostTensor> HostTensor::allocate(TensorSpec spec,
                                                Placement placement) {
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t bytes = static_cast<size_t>(spec.getNumBytes());
  size_t body = llvm::alignTo(std::max<size_t>(bytes, 1), page);
  // Room for the guard page, or for reads of whole vectors at the end.
  size_t total = body + page;
  void *base = mmap(nullptr, total, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    return llvm::createStringError(
        llvm::formatv("out of memory: cannot allocate {0} bytes for a tensor "
                      "of {1}",
                      bytes, spec.str()));
  Memory memory(base, [total](void *base) { munmap(base, total); });
  char *data = static_cast<char *>(base);
  if (placement == Placement::Guarded) {
    if (mprotect(data + body, page, PROT_NONE) != 0)
      return llvm::createStringError("cannot protect a guard page");
    data += body - bytes;
  }
  return HostTensor(std::move(spec), std::move(memory), data);
}

std::optional<int64_t> flash::run::getAvailableMemory() {
  // The file has no size of its own, so it is read as a stream.
  auto file = llvm::MemoryBuffer::getFileAsStream("/proc/meminfo");
  if (!file)
    return std::nullopt;
  for (llvm::line_iterator line(**file); !line.is_at_eof(); ++line) {
    llvm::StringRef text = *line;
    int64_t kilobytes;
    if (text.consume_front("MemAvailable:") &&
        !text.trim().consumeInteger(10, kilobytes))
      return kilobytes * 1024;
  }
  return std::nullopt;
}
