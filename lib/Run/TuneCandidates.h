//===- TuneCandidates.h - Kernels that compete ------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_RUN_TUNECANDIDATES_H
#define FLASH_LIB_RUN_TUNECANDIDATES_H

#include "flash/Run/Options.h"
#include "flash/Run/Session.h"

namespace flash::run {

/// A schedule and what was measured with it.
struct Candidate {
  flash::Schedule schedule;
  /// Null until it is compiled, and if it cannot be.
  std::shared_ptr<Executor> executor;
  /// Infinite until it is timed.
  double seconds = std::numeric_limits<double>::infinity();
  /// Why it cannot run.
  std::string message;
};

/// Compiles candidates for one device.
class CandidateCompiler {
public:
  /// `gpu` is null where the CPU runs the program.
  CandidateCompiler(Session &session, const Program &program, Target target,
                    const Options &options, Gpu *gpu);

  /// How many are compiled at a time.
  unsigned getWidth() const { return width; }

  /// Candidates that cannot be compiled get a message and no executor.
  void compile(llvm::MutableArrayRef<Candidate> candidates);

private:
  void compileOne(Candidate &candidate);

  Session &session;
  const Program &program;
  Options options;
  Gpu *gpu;
  unsigned width;
};

} // namespace flash::run

#endif // FLASH_LIB_RUN_TUNECANDIDATES_H
