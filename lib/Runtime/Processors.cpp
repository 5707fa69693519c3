//===- Processors.cpp - How many processors a process may use -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/Processors.h"
#include "flash/Runtime/Cpu.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <thread>

using namespace flash::runtime;

/// The content of a small file; empty where there is none.
static std::string readFile(const std::string &path) {
  char content[4096];
  FILE *file = std::fopen(path.c_str(), "r");
  if (!file)
    return "";
  size_t size = std::fread(content, 1, sizeof(content), file);
  std::fclose(file);
  return std::string(content, size);
}

/// The processors of one group; 0 without a quota, which is "max" or -1.
static unsigned readGroup(const std::string &directory) {
  long quota = 0, period = 0;
  std::string limits = readFile(directory + "/cpu.max");
  if (std::sscanf(limits.c_str(), "%ld %ld", &quota, &period) != 2) {
    quota = std::atol(readFile(directory + "/cpu.cfs_quota_us").c_str());
    period = std::atol(readFile(directory + "/cpu.cfs_period_us").c_str());
  }
  if (quota <= 0 || period <= 0)
    return 0;
  return unsigned(std::min<long>((quota - 1) / period + 1, maxThreadCount));
}

unsigned flash::runtime::readProcessorQuota(const std::string &groups,
                                            const std::string &mount) {
  unsigned least = 0;
  // Lines are "0::/path" for version 2, "7:cpu,cpuacct:/path" for version 1.
  std::string lines = readFile(groups);
  for (size_t begin = 0, end; begin < lines.size(); begin = end + 1) {
    end = std::min(lines.find('\n', begin), lines.size());
    std::string line = lines.substr(begin, end - begin);
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string names = line.substr(first + 1, second - first - 1);
    if (!names.empty() && ("," + names + ",").find(",cpu,") == names.npos)
      continue;
    std::string hierarchy = names.empty() ? mount : mount + "/" + names;
    std::string path = line.substr(second + 1);
    // Each group above limits it, too. In a container, the path may be the
    // host's, whose top alone is mounted.
    for (;;) {
      unsigned found = readGroup(hierarchy + path);
      if (found && (!least || found < least))
        least = found;
      size_t slash = path.rfind('/');
      if (slash == std::string::npos)
        break;
      path.resize(slash);
    }
  }
  return least;
}

unsigned flash::runtime::readThreadCount(const char *text, unsigned most) {
  if (!text)
    return 0;
  char *end = nullptr;
  long count = std::strtol(text, &end, 10);
  end += std::strspn(end, " \t");
  if (count <= 0 || (*end != '\0' && *end != ','))
    return 0;
  return unsigned(std::min<long>(count, most));
}

unsigned flash::runtime::getDefaultThreadCount() {
  if (unsigned wanted =
          readThreadCount(std::getenv("OMP_NUM_THREADS"), maxThreadCount))
    return wanted;
  // One holds 1024 processors, and a kernel that knows more takes no less.
  cpu_set_t affinity[8];
  unsigned count = sched_getaffinity(0, sizeof(affinity), affinity) == 0
                       ? unsigned(CPU_COUNT_S(sizeof(affinity), affinity))
                       : std::thread::hardware_concurrency();
  if (unsigned quota = readProcessorQuota())
    count = std::min(count, quota);
  return std::clamp(count, 1u, maxThreadCount);
}
