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

/// The number of threads that a process has by default: OMP_NUM_THREADS where
/// that is set, or else the processors of the calling thread's affinity, and no
/// more than the quota of a control group allows for.
unsigned getDefaultThreadCount();

/// The first number of a list as OMP_NUM_THREADS has it; 0 where that is null
/// or malformed, and at most `most`.
unsigned readThreadCount(const char *text, unsigned most);

/// The processors, rounded up, that the quotas of control groups allow for; 0
/// where there is none. `groups` is the file that names the groups of the
/// process, and `mount` where the hierarchies are.
unsigned readProcessorQuota(const std::string &groups = "/proc/self/cgroup",
                            const std::string &mount = "/sys/fs/cgroup");

} // namespace flash::runtime

#endif // FLASH_RUNTIME_PROCESSORS_H
