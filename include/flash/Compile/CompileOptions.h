//===- CompileOptions.h - Options of the compiler ---------------*- C++ -*-===//
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

/// A stage at which the program can be printed.
enum class Dump : unsigned { L0, L1, L2, Linalg, LLVM, Asm, L3, Ptx };

/// The name of the stage in `--dump`.
llvm::StringRef getName(Dump dump);

/// The machine for which a program is compiled.
struct Target {
  enum Kind : uint8_t {
    /// The GPU if there is one and the program can run on it, else the CPU.
    Auto,
    Cpu,
    /// The CPU, which executes the block programs for a GPU.
    Emulate,
    Gpu,
  };

  Target(Kind kind = Auto, llvm::StringRef gpu = defaultGpu)
      : kind(kind), gpu(gpu) {}
  bool operator==(Kind other) const { return kind == other; }
  bool operator!=(Kind other) const { return kind != other; }

  /// The machine for which schedules are chosen and kernels are compiled: the
  /// GPU, also if it is emulated, or the CPU. The CPU for `Auto`.
  const Machine &getMachine() const;
  /// The value of `--target` for this target, such as "sm_90a" or
  /// "emulate:sm_90a".
  std::string getName() const;

  /// The GPU that the target "emulate" emulates if no GPU is named.
  static constexpr llvm::StringLiteral defaultGpu = "sm_80";

  Kind kind;
  /// For `Emulate` and `Gpu`: the name of the description of the GPU
  /// (Machine.h).
  llvm::StringRef gpu;
};

/// The name of this machine in tuning tables, for targets that are no GPU: the
/// model name of the processor, or "emulation".
std::string getHostDevice(const Target &target);

/// What the compiler needs to know in addition to the text of a program.
struct CompileOptions {
  Target target;
  /// The name of the function. Empty for the only public function.
  std::string function;
  /// A schedule for all attentions and gradients. Its keys have precedence over
  /// the keys of the program's own schedules.
  Schedule schedule;
  /// A file with measured schedules. Empty for none.
  std::string tuningFile;
  /// The name of the device whose schedules in `tuningFile` are used. Empty for
  /// the device that runs the program, if it is known.
  std::string device;
  /// The number of multiprocessors of the GPU for which programs are compiled.
  /// 0 stands for the number of the device that runs the program or, if that is
  /// not known, for the number that the module or the target has.
  int64_t multiprocessors = 0;
  /// The calls for which versions are made, in the syntax of the option of the
  /// pass flash-make-versions. Empty for no versions.
  std::string versions;
  /// The compilation is part of a search for the best schedule. Schedules of
  /// the program and measured schedules are ignored.
  bool tune = false;
  /// The program that is compiled is the reference: all floating-point
  /// arguments and results are f64. For the CPU.
  bool isReference = false;
  /// Whether the reference is compiled with optimizations. They take more time
  /// than they save if the reference computes little.
  bool optimizeReference = true;
  /// The program counts the tiles that it visits.
  bool countTiles = false;
  /// A set of stages to print: bit i is for the `Dump` with the value i.
  unsigned dumps = 0;
  /// Receives the texts of these stages. If it is null, they are printed to
  /// stdout.
  std::function<void(Dump, llvm::StringRef)> takeDump;

  bool isGpu() const { return target == Target::Gpu; }
  bool has(Dump dump) const {
    return dumps & (1u << static_cast<unsigned>(dump));
  }
};

/// Splits the value of an option at commas. An empty item is an error. `flag`
/// is the name of the option in the message.
llvm::Expected<std::vector<std::string>> splitList(llvm::StringRef flag,
                                                   llvm::StringRef text);

/// Each function reads the value of an option into `options`. Error messages
/// have the name of the option in flash-run.
llvm::Error parseTarget(llvm::StringRef target, CompileOptions &options);
llvm::Error parseDump(llvm::StringRef text, CompileOptions &options);
llvm::Error parseSchedule(llvm::StringRef text, CompileOptions &options);

} // namespace flash::compile

#endif // FLASH_COMPILE_COMPILEOPTIONS_H
