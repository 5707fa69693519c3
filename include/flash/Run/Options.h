//===- Options.h - What the command line says -------------------*- C++ -*-===//
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

/// How the arguments lie in device memory. The last dimension is contiguous.
enum class Layout {
  /// Row-major.
  Dense,
  /// The second and third dimension from the end are transposed, so that the
  /// heads of one position are neighbours.
  Bnhd,
};

/// A change of an argument after it was made or read.
struct Fill {
  unsigned argument = 0;
  /// Elements are multiplied by the value instead of being set to it.
  bool scales = false;
  double value = 0;
  /// The only row that changes, along the last dimension but one (along the
  /// only one of a vector), from the end if negative.
  std::optional<int64_t> row;
};

/// The options of flash-run, checked as far as is possible without the program.
struct Options : CompileOptions {
  std::string file;
  uint64_t seed = 0;
  /// 0 for one per processor.
  unsigned threads = 0;
  std::vector<std::string> inputs, outputs;
  std::map<unsigned, llvm::SmallVector<int64_t, 4>> shapes;
  bool check = false, bench = false, baseline = false;
  /// The targets are listed, and nothing else is done.
  bool listsTargets = false;
  /// A GPU that is not described is an error.
  bool isStrict = false;
  /// How long to look for the best schedule.
  double tuneSeconds = 150;
  /// Seconds that a measurement takes at least.
  double benchSeconds = 1;
  std::string json;
  /// Where the events of an emulated run go.
  std::string events;
  /// A file with a case in each line, instead of `file`.
  std::string suite;
  /// The number of the suite's first case to run, from 1.
  unsigned firstCase = 1;
  /// Where the kernels and their C header go; empty without `-o`.
  std::string output, header;
  /// Kernels are assembled by `ptxas` and not by the driver.
  bool ptxas = false;
  Layout layout = Layout::Dense;
  std::vector<Fill> fills;
  /// Seconds that a kernel may take.
  double timeout = 60;
  std::string cudaDriver = "libcuda.so.1";
  /// Whether anything is wanted that needs the program to run. `--dump` or `-o`
  /// alone only compile.
  bool runs() const {
    return (!dumps && output.empty()) || check || bench || baseline || tune ||
           countTiles || !outputs.empty() || !json.empty() || !events.empty();
  }
};

/// Parses the command line. Unknown flags and malformed numbers end the process
/// with LLVM's message and status 1, `--help` with status 0.
llvm::Expected<Options> parseOptions(int argc, char **argv);

/// Parses a line of a suite, in which a flag replaces that of `defaults`.
/// Errors of every kind come back.
llvm::Expected<Options> parseCase(llvm::StringRef line,
                                  const Options &defaults);

} // namespace flash::run

#endif // FLASH_RUN_OPTIONS_H
