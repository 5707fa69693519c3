//===- Kernel.h - A compiled function ---------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_KERNEL_H
#define FLASH_RUN_KERNEL_H

#include "flash/Run/HostTensor.h"
#include "flash/Run/Options.h"
#include "flash/Runtime/TileCounts.h"
#include "flash/Target/Cpu/Jit.h"
#include "mlir/IR/OwningOpRef.h"

namespace flash::run {

/// Which of the three translations of a program.
enum class Variant {
  /// The compiler's: tiles and the online softmax.
  Flash,
  /// All scores in memory: the baseline.
  Naive,
  /// The naive one in f64, on f64 copies of the floating-point inputs. Its
  /// results are those of the program and then the log-sum-exp of every
  /// attention that could be given that result.
  Reference,
};

/// Whether the program launches block programs itself, so that no level above
/// says what it computes.
bool isBlockLevel(mlir::ModuleOp program);

/// Seconds spent in the stages of compilation, in their order.
using StageTimes = llvm::SmallVector<std::pair<llvm::StringRef, double>>;

/// A function of a program, compiled for this machine.
class Kernel {
public:
  /// Compiles a copy of the program. `Options` says which stages to print. A
  /// program that is at level 2 already can only be emulated.
  static llvm::Expected<Kernel> compile(mlir::ModuleOp program,
                                        llvm::StringRef entry, Variant variant,
                                        const Options &options);

  /// Runs the function once. A failure at run time, such as sizes that
  /// disagree or an exhausted memory, comes back as an error.
  llvm::Expected<std::vector<HostTensor>>
  run(llvm::ArrayRef<HostTensor> inputs);

  /// Most bytes the last run held at a time beyond inputs and results.
  int64_t getPeakBytes() const { return peakBytes; }
  /// Tiles the last run visited, if the kernel was compiled to count them.
  runtime::TileCounts getTileCounts() const { return tileCounts; }
  const StageTimes &getTimes() const { return times; }
  /// The program at level 0, from which its work can be counted.
  mlir::ModuleOp getLevel0() { return *level0; }

private:
  /// From the program to linalg on tensors, by way of tiles.
  llvm::Error runFront(mlir::ModuleOp module, const Options &options);

  mlir::OwningOpRef<mlir::ModuleOp> level0;
  std::unique_ptr<CpuExecutable> executable;
  llvm::SmallVector<DType> resultTypes;
  StageTimes times;
  int64_t peakBytes = 0;
  runtime::TileCounts tileCounts = {0, 0};
};

} // namespace flash::run

#endif // FLASH_RUN_KERNEL_H
