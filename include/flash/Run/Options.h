//===- Options.h - The command line of flash-run ----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_OPTIONS_H
#define FLASH_RUN_OPTIONS_H

#include "flash/Compile/CompileOptions.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace flash::run {

using namespace compile;

/// The order of the dimensions of arguments in device memory. The last
/// dimension is contiguous.
enum class Layout {
  /// Row-major.
  Dense,
  /// The second and the third dimension from the end are exchanged in memory,
  /// so that the heads of one position are next to each other.
  Bnhd,
};

/// A change of an argument after it was made or read.
struct Fill {
  unsigned argument = 0;
  /// Elements are multiplied by the value instead of being set to it.
  bool scales = false;
  double value = 0;
  /// If it has a value, only this row changes. Rows are along the last
  /// dimension but one; a row of a vector is an element. A negative number
  /// counts from the end.
  std::optional<int64_t> row;
};

/// The options of flash-run. They are checked as far as that is possible
/// without the program.
struct Options : CompileOptions {
  /// The file of the program; "-" for stdin.
  std::string file;
  /// The targets on which the program runs, one after the other. `target` is
  /// one of them.
  llvm::SmallVector<Target> targets = {Target::Auto};
  /// The seed of random inputs.
  uint64_t seed = 0;
  /// The number of threads on the CPU. 0 stands for the default
  /// (`getDefaultThreadCount`).
  unsigned threads = 0;
  /// The .npy files of arguments and of results.
  std::vector<std::string> inputs, outputs;
  /// The sizes of arguments, by their number.
  std::map<unsigned, llvm::SmallVector<int64_t, 4>> shapes;
  bool check = false, bench = false, baseline = false;
  /// Whether the targets are listed, and nothing else is done.
  bool listsTargets = false;
  /// Whether a GPU without a description is an error.
  bool isStrict = false;
  /// The seconds that a search for the fastest schedule may take.
  double tuneSeconds = 150;
  /// The seconds that a measurement takes at least.
  double benchSeconds = 1;
  /// The file of the report; empty for none.
  std::string json;
  /// The file for the events of an emulated run; empty for none.
  std::string events;
  /// A file with a case in each line, instead of `file`.
  std::string suite;
  /// The number of the suite's first case to run, from 1.
  unsigned firstCase = 1;
  /// The files for the kernels and their C header; empty without `-o`.
  std::string output, header;
  /// Whether `ptxas` assembles kernels instead of the driver.
  bool ptxas = false;
  Layout layout = Layout::Dense;
  std::vector<Fill> fills;
  /// The time-out of kernels in seconds.
  double timeout = 60;
  /// The library of the CUDA driver.
  std::string cudaDriver = "libcuda.so.1";
  /// Whether the options need the program to run. With only `--dump` or `-o` it
  /// is compiled and does not run.
  bool runs() const {
    return (!dumps && output.empty()) || check || bench || baseline || tune ||
           countTiles || !outputs.empty() || !json.empty() || !events.empty();
  }
};

/// Parses the command line. If it has an unknown option or a malformed number,
/// LLVM prints a message, and the process ends with status 1. With `--help` it
/// ends with status 0. Other errors are returned.
llvm::Expected<Options> parseOptions(int argc, char **argv);

/// Parses a line of a suite. An option in the line replaces the option in
/// `defaults`. All errors are returned.
llvm::Expected<Options> parseCase(llvm::StringRef line,
                                  const Options &defaults);

} // namespace flash::run

#endif // FLASH_RUN_OPTIONS_H
