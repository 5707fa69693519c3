//===- CompileOptions.h - What to compile for -------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_COMPILE_COMPILEOPTIONS_H
#define FLASH_COMPILE_COMPILEOPTIONS_H

#include "flash/Machine/Machine.h"
#include "flash/Schedule/Schedule.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <string>
#include <vector>

namespace flash::compile {

/// A stage whose program can be printed.
enum class Dump : unsigned { L0, L1, L2, Linalg, LLVM, Asm, L3, Ptx };

/// Its name in `--dump`.
llvm::StringRef getName(Dump dump);

/// What a program is compiled for.
struct Target {
  enum Kind : uint8_t {
    /// The GPU if there is one and the program can run on it, else the CPU.
    Auto,
    Cpu,
    /// The block programs for a GPU, on the CPU.
    Emulate,
    Gpu,
  };

  Target(Kind kind = Auto, llvm::StringRef gpu = defaultGpu)
      : kind(kind), gpu(gpu) {}
  bool operator==(Kind other) const { return kind == other; }
  bool operator!=(Kind other) const { return kind != other; }

  /// The machine whose schedules and kernels a program has: the GPU, which may
  /// be emulated, or the CPU.
  const Machine &getMachine() const;
  /// The name by which `--target` chooses it: "sm_90a", "emulate:sm_90a".
  std::string getName() const;

  /// What `emulate` alone emulates.
  static constexpr llvm::StringLiteral defaultGpu = "sm_80";

  Kind kind;
  /// Of `Emulate` and `Gpu`, the name of a description (Machine.h).
  llvm::StringRef gpu;
};

/// What measured schedules for a target that is not a GPU call this machine.
std::string getHostDevice(const Target &target);

/// What the compiler needs to know of a program beside its text.
struct CompileOptions {
  Target target;
  /// Empty for the only public function.
  std::string function;
  /// Goes before the program's schedules, key by key.
  Schedule schedule;
  /// A file with measured schedules. Empty for those compiled in.
  std::string tuningFile;
  /// Whose measured schedules to take. Empty for the device that runs, or none.
  std::string device;
  /// How many multiprocessors the GPU has that programs are compiled for. 0
  /// takes the number of the device that runs, or what the module or the target
  /// says.
  int64_t multiprocessors = 0;
  /// The calls that are to have versions, as flash-make-versions takes them.
  std::string versions;
  /// The best schedule is being looked for: neither what the program says is
  /// taken, nor what was measured before.
  bool tune = false;
  /// The kernel is the reference: all floating-point arguments and results are
  /// f64. For the CPU.
  bool isReference = false;
  /// Whether the reference is compiled with optimizations, which cost more time
  /// than they bring where it computes little.
  bool optimizeReference = true;
  /// The program counts the tiles that it visits.
  bool countTiles = false;
  /// Bit set over `Dump`.
  unsigned dumps = 0;
  /// Takes the texts of these stages; without it, they are printed.
  std::function<void(Dump, llvm::StringRef)> takeDump;

  bool isGpu() const { return target == Target::Gpu; }
  bool has(Dump dump) const {
    return dumps & (1u << static_cast<unsigned>(dump));
  }
};

/// Splits the value of a flag at its commas; an empty item is an error.
llvm::Expected<std::vector<std::string>> splitList(llvm::StringRef flag,
                                                   llvm::StringRef text);

/// Each reads the text of an option into `options`; messages begin with the
/// name that flash-run has for it.
llvm::Error parseTarget(llvm::StringRef target, CompileOptions &options);
llvm::Error parseDump(llvm::StringRef text, CompileOptions &options);
llvm::Error parseSchedule(llvm::StringRef text, CompileOptions &options);

} // namespace flash::compile

#endif // FLASH_COMPILE_COMPILEOPTIONS_H
