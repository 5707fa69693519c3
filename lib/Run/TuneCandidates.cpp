//===- TuneCandidates.cpp - Kernels that compete --------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TuneCandidates.h"

#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/Threading.h"

using namespace mlir;
using namespace flash::run;

CandidateCompiler::CandidateCompiler(Session &session, const Program &program,
                                     Target target, const Options &options,
                                     Gpu *gpu)
    : session(session), program(program), options(options), gpu(gpu),
      width(gpu ? std::max(1u,
                           llvm::hardware_concurrency().compute_thread_count())
                : 1) {
  this->options.target = target;
  this->options.dumps = 0;
}

void CandidateCompiler::compile(llvm::MutableArrayRef<Candidate> candidates) {
  // The CPU would be busy with compiling while it is timed.
  if (!gpu || candidates.size() == 1) {
    for (Candidate &candidate : candidates)
      compileOne(candidate);
    return;
  }
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency(width));
  for (Candidate &candidate : candidates)
    pool.async([&] { compileOne(candidate); });
  pool.wait();
}

void CandidateCompiler::compileOne(Candidate &candidate) {
  Options own = options;
  own.schedule = candidate.schedule;
  func::FuncOp entry = program.entry;
  unsigned main = program.sources->getMainFileID();
  auto kernel = [&]() -> llvm::Expected<Kernel> {
    if (gpu)
      return Kernel::compileApart(
          session.getContext().getDialectRegistry(),
          program.sources->getMemoryBuffer(main)->getBuffer(), Variant::Flash,
          *gpu, own);
    ScopedDiagnosticHandler silence(&session.getContext(),
                                    [](Diagnostic &) { return success(); });
    return Kernel::compile(*program.module, entry.getSymName(), Variant::Flash,
                           own);
  }();
  if (!kernel) {
    candidate.message = llvm::toString(kernel.takeError());
    return;
  }
  auto shared = std::make_shared<Kernel>(std::move(*kernel));
  candidate.executor =
      std::shared_ptr<Executor>(shared, &shared->getExecutor());
}
