//===- Processors.h - How many processors a process may use -----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_PROCESSORS_H
#define FLASH_RUNTIME_PROCESSORS_H

#include <string>

namespace flash::runtime {

/// The number of threads that kernels use by default: the first number of
/// OMP_NUM_THREADS if it has one. Otherwise it is the number of processors on
/// which the calling thread may run (its affinity), but at most the quota of
/// the control groups (`readProcessorQuota`). From 1 to `maxThreadCount`.
unsigned getDefaultThreadCount();

/// The first number of a list of numbers with commas between them, as
/// OMP_NUM_THREADS has it, or `most` if it is larger. 0 if `text` is null, or
/// if it does not begin with a positive number.
unsigned readThreadCount(const char *text, unsigned most);

/// The number of processors that the quotas of control groups allow, rounded
/// up, and at most `maxThreadCount`; 0 if there is no quota. The smallest quota
/// of the groups of the process, and of the groups around them, counts.
/// `groups` is the file that lists the groups of the process, and `mount` the
/// folder of the hierarchies, of version 1 or 2.
unsigned readProcessorQuota(const std::string &groups = "/proc/self/cgroup",
                            const std::string &mount = "/sys/fs/cgroup");

} // namespace flash::runtime

#endif // FLASH_RUNTIME_PROCESSORS_H
