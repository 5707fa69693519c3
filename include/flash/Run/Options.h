//===- Options.h - What the user asked for ----------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_OPTIONS_H
#define FLASH_RUN_OPTIONS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>
#include <vector>

namespace flash::run {

/// A stage whose program can be printed.
enum class Dump : unsigned { L0, L1, L2, Linalg, LLVM, Asm };

/// What a program is compiled for.
enum class Target {
  Cpu,
  /// The block programs for GPUs, on the CPU.
  Emulate,
};

/// The options of flash-run, checked as far as is possible without the program.
struct Options {
  std::string file;
  Target target = Target::Cpu;
  /// Empty for the only public function.
  std::string function;
  uint64_t seed = 0;
  /// 0 for one per processor.
  unsigned threads = 0;
  std::vector<std::string> inputs, outputs;
  std::map<unsigned, llvm::SmallVector<int64_t, 4>> shapes;
  bool check = false, bench = false, baseline = false, countTiles = false;
  std::string json;
  /// Bit set over `Dump`.
  unsigned dumps = 0;
  /// 0 lets the compiler choose.
  int64_t queryTile = 0, keyTile = 0;

  bool has(Dump dump) const {
    return dumps & (1u << static_cast<unsigned>(dump));
  }
  /// Whether anything is wanted that needs the program to run. `--dump` alone
  /// only compiles.
  bool runs() const {
    return !dumps || check || bench || baseline || countTiles ||
           !outputs.empty() || !json.empty();
  }
};

/// Parses the command line. Unknown flags and malformed numbers end the process
/// with LLVM's message and status 1, `--help` with status 0.
llvm::Expected<Options> parseOptions(int argc, char **argv);

} // namespace flash::run

#endif // FLASH_RUN_OPTIONS_H
