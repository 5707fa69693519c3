//===- ProcessorsTest.cpp - Affinity, quotas and OMP_NUM_THREADS ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With an argument, a folder that it may write to: quotas of control groups.
// Without one it prints the number of threads that kernels have by default.
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/Processors.h"
#include "flash/Runtime/Cpu.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

using namespace flash::runtime;

static int failures = 0;

static void expect(unsigned found, unsigned expected, const char *what) {
  if (found == expected)
    return;
  ++failures;
  std::fprintf(stderr, "FAILED: %s: %u, expected %u\n", what, found, expected);
}

static void write(const std::string &path, const char *content) {
  std::filesystem::create_directories(
      std::filesystem::path(path).parent_path());
  std::ofstream(path) << content;
}

static void testQuotas(const std::string &folder) {
  std::string groups = folder + "/groups", mount = folder + "/mount";
  expect(readProcessorQuota(groups, mount), 0, "no control groups");
  write(groups, "0::/a/b\n");
  expect(readProcessorQuota(groups, mount), 0, "no files");
  write(mount + "/a/b/cpu.max", "max 100000\n");
  expect(readProcessorQuota(groups, mount), 0, "version 2, no quota");
  write(mount + "/a/cpu.max", "250000 100000\n");
  expect(readProcessorQuota(groups, mount), 3, "of a group above, rounded up");
  write(mount + "/a/b/cpu.max", "50000 100000\n");
  expect(readProcessorQuota(groups, mount), 1, "the least of both");
  write(groups, "0::/elsewhere/c\n");
  write(mount + "/cpu.max", "200000 100000\n");
  expect(readProcessorQuota(groups, mount), 2, "a path of the host");

  std::filesystem::remove_all(mount);
  write(groups, "8:pids:/x\n7:cpu,cpuacct:/x\n3:cpuset:/x\n0::/\n");
  write(mount + "/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  write(mount + "/cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n");
  write(mount + "/cpuset/x/cpu.max", "100000 100000\n");
  expect(readProcessorQuota(groups, mount), 0, "version 1, no quota");
  write(mount + "/cpu,cpuacct/x/cpu.cfs_quota_us", "400000\n");
  expect(readProcessorQuota(groups, mount), 4, "version 1");
  write(mount + "/cpu,cpuacct/x/cpu.cfs_quota_us", "9000000000000\n");
  expect(readProcessorQuota(groups, mount), maxThreadCount, "a large quota");
}

static void testThreadCounts() {
  expect(readThreadCount(nullptr, 8), 0, "not set");
  for (const char *text : {"", "x", "0", "-3", "2x", ","})
    expect(readThreadCount(text, 8), 0, text);
  for (const char *text : {"3", " 3 ", "3,2", "3 , 1"})
    expect(readThreadCount(text, 8), 3, text);
  expect(readThreadCount("99999999999999999999", 8), 8, "too many");
}

int main(int argc, char **argv) {
  if (argc < 2) {
    std::printf("%u threads\n", getThreadCount());
    return 0;
  }
  testQuotas(argv[1]);
  testThreadCounts();
  std::printf("%d failures\n", failures);
  return failures != 0;
}
